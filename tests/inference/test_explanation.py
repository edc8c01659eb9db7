"""Explain: the maps are the network's own, the influences are what a slow loop over silenced categories
gives.
"""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

import sarb
from sarb.errors import ConfigError, ImageError
from sarb.inference.explanation import Influence, explain
from sarb.labelling.calibration import Calibration
from sarb.model import Model, build_network
from tests.documentation.tools import run

NAMES = ("dog", "cat", "tree", "car")
NETWORKS: dict[str, tuple[str, dict[str, Any], str]] = {
    "sd": ("ssgrl", {"dim": 8, "hidden": 4}, "attention"),
    "sam": ("ssgrl", {"dim": 8, "csrl": "sam"}, "mask"),
    "kggr": ("kggr", {"dim": 8, "hidden": 4}, "attention"),
    "pooled": ("pooled", {}, "activation"),
    "gcn_ml": ("gcn_ml", {"hidden": 6, "word_dim": 5}, "activation"),
}


def make(network: str = "sd", graph: torch.Tensor | None = None, **options: Any) -> Model:
    name, own, _ = NETWORKS[network]
    config = {"network": name, "network_options": {**own, **options}, "backbone": "tiny", "image_size": 64}
    torch.manual_seed(1)
    return Model(build_network(len(NAMES), **config, graph=graph).eval(), NAMES, config)  # type: ignore[arg-type]


