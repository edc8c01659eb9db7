"""The model folder: safe, whole, loads on its own."""

import json
from pathlib import Path

import numpy as np
import pytest
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
    monkeypatch.setattr("sarb.model.write_json", lambda *_: (_ for _ in ()).throw(OSError("disk full")))
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
