"""Without the package of an extra, one line says which one to add; nothing else of it is imported."""

import subprocess
import sys
import types

import pytest

import sarb
from sarb.errors import ConfigError
from sarb.networks.backbones.base import create_backbone
from sarb.networks.backbones.extras import package
from sarb.networks.text import text_vectors
from sarb.settings import resolve
from tests.cli.test_app import run


@pytest.mark.parametrize(("family", "module"), [("timm", "timm"), ("hf", "transformers")])
def test_a_missing_package_is_one_line_with_the_extra(family, module, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, module, None)
    for make in (create_backbone, lambda name: resolve(backbone=name)):
        with pytest.raises(ConfigError) as caught:
            make(f"{family}:resnet18")
        expected = f"backbone '{family}:resnet18' needs the package {module}: pip install 'sarb[{module}]'"
        assert str(caught.value) == expected
    with pytest.raises(
        ConfigError, match=r"needs the package transformers: pip install 'sarb\[transformers\]'"
    ):
        monkeypatch.setitem(sys.modules, "transformers", None)
        text_vectors("hf:openai/clip-vit-base-patch32", ["dog"])


def test_a_package_that_cannot_be_imported_says_why(monkeypatch):
    def broken(name):
        if name == "needs_more":
            raise ModuleNotFoundError("No module named 'colours'", name="colours")
        raise RuntimeError("operator torchvision::nms does not exist\nand more")

    monkeypatch.setattr("importlib.import_module", broken)
    with pytest.raises(
        ConfigError, match=r"operator torchvision::nms does not exist.*of the same build\?"
    ) as caught:
        package("broken", "it")
    assert "\n" not in str(caught.value)
    with pytest.raises(ConfigError, match="it: needs_more needs colours, which is missing"):
        package("needs_more", "it")


def test_the_core_imports_neither():
    code = (
        "import sys, sarb.networks.backbones.timm_models, sarb.networks.backbones.hf_models, sarb.model\n"
        "assert not {'timm', 'transformers', 'torchvision', 'huggingface_hub'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_package_returns_the_module():
    assert isinstance(package("json", "it"), types.ModuleType)


def test_families_are_names_but_not_listed_ones():
    assert (
        "timm:resnet18" in sarb.BACKBONES and "timm:" not in sarb.BACKBONES and "timm" not in sarb.BACKBONES
    )
    assert not any(":" in name for name in sarb.BACKBONES)


def test_the_command_line_ends_with_2_and_that_line(monkeypatch, capsys, squares, tmp_path):
    monkeypatch.setitem(sys.modules, "timm", None)
    data = ["--data", squares / "labels.csv", "-o", "encoding=binary", "--out", tmp_path / "run"]
    assert run(monkeypatch, "train", *data, "--backbone", "timm:resnet18") == 2
    assert "pip install 'sarb[timm]'" in capsys.readouterr().err
    assert run(monkeypatch, "list", "backbones") == 0
    listed = capsys.readouterr().out
    assert "timm:NAME" in listed and "hf:NAME" in listed


def test_options_of_a_family_are_checked_by_type():
    with pytest.raises(ConfigError) as caught:
        resolve(backbone="timm:resnet18", backbone_options={"arguments": 3, "men": [1.0]}, epochs=0)
    text = str(caught.value)
    assert "backbone.arguments must be a dict of" in text and "epochs must be at least 1" in text
    assert "unknown option of backbone 'timm:resnet18': 'men'. Did you mean 'mean'?" in text
    with pytest.raises(ConfigError, match=r"unknown backbone 'tim:resnet18'.*timm:NAME"):
        resolve(backbone="tim:resnet18")
