"""The model folder: safe, whole, loads on its own."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.torch
import torch

from sarb.errors import ConfigError, SarbError
from sarb.model import Model, build_network, load_model, start_from

CONFIG = {
    "network": "ssgrl",
    "network_options": {"dim": 8, "hidden": 4},
    "backbone": "tiny",
    "backbone_options": {},
    "image_size": 64,
}


def make(categories: tuple[str, ...] = ("a", "b", "c"), seed: int = 0, **changes: object) -> Model:
    torch.manual_seed(seed)
    config = {**CONFIG, **changes}
    return Model(build_network(len(categories), **config).eval(), categories, config)  # type: ignore[arg-type]


def test_round_trip_gives_the_same_function_and_files(tmp_path: Path) -> None:
    model = make()
    model.save(tmp_path / "m", "# card")
    assert sorted(path.name for path in (tmp_path / "m").iterdir()) == [
        "README.md",
        "config.json",
        "manifest.json",
        "model.safetensors",
    ]
    again = load_model(tmp_path / "m")
    images = torch.rand(2, 3, 64, 64)
    assert torch.equal(model.network(images), again.network(images))
    assert again.categories == model.categories
    assert again.transform.config() == model.transform.config()
    again.save(tmp_path / "m")  # replaces the older one
    assert [path.name for path in tmp_path.iterdir()] == ["m"]


def test_a_failed_save_leaves_the_old_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make().save(tmp_path / "m")
    before = (tmp_path / "m" / "model.safetensors").read_bytes()
    monkeypatch.setattr(
        "sarb.runs.folder.ModelFolder.write_card", lambda *_: (_ for _ in ()).throw(OSError("disk full"))
    )
    with pytest.raises(OSError, match="disk full"):
        make(seed=1).save(tmp_path / "m")
    assert (tmp_path / "m" / "model.safetensors").read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["m"]


def test_errors_name_the_folder_and_the_reason(tmp_path: Path) -> None:
    with pytest.raises(SarbError, match="no such run or model folder"):
        load_model(tmp_path / "none")
    with pytest.raises(SarbError, match="not a run or model folder"):
        load_model(tmp_path)
    make().save(tmp_path / "m")
    (tmp_path / "m" / "manifest.json").unlink()
    config = json.loads((tmp_path / "m" / "config.json").read_text())
    (tmp_path / "m" / "config.json").write_text(json.dumps({**config, "categories": ["a"]}))
    with pytest.raises(SarbError, match=r"model\.safetensors: does not fit its config\.json"):
        load_model(tmp_path / "m")
    (tmp_path / "m" / "config.json").write_text(json.dumps({**config, "format": 99}))
    with pytest.raises(SarbError, match="newer sarb"):
        load_model(tmp_path / "m")
    (tmp_path / "m" / "model.safetensors").write_bytes(b"rubbish")
    (tmp_path / "m" / "config.json").write_text(json.dumps(config))
    with pytest.raises(SarbError, match=r"model\.safetensors"):
        load_model(tmp_path / "m")


def test_unknown_network_option_is_a_configuration_error() -> None:
    with pytest.raises(ConfigError, match="network 'ssgrl'"):
        build_network(3, network="ssgrl", backbone="tiny", network_options={"dimm": 3})


def test_start_from_moves_category_rows_by_name() -> None:
    old, new = make(("a", "b", "c"), 0), make(("c", "x", "a"), 1)
    fresh = new.network.state_dict()["classifier.category.weight"][1].clone()
    graph = new.network.state_dict()["cooccurrence"].clone()
    text = start_from(new, old)
    weight, source = (m.network.state_dict()["classifier.category.weight"] for m in (new, old))
    assert torch.equal(weight[0], source[2])
    assert torch.equal(weight[2], source[0])
    assert torch.equal(weight[1], fresh)
    assert torch.equal(new.network.state_dict()["cooccurrence"], graph)
    assert "2 of 3 categories" in text


def test_start_from_another_network_takes_the_backbone() -> None:
    pooled = make(network="pooled", network_options={})
    new = make(seed=1)
    assert "fresh: classifier, graph, project, sd, words" in start_from(new, pooled)
    for key, value in pooled.network.backbone.state_dict().items():
        assert np.array_equal(value.numpy(), new.network.backbone.state_dict()[key].numpy())


# damaged and hostile folders


def changed(folder: Path, **fields: Any) -> None:
    """Change the configuration of a saved model, and leave out its checksums."""
    (folder / "manifest.json").unlink(missing_ok=True)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, **fields}))


@pytest.mark.parametrize("name", ["model.safetensors", "config.json"])
def test_a_flipped_bit_is_found(tmp_path: Path, name: str) -> None:
    make().save(tmp_path / "m")
    content = bytearray((tmp_path / "m" / name).read_bytes())
    content[-20] ^= 1
    (tmp_path / "m" / name).write_bytes(content)
    with pytest.raises(SarbError, match=rf"{name}: is damaged"):
        load_model(tmp_path / "m")


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_weights_that_are_not_finite_are_neither_saved_nor_loaded(tmp_path: Path, value: float) -> None:
    model = make()
    model.save(tmp_path / "m")
    (tmp_path / "m" / "manifest.json").unlink()
    tensors = {key: tensor.clone() for key, tensor in model.network.state_dict().items()}
    tensors["classifier.category.bias"][0] = value
    (tmp_path / "m" / "model.safetensors").write_bytes(safetensors.torch.save(tensors))
    with pytest.raises(
        SarbError, match=r"safetensors: 'classifier.category.bias' holds values that are not finite"
    ):
        load_model(tmp_path / "m")
    model.network.load_state_dict(tensors)
    with pytest.raises(SarbError, match=r"classifier\.category\.bias"):
        model.save(tmp_path / "new")
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (
            {"categories": [f"{n}" for n in range(100_000)]},
            r"model\.safetensors: does not fit its config\.json",
        ),
        ({"categories": ["a", "a"]}, r"config\.json: 'categories' must be different names"),
        ({"categories": 3}, r"config\.json: 'categories' must be a list"),
        ({"image_size": 10**6}, r"config\.json: 'image_size' must be a whole number from 1 to 4,096"),
        ({"image_size": "64"}, r"config\.json: 'image_size'"),
        ({"network": "os:system"}, "unknown network 'os:system'"),
        ({"network": ["pooled"]}, r"config\.json: 'network' must be text"),
        ({"backbone": "../tiny"}, "unknown backbone"),
        ({"backbone": "hf:/etc"}, r"config\.json: 'backbone_options\.architecture' must be"),
        (
            {"backbone_options": {"weights": "/dev/zero"}},
            r"config\.json: 'backbone_options\.weights' must be left out",
        ),
        ({"backbone_options": {"scales": [1, 1e9]}}, "backbone.scales"),
        ({"network_options": {"dropout": 7.0}}, "dropout"),
        ({"network": "ssgrl", "network_options": {"dim": 10**9}}, "does not fit"),
        ({"network": "ssgrl", "network_options": {"steps": 10**9}}, "network.steps must be at most 100"),
        ({"network": "probe", "network_options": {"bank": 10**10}}, "does not fit"),
        ({"network": "probe", "network_options": {"bank": 5, "neighbours": 5}}, "neighbours"),
        ({"format": 0}, r"config\.json: 'format'"),
    ],
)
def test_a_hostile_configuration_is_refused_before_memory_is_used(
    tmp_path: Path, fields: dict[str, Any], message: str
) -> None:
    make().save(tmp_path / "m")
    changed(tmp_path / "m", **fields)
    with pytest.raises(SarbError, match=message):
        load_model(tmp_path / "m")


def test_a_field_that_is_no_option_never_reaches_the_network(tmp_path: Path) -> None:
    make().save(tmp_path / "m")
    changed(tmp_path / "m", graph=[[1]], words="/etc/passwd", weights="/etc/passwd")
    assert load_model(tmp_path / "m").categories == make().categories


def test_the_configuration_of_a_folder_cannot_name_another_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder of the hub is somebody else's: nothing is read but what lies in it."""
    folder = make().save(tmp_path / "m", "# card")
    (tmp_path / "secret.pth").write_bytes(b"secret")
    changed(folder, weights="../secret.pth")
    monkeypatch.setattr(
        "sarb.networks.backbones.base.read_weights", lambda *_: pytest.fail("another file was read")
    )
    try:
        load_model(folder)
    except SarbError as error:
        assert "weights" in str(error)
