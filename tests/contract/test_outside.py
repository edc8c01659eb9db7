"""A network and a method from outside the package: all that works with ours works with them."""

import ast
import sys

import numpy as np
import pytest
import torch

import sarb
from sarb.errors import ConfigError
from sarb.methods import Method
from sarb.networks import Network
from sarb.networks.backbones.tiny import Tiny
from sarb.registry import REGISTRIES, register
from tests.documentation.tools import ROOT, coarse_pictures, run


def code_of(example):
    """Imports and class of an example, without what the example does with them."""
    tree = ast.parse((ROOT / "examples" / example).read_text(encoding="utf-8"))
    kept = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom | ast.ClassDef)]
    return "".join(ast.unparse(node) + "\n" for node in kept)


def class_of(example, name):
    names = {"__name__": "outside"}
    exec(compile(code_of(example), example, "exec"), names)
    return names[name]


class Other(Tiny):
    """A backbone from outside."""


@pytest.fixture
def registered():
    before = {kind: dict.copy(registry) for kind, registry in REGISTRIES.items()}
    register("network", "outside_network", class_of("add_a_network.py", "Queries"))
    register("method", "outside_method", class_of("add_a_method.py", "AssumeNegative"))
    register("backbone", "outside_backbone", Other)
    yield
    for kind, registry in REGISTRIES.items():
        registry.clear()
        registry.update(before[kind])


@pytest.fixture(scope="module")
def data():
    return sarb.load("demo", train=32, test=16, size=64)


SMALL = {"image_size": 64, "epochs": 2, "min_steps": 0, "progress": False}


@pytest.mark.parametrize(
    ("network", "method"),
    [
        ("outside_network", "outside_method"),
        ("outside_network", "sarb"),
        ("outside_network", "curriculum"),
        ("pooled", "outside_method"),
    ],
)
def test_trains_saves_loads_explains_exports_and_evaluates(
    network, method, registered, data, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    coarse_pictures(monkeypatch)
    train = data.train.hide(known=0.3, seed=0)
    options = {"method_options": {"start": 0}} if method == "sarb" else {}
    model = sarb.fit(
        train, network=network, method=method, backbone="outside_backbone", out="run", **SMALL, **options
    )
    loaded = sarb.load_model("run")
    assert repr(loaded) == repr(model) and network in repr(loaded)
    paths = data.test.paths
    np.testing.assert_array_equal(sarb.predict(loaded, paths).logits, sarb.predict(model, paths).logits)
    assert np.isfinite(sarb.evaluate(loaded, data.test).mAP)
    for maps in ("attention", "evidence"):
        explained = sarb.explain(loaded, paths[0], ["tree", "cloud"], maps=maps)
        assert explained.arrays.shape == (2, 4, 4) and np.isfinite(explained.arrays).all()
        assert explained.save("explained.png").is_file()
        assert bool(explained.influences["tree"]) == (network == "outside_network")
        expected = maps if network == "outside_network" else "activation"
        assert explained.kind == expected
    for file in ("model.onnx", "model.pt2"):
        done = sarb.export(loaded, file, progress=False)
        assert max(done.differences.values()) <= 1e-4
    assert (
        run(["sarb", "evaluate", "run", "--data", "demo", "-o", "test=16", "-o", "size=64"], monkeypatch) == 0
    )


def test_options_and_parts_are_checked(registered, data):
    train = data.train.hide(known=0.3, seed=0)
    with pytest.raises(ConfigError) as error:
        sarb.fit(
            train,
            network="outside_network",
            method="outside_method",
            backbone="tiny",
            network_options={"shar": 0.1},
            method_options={"epsilon": "much"},
            lr_scale={"querys": 0.1, "queries": 0.1, "sd": 0.1},
            **SMALL,
        )
    text = str(error.value)
    assert len(error.value.problems) == 3, text
    assert "'shar'. Did you mean 'share'?" in text and "method.epsilon must be float" in text
    assert "unknown part in [lr] 'querys'. Did you mean 'queries'?" in text
    assert "Available: backbone, blend, classifier, queries" in text


def test_resume_and_start_from_another_model(registered, data, tmp_path):
    train = data.train.hide(known=0.3, seed=0)
    names = {"network": "outside_network", "method": "outside_method", "backbone": "tiny"}
    whole = sarb.fit(train, out=tmp_path / "run", **names, **SMALL)
    again = sarb.fit(train, out=tmp_path / "run", resume=True, **names, **SMALL)
    started = sarb.fit(train, init=whole, **names, **{**SMALL, "epochs": 1}, lr=0.0)
    for key, value in whole.network.state_dict().items():
        assert torch.equal(again.network.state_dict()[key], value)
        if key in dict(started.network.named_parameters()):
            assert torch.equal(started.network.state_dict()[key], value)


def test_a_folder_whose_network_is_not_registered(registered, data, tmp_path, monkeypatch, capsys):
    train = data.train.hide(known=0.3, seed=0)
    sarb.fit(
        train, network="outside_network", method="partial_bce", backbone="tiny", out=tmp_path / "run", **SMALL
    )
    del sarb.NETWORKS["outside_network"]
    with pytest.raises(
        ConfigError, match=r"unknown network 'outside_network'.*register\('network', 'outside_net"
    ):
        sarb.load_model(tmp_path / "run")
    assert run(["sarb", "evaluate", str(tmp_path / "run")], monkeypatch) == 2
    said = capsys.readouterr().err
    assert "sarb.registry.register('network', 'outside_network', ...)" in said and "Traceback" not in said


def test_an_installed_package_needs_no_registration(data, tmp_path, monkeypatch, capsys):
    """The command line trains with a plug-in: its entry points are enough."""
    info = tmp_path / "sarb_outside-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: sarb-outside\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[sarb.networks]\nplugged = sarb_outside:Queries\n"
        "[sarb.methods]\nplugged = sarb_outside:AssumeNegative\n"
    )
    code = code_of("add_a_network.py") + code_of("add_a_method.py")
    (tmp_path / "sarb_outside.py").write_text(code, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    coarse_pictures(monkeypatch)
    words = ["--network", "plugged", "--method", "plugged", "--backbone", "tiny", "--image-size", "64"]
    source = ["--data", "demo", "-o", "train=32", "-o", "test=16", "-o", "size=64"]
    try:
        assert run(["sarb", "train", *source, *words, "--epochs", "1", "--out", "run"], monkeypatch) == 0
        assert "loss_assumed" in (tmp_path / "run/log.csv").read_text(encoding="utf-8")
        assert run(["sarb", "export", "run", "model.pt2"], monkeypatch) == 0
    finally:
        sys.modules.pop("sarb_outside", None)


def test_stubs_say_what_is_missing(data):
    network = Network(Tiny(), 3)
    for stage in (network.represent, network.classify, network.attention):
        with pytest.raises(NotImplementedError):
            stage(torch.zeros(1, 64, 2, 2))
    with pytest.raises(NotImplementedError):
        Method(network)(None)
    assert network.values(torch.zeros(1)) is None and network.relations() is None