@pytest.fixture
def photo(tmp_path: Path) -> Path:
    pixels = np.random.default_rng(0).integers(0, 256, (60, 80, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(tmp_path / "photo.png")
    return tmp_path / "photo.png"


@pytest.mark.parametrize("network", NETWORKS)
def test_maps_and_probabilities_are_the_networks_own(network: str, photo: Path) -> None:
    model = make(network)
    found = explain(model, photo, ["tree", "dog"])
    image = torch.from_numpy(model.transform(Image.open(photo)))[None]
    with torch.no_grad():
        expected = model.network.attention(model.network.maps(image))[0]
    assert found.arrays.shape == (2, 4, 4)
    np.testing.assert_allclose(found.arrays, expected[[2, 0]].numpy(), atol=1e-6)
    assert found.kind == NETWORKS[network][2]
    assert found.categories == ("tree", "dog")
    np.testing.assert_allclose(
        found.probabilities, sarb.predict(model, [photo]).probabilities[0, [2, 0]], atol=1e-6
    )


@pytest.mark.parametrize("network", ["sd", "sam", "kggr"])
def test_evidence_adds_up_to_gradient_times_representation(network: str, photo: Path) -> None:
    model = make(network, torch.rand(4, 4, generator=torch.Generator().manual_seed(0)))
    found = explain(model, photo, ["tree", "dog"], maps="evidence")
    assert found.kind == "evidence"
    with torch.no_grad():
        reps = model.network.represent(
            model.network.maps(torch.from_numpy(model.transform(Image.open(photo)))[None])
        )
    for array, place in zip(found.arrays, (2, 0), strict=True):
        share, total = 1e-3, 0.0
        bent = reps.clone()
        bent[0, place] *= 1 + share
        with torch.no_grad():
            total = (
                float(model.network.classify(bent)[0, place] - model.network.classify(reps)[0, place]) / share
            )
        assert array.sum() == pytest.approx(total, abs=5e-3)


@pytest.mark.parametrize("network", ["sd", "sam"])
def test_evidence_of_a_cell_is_what_it_adds(network: str, photo: Path) -> None:
    """With a graph that does nothing and a linear φ, silencing a cell takes its evidence from the logit."""
    model = make(network, steps=0)
    body: Any = model.network
    maps = torch.randn(1, 8, 4, 4, generator=torch.Generator().manual_seed(3)) * 1e-3  # where tanh is a line
    found = sys.modules["sarb.inference.explanation"]._heat(body, maps, [1], "evidence")[0].detach()
    with torch.no_grad():
        masks, grid = body.attention(maps)[0, 1], maps if network == "sd" else body.sam.transform(maps)
        reps, whole = body.represent(maps), body.classify(body.represent(maps))[0, 1]
        for row, column in ((0, 0), (2, 3)):
            without = reps.clone()
            without[0, 1] -= masks[row, column] * grid[0, :, row, column]
            taken = float(whole - body.classify(without)[0, 1])
            assert found[0, row, column].item() == pytest.approx(taken, rel=0.1, abs=1e-6)


def test_evidence_of_an_activation_map_is_itself(photo: Path) -> None:
    plain, evidence = (
        explain(make("pooled"), photo, ["dog"], maps=maps) for maps in ("attention", "evidence")
    )
    np.testing.assert_array_equal(plain.arrays, evidence.arrays)
    with pytest.raises(ConfigError, match=r"unknown maps 'evidnce'\. Did you mean 'evidence'"):
        explain(make("pooled"), photo, ["dog"], maps="evidnce")


def test_influences_on_a_hand_made_graph(photo: Path) -> None:
    graph = torch.eye(4)
    graph[0, 1] = 0.9  # dog listens to cat, and by the transposed graph cat to dog; the others are alone
    found = explain(make(graph=graph, steps=1), photo, list(NAMES))
    assert [each.source for each in found.influences["dog"]] == ["cat"]
    assert [each.source for each in found.influences["cat"]] == ["dog"]
    assert found.influences["tree"] == found.influences["car"] == ()
    chain = graph.clone()
    chain[1, 2] = 0.9  # with two steps the tree reaches the dog by way of the cat
    assert {
        each.source for each in explain(make(graph=chain, steps=2), photo, ["dog"]).influences["dog"]
    } == {
        "cat",
        "tree",
    }


@pytest.mark.parametrize("network", ["sd", "sam", "kggr"])
def test_influences_equal_a_slow_loop(network: str, photo: Path) -> None:
    model = make(network, torch.rand(4, 4, generator=torch.Generator().manual_seed(0)))
    image = torch.from_numpy(model.transform(Image.open(photo)))[None]
    found = explain(model, photo, ["cat"], influences=9).influences["cat"]
    with torch.no_grad():
        reps = model.network.represent(model.network.maps(image))
        whole, expected = model.network.classify(reps)[0, 1].item(), {}
        for source in (0, 2, 3):
            silent = reps.clone()
            silent[0, source] = 0
            expected[NAMES[source]] = whole - model.network.classify(silent)[0, 1].item()
    assert {each.source: each.change for each in found} == pytest.approx(expected, abs=1e-5)
    assert [abs(each.change) for each in found] == sorted((abs(each.change) for each in found), reverse=True)
    assert len(explain(model, photo, ["cat"], influences=1).influences["cat"]) == 1
    assert explain(model, photo, ["cat"], influences=0).influences == {"cat": ()}


def test_influences_in_parts_are_the_same(photo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = make(graph=torch.rand(4, 4, generator=torch.Generator().manual_seed(0)))
    whole = explain(model, photo, ["cat"]).influences["cat"]
    monkeypatch.setattr(sys.modules["sarb.inference.explanation"], "BLOCK", 1)
    parts = explain(model, photo, ["cat"]).influences["cat"]
    assert [each.source for each in parts] == [each.source for each in whole]
    assert [each.change for each in parts] == pytest.approx([each.change for each in whole], abs=1e-6)


def test_of_many_categories_those_with_strong_edges_are_silenced(
    photo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = torch.eye(4) + 0.01
    graph[1, 3] = 0.9
    monkeypatch.setattr(sys.modules["sarb.inference.explanation"], "MOST_SOURCES", 2)
    assert [each.source for each in explain(make(graph=graph), photo, ["cat"]).influences["cat"]] == ["car"]


def test_gcn_ml_is_moved_by_the_words_of_its_neighbours_only(photo: Path) -> None:
    graph = torch.eye(4)
    graph[0, 1] = 0.9
    found = explain(make("gcn_ml", graph), photo, list(NAMES))
    assert [each.source for each in found.influences["dog"]] == ["cat"]
    assert found.influences["cat"] == ()  # P(cat | dog) is an edge of the dog, not of the cat
    assert explain(make("pooled"), photo, ["dog"]).influences == {"dog": ()}


def test_without_names_those_that_are_found(photo: Path) -> None:
    model = make("pooled")
    with torch.no_grad():
        model.network.classifier.weight.zero_()  # type: ignore[union-attr, operator]
        model.network.classifier.bias.copy_(torch.tensor([-1.0, 2.0, -3.0, 3.0]))  # type: ignore[union-attr, operator]
        assert explain(model, photo).categories == ("car", "cat")
        model.network.classifier.bias.copy_(torch.tensor([-1.0, -2.0, -3.0, -4.0]))  # type: ignore[union-attr, operator]
    assert explain(model, photo).categories == ("dog",)


def test_with_a_calibration_its_probabilities_and_thresholds(photo: Path, tmp_path: Path) -> None:
    make().save(tmp_path / "run" / "model")
    model = sarb.load_model(tmp_path / "run")
    raw = sarb.predict(model, [photo])
    counts = np.zeros((2, 4, 1), np.int64)
    calibration = Calibration(
        NAMES, np.array([0.5, 1, 2, 3.0]), np.array([1.0, 2, -1, 0]), np.zeros(4), counts=counts
    )
    p = calibration(raw)[0]
    low, high = p - 0.01, p + 0.01
    for place, thresholds in (("run", [high[0], low[1], 1, 1]), ("run/model", [low[0], high[1], 1, low[3]])):
        (tmp_path / "run/thresholds.json").unlink(missing_ok=True)
        replace(calibration, thresholds=np.array(thresholds)).save(tmp_path / place / "thresholds.json")
        found = explain(model, photo)
        assert {*found.categories} == {
            name for name, value, bar in zip(NAMES, p, thresholds, strict=True) if value >= bar
        }
        assert [*found.probabilities] == sorted(found.probabilities, reverse=True)
        for name, value in zip(found.categories, found.probabilities, strict=True):
            assert value == pytest.approx(p[NAMES.index(name)], abs=1e-6)
            assert f"{name} {value:.2f}" in str(found)
    assert explain(model, photo, ["tree"]).to_dict()["categories"][0]["probability"] == pytest.approx(
        p[2], abs=1e-6
    )


def test_wrong_name_and_wrong_image(photo: Path) -> None:
    with pytest.raises(
        ConfigError, match=r"unknown category 'dgo'\. Did you mean 'dog'\? The model has: dog, cat"
    ):
        explain(make(), photo, ["dgo"])
    with pytest.raises(ConfigError, match="no category"):
        explain(make(), photo, [])
    with pytest.raises(ImageError, match="no such file"):
        explain(make(), photo.with_name("none.png"), "dog")


def test_peak_text_json_and_picture(photo: Path, tmp_path: Path) -> None:
    found = explain(make(), photo, ["dog", "cat", "tree"])
    row, column = np.unravel_index(found.arrays[0].argmax(), (4, 4))
    assert found.peak("dog") == ((column + 0.5) / 4, (row + 0.5) / 4)
    assert str(found).splitlines()[0].startswith(f"dog {found.probabilities[0]:.2f}")
    stored = json.loads(json.dumps(found.to_dict()))
    assert [each["category"] for each in stored["categories"]] == ["dog", "cat", "tree"]
    np.testing.assert_allclose(stored["categories"][1]["map"], found.arrays[1], rtol=1e-6)
    assert found.picture("cat").size == (80, 60)
    assert (
        Image.open(found.save(tmp_path / "three.png")).width
        > Image.open(found.save(tmp_path / "x.png")).height
    )
    assert Influence("a", 1.0) == Influence("a", 1.0)


def test_the_model_stays_as_it_was(photo: Path) -> None:
    model = make()
    model.network.train()
    before = {key: value.clone() for key, value in model.network.state_dict().items()}
    explain(model, photo, ["dog"])
    assert model.network.training
    assert all(torch.equal(value, before[key]) for key, value in model.network.state_dict().items())


def test_command(photo: Path, tmp_path: Path, monkeypatch: Any, capsys: Any) -> None:
    make().save(tmp_path / "m")
    picture = tmp_path / "dog.png"
    words = ["sarb", "explain", str(tmp_path / "m"), str(photo), "--category", "dog"]
    assert run([*words, "--out", str(picture)], monkeypatch) == 0
    said = capsys.readouterr()
    assert said.out.startswith("dog 0.")
    assert "dog.png" in said.err
    assert picture.read_bytes()[:4] == b"\x89PNG"
    assert run([*words, "--category", "cat", "--json"], monkeypatch) == 0
    assert [each["category"] for each in json.loads(capsys.readouterr().out)["categories"]] == ["dog", "cat"]
    assert run([*words[:-1], "cot"], monkeypatch) == 2
    assert "Did you mean 'cat'?" in capsys.readouterr().err
    assert run([*words, "--out", "dog.jpg"], monkeypatch) == 2
    assert ".png" in capsys.readouterr().err
