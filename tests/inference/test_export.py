"""Export: every network gives the logits of torch in ONNX and torch.export, or nothing is written."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import sarb
from sarb.errors import ConfigError, SarbError
from sarb.inference.export import compare, export
from sarb.inference.onnx import OnnxModel
from sarb.labelling.calibration import Calibration
from sarb.model import Model, build_network
from sarb.registry import NETWORKS
from tests.documentation.tools import run

NAMES = ("dog", "cat", "tree", "car", "bird")
VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    "sd": ("ssgrl", {"dim": 8, "hidden": 4}),
    "sam": ("ssgrl", {"dim": 8, "csrl": "sam", "normalise": True}),
    "sparse": ("ssgrl", {"dim": 8, "hidden": 4, "neighbours": 2}),
    "large-map": ("ssgrl", {"dim": 8, "hidden": 4, "grid": 2}),
    "kggr": ("kggr", {"dim": 8, "hidden": 4}),
    "pooled": ("pooled", {"dropout": 0.5}),
    "gcn_ml": ("gcn_ml", {"hidden": 6, "word_dim": 5}),
    "probe": ("probe", {"width": 8, "concepts": 7, "bank": 12, "neighbours": 3}),
}


def make(variant: str = "sd", seed: int = 0) -> Model:
    name, options = VARIANTS[variant]
    config = {"network": name, "network_options": options, "backbone": "tiny", "image_size": 64}
    torch.manual_seed(seed)
    network = build_network(len(NAMES), **config, graph=torch.rand(5, 5))  # type: ignore[arg-type]
    for parameter in network.parameters():  # far from where rounding could hide a mistake
        parameter.data *= 1.5
    if name == "probe":  # what a fit would have filled
        for buffer in ("components", "concept_weight", "ties", "bank", "bank_labels"):
            network.get_buffer(buffer).uniform_()
        for buffer in ("bayes_weight", "name_weight", "neighbour_weight"):
            network.get_buffer(buffer).fill_(0.5)
    return Model(network.eval(), NAMES, config)


def hand_made(names: tuple[str, ...], isotonic: bool = False) -> Calibration:
    """A calibration whose every number differs from that of no calibration."""
    count = len(names)
    curve = np.array([-1.0, 0.5, 2.0]), np.array([0.1, 0.2, 0.85])
    return Calibration(
        names,
        np.linspace(0.4, 1.6, count),
        np.linspace(-0.7, 0.9, count),
        np.linspace(0.3, 0.7, count),
        method="isotonic" if isotonic else "platt",
        counts=np.ones((2, count, 4), np.int64),
        knots=(curve,) * count if isotonic else (),
        figures={"spread": [0.1, 0.2]},
    )


def logits(model: Model, images: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    with torch.inference_mode():
        found: np.ndarray[Any, Any] = model.network(torch.from_numpy(images)).numpy()
    return found


def test_every_network_is_covered() -> None:
    assert {name for name, _ in VARIANTS.values()} == set(NETWORKS)


@pytest.mark.parametrize("variant", VARIANTS)
def test_onnx_equals_torch_at_any_batch(variant: str, tmp_path: Path) -> None:
    model = make(variant)
    done = export(model, tmp_path / "model.onnx", progress=False)
    assert max(done.differences.values()) <= 1e-4
    assert set(done.differences) == {1, 7}
    onnx = OnnxModel(done.path)
    for batch in (1, 3, 7):
        images = np.random.default_rng(batch).standard_normal((batch, 3, 64, 64)).astype(np.float32)
        np.testing.assert_allclose(onnx.logits(images), logits(model, images), atol=1e-4)
    assert [path.name for path in tmp_path.iterdir()] == ["model.onnx"]


@pytest.mark.parametrize("variant", ["sd", "sam", "gcn_ml"])
def test_torch_export_equals_torch_and_keeps_the_metadata(variant: str, tmp_path: Path) -> None:
    model = make(variant)
    done = export(model, tmp_path / "model.pt2", progress=False)
    assert done.format == "torch"
    extra = {"categories.json": "", "preprocessing.json": ""}
    program = torch.export.load(done.path, extra_files=extra)
    images = np.random.default_rng(0).standard_normal((3, 3, 64, 64)).astype(np.float32)
    with torch.inference_mode():
        np.testing.assert_allclose(
            program.module()(torch.from_numpy(images)).numpy(), logits(model, images), atol=1e-4
        )
    assert json.loads(extra["categories.json"]) == list(NAMES)
    assert json.loads(extra["preprocessing.json"])["size"] == 64


def test_metadata_is_enough_to_use_the_file(tmp_path: Path) -> None:
    model = make("pooled")
    model.save(tmp_path / "run" / "model")
    calibration = hand_made(NAMES)
    calibration.save(tmp_path / "run" / "thresholds.json")
    done = export(sarb.load_model(tmp_path / "run"), tmp_path / "model.onnx", progress=False)
    onnx = OnnxModel(done.path)
    assert onnx.categories == NAMES
    assert onnx.transform == model.transform
    assert onnx.config == model.config
    assert onnx.calibration is not None and onnx.calibration.to_dict() == calibration.to_dict()
    turned = export(model, tmp_path / "b.onnx", calibration=hand_made(NAMES[::-1]), progress=False)
    given = OnnxModel(turned.path).calibration
    assert (
        given is not None and given.categories == NAMES and given.slope.tolist() == [*calibration.slope[::-1]]
    )
    with pytest.raises(SarbError, match=f"no category '{NAMES[0]}'"):
        export(model, tmp_path / "c.onnx", calibration=hand_made(NAMES[1:]), progress=False)
    content = done.path.read_bytes()
    assert b"src/sarb" not in content and b".py" not in content  # no path of the machine that made it


def test_a_difference_is_refused_and_nothing_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = make("pooled")
    (tmp_path / "model.onnx").write_bytes(b"older")
    whole = OnnxModel.logits
    monkeypatch.setattr(OnnxModel, "logits", lambda self, images: whole(self, images) + np.float32(2e-4))
    with pytest.raises(SarbError, match=r"not written, a logit differs by 2\.0e-04"):
        export(model, tmp_path / "model.onnx", progress=False)
    monkeypatch.setattr(OnnxModel, "logits", lambda self, images: whole(self, images) * np.float32(np.nan))
    with pytest.raises(SarbError, match="not written"):
        export(model, tmp_path / "model.onnx", progress=False)
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("model.onnx", b"older")]


def test_compare_finds_the_largest_difference_of_any_batch() -> None:
    inputs = np.arange(10, dtype=np.float32).reshape(10, 1, 1, 1) / 16

    def plain(images: Any) -> Any:
        return images.reshape(-1, 1)

    def other(images: Any) -> Any:
        return images.reshape(-1, 1) + (images.reshape(-1, 1) == 0.5) * (0.5 if len(images) > 1 else 0.25)

    assert compare(plain, other, inputs) == {1: 0.25, 7: 0.5}


@pytest.mark.parametrize(
    ("name", "format", "message"),
    [
        ("model.pt", None, r"expected a file that ends in \.onnx or \.pt2, got model\.pt"),
        ("model.onnx", "torch", r"expected a file that ends in \.pt2"),
        ("model.onnx", "onx", r"unknown format 'onx'\. Did you mean 'onnx'"),
    ],
)
def test_wrong_names(name: str, format: str | None, message: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=message):
        export(make("pooled"), tmp_path / name, format=format)
    assert not list(tmp_path.iterdir())


def test_a_missing_package_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        sys.modules["sarb.inference.export"], "find_spec", lambda name: None if name == "onnxscript" else name
    )
    with pytest.raises(SarbError, match=r"needs onnxscript: pip install 'sarb\[export\]'"):
        export(make("pooled"), tmp_path / "model.onnx")


def test_the_model_stays_as_it_was(tmp_path: Path) -> None:
    model = make("sparse")
    model.network.train()
    before = {key: value.clone() for key, value in model.network.state_dict().items()}
    export(model, tmp_path / "model.onnx", progress=False)
    assert model.network.training
    assert model.network.neighbours == 2
    assert all(torch.equal(value, before[key]) for key, value in model.network.state_dict().items())


def test_command(squares: Path, tmp_path: Path, monkeypatch: Any, capsys: Any) -> None:
    make("pooled").save(tmp_path / "run" / "model")
    labels = sarb.LabelMatrix(np.zeros((2, 5)), NAMES, [str(squares / "40.jpg"), "gone.jpg"])
    labels.save(tmp_path / "run" / "test_labels.npz")
    words = ["sarb", "export", str(tmp_path / "run")]
    assert run([*words, str(tmp_path / "model.onnx"), "--json"], monkeypatch) == 0
    said = capsys.readouterr()
    done = json.loads(said.out)
    assert done["images"] == 15  # noise, scenes, and the test image that is still there
    assert max(done["differences"].values()) <= 1e-4
    assert "largest difference from torch on 15 images: batch of 1:" in said.err
    assert run([*words, str(tmp_path / "model.txt")], monkeypatch) == 2
    assert "a file that ends in .onnx or .pt2" in capsys.readouterr().err


def test_a_difference_is_relative_to_large_logits() -> None:
    inputs = np.zeros((3, 3, 2, 2), np.float32)
    for largest, told in ((0.5, 1e-3), (1.0, 1e-3), (10.0, 1e-4)):

        def expected(images: np.ndarray, largest: float = largest) -> np.ndarray:
            return np.tile(np.array([largest, 0.0]), (len(images), 1))

        found = compare(expected, lambda images, run=expected: run(images) + np.array([0.0, 1e-3]), inputs)
        assert found == pytest.approx({1: told, 7: told})
