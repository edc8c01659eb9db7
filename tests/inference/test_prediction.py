"""The inference loop."""

import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

import sarb
from sarb.data.dataset import Dataset
from sarb.data.images import EvalTransform, decode
from sarb.errors import ImageError, SarbError
from sarb.labels import LabelMatrix
from sarb.model import Model, build_network
from sarb.networks.backbones.fold import folded


@pytest.fixture
def model(squares_data: sarb.Data) -> Model:
    torch.manual_seed(0)
    config = {
        "network": "ssgrl",
        "network_options": {"dim": 8, "hidden": 4},
        "backbone": "tiny",
        "image_size": 64,
    }
    return Model(build_network(len(squares_data.categories), **config), squares_data.categories, config)  # type: ignore[arg-type]


def test_no_image_is_dropped_and_the_batch_size_does_not_matter(
    model: Model, squares_data: sarb.Data
) -> None:
    whole = sarb.predict(model, squares_data.test, batch_size=64)
    parts = sarb.predict(model, squares_data.test, batch_size=5)
    assert len(whole) == len(squares_data.test)
    assert whole.paths == parts.paths == squares_data.test.labels.paths
    assert np.allclose(whole.logits, parts.logits, atol=1e-5)


def test_paths_pictures_and_arrays_give_the_same(model: Model, squares_data: sarb.Data) -> None:
    path = squares_data.test.paths[0]
    image = Image.open(path).convert("RGB")
    scores = sarb.predict(model, [path, image, np.asarray(image)])
    assert np.allclose(scores.logits[0], scores.logits[1:], atol=1e-6)
    assert scores.paths == (str(path), "image 1", "image 2")
    assert np.array_equal(sarb.predict(model, path).logits, sarb.predict(model, [str(path)]).logits)


def test_cached_scores_are_the_same_to_fp16(model: Model, squares_data: sarb.Data) -> None:
    plain = sarb.predict(model, squares_data.test).logits
    assert np.allclose(plain, sarb.predict(model, squares_data.test, cache=True).logits, atol=2e-2)


def test_unreadable_images_raise_or_are_listed(model: Model, squares_data: sarb.Data, tmp_path: Path) -> None:
    (tmp_path / "bad.jpg").write_text("x")
    images = [squares_data.test.paths[0], tmp_path / "bad.jpg", squares_data.test.paths[1]]
    with pytest.raises(ImageError, match=r"bad\.jpg"):
        sarb.predict(model, images)
    skipped: list[tuple[str, str]] = []
    scores = sarb.predict(model, images, skipped=skipped)
    assert scores.paths == (str(images[0]), str(images[2]))
    assert [Path(name).name for name, _ in skipped] == ["bad.jpg"]


@pytest.mark.parametrize("workers", [0, 2])
def test_overlap_changes_neither_scores_nor_order(
    model: Model, squares_data: sarb.Data, tmp_path: Path, workers: int
) -> None:
    (tmp_path / "bad.jpg").write_text("x")
    paths = [*squares_data.test.paths[:5], tmp_path / "bad.jpg", *squares_data.test.paths[5:]]
    transform, network = model.transform, model.network.eval()
    with torch.inference_mode():
        expected = [
            network(torch.from_numpy(transform(decode(path)))[None])
            for path in paths
            if path.name != "bad.jpg"
        ]
    skipped: list[tuple[str, str]] = []
    scores = sarb.predict(model, paths, batch_size=3, workers=workers, skipped=skipped)
    assert scores.paths == tuple(str(path) for path in paths if path.name != "bad.jpg")
    assert np.allclose(scores.logits, torch.cat(expected).numpy(), atol=1e-5)
    assert [name for name, _ in skipped] == [str(tmp_path / "bad.jpg")]


def test_a_frozen_trunk_is_folded_from_the_second_batch_on(
    model: Model, squares_data: sarb.Data, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[object] = []
    # by the name "sarb.inference.prediction" one gets the function
    loop = sys.modules["sarb.inference.prediction"]
    monkeypatch.setattr(loop, "folded", lambda backbone: calls.append(backbone) or folded(backbone))
    model.network.backbone.freeze(1)
    whole = sarb.predict(model, squares_data.test, batch_size=64)
    assert not calls
    parts = sarb.predict(model, squares_data.test, batch_size=2)
    assert calls == [model.network.backbone] and np.allclose(whole.logits, parts.logits, atol=1e-5)


def test_a_large_photograph_is_read_as_the_transform_says(
    model: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Image.effect_mandelbrot((1024, 768), (-2.0, -1.0, 1.0, 1.0), 50).convert("RGB").save(
        tmp_path / "large.jpg"
    )
    sizes: list[tuple[int, int]] = []
    call = EvalTransform.__call__
    monkeypatch.setattr(EvalTransform, "__call__", lambda *args: sizes.append(args[1].size) or call(*args))
    sarb.predict(model, tmp_path / "large.jpg")
    assert sizes == [(256, 192)], "64 pixels need 128 at least"


@pytest.mark.parametrize("cache", [False, True])
def test_evaluation_leaves_unreadable_images_out_and_says_so(
    model: Model, squares_data: sarb.Data, tmp_path: Path, cache: bool
) -> None:
    test, places = squares_data.test, np.arange(120) % 12
    names = [f"{number:03d}.jpg" for number in range(120)]
    for name, place in zip(names, places, strict=True):
        (tmp_path / name).write_bytes(test.paths[place].read_bytes())
    labels = LabelMatrix(test.labels.values[places], test.categories, names)
    good = np.arange(120) != 50
    expected = sarb.evaluate(model, Dataset(labels, tmp_path).take(good), cache=cache)
    (tmp_path / names[50]).write_text("x")
    with pytest.warns(
        UserWarning, match=r"1 of 120 images could not be read and are left out: .*050\.jpg: not an image"
    ):
        report = sarb.evaluate(model, Dataset(labels, tmp_path), cache=cache)
    assert report.metrics == pytest.approx(expected.metrics, nan_ok=True) and report.metrics["images"] == 119
    skipped: list[tuple[str, str]] = [("before", "")]
    sarb.evaluate(model, Dataset(labels, tmp_path), cache=cache, skipped=skipped)
    assert [name for name, _ in skipped] == ["before", "050.jpg"]
    (tmp_path / names[51]).unlink()
    with pytest.raises(ImageError, match="at least 2 of 120 images cannot be read"):
        sarb.evaluate(model, Dataset(labels, tmp_path), cache=cache)


def test_evaluate_takes_columns_in_any_order_and_refuses_other_categories(
    model: Model, squares_data: sarb.Data
) -> None:
    test = squares_data.test
    expected = sarb.evaluate(model, test).mAP
    turned = Dataset(
        LabelMatrix(test.labels.values[:, ::-1], test.categories[::-1], test.labels.paths), test.root
    )
    assert sarb.evaluate(model, turned).mAP == expected
    renamed = Dataset(
        LabelMatrix(test.labels.values, ["rde", *test.categories[1:]], test.labels.paths), test.root
    )
    with pytest.raises(
        SarbError,
        match=r"different categories: 1 missing in the data \('red'\), 1 missing in the model \('rde'\)",
    ):
        sarb.evaluate(model, renamed)


def test_inference_leaves_the_mode_of_the_network(model: Model, squares_data: sarb.Data) -> None:
    model.network.train()
    sarb.predict(model, squares_data.test.take([0]))
    assert model.network.training


def test_a_folder_serves_as_well_as_a_model(model: Model, squares_data: sarb.Data, tmp_path: Path) -> None:
    model.save(tmp_path / "run" / "model")
    expected = sarb.evaluate(model, squares_data.test)
    for given in (tmp_path / "run", str(tmp_path / "run" / "model")):
        assert sarb.evaluate(given, squares_data.test).mAP == expected.mAP
        assert sarb.evaluate(given, squares_data).mAP == expected.mAP
        image = squares_data.test.paths[0]
        assert np.array_equal(sarb.predict(given, image).logits, sarb.predict(model, image).logits)
        assert sarb.explain(given, image).categories == sarb.explain(model, image).categories


def test_wrong_arguments_are_told_what_was_expected(
    model: Model, squares_data: sarb.Data, tmp_path: Path
) -> None:
    labels = squares_data.train.labels
    with pytest.raises(
        TypeError, match="model: expected a Model, a run or model folder, or a hub id, got int"
    ):
        sarb.predict(3, "a.jpg")
    with pytest.raises(TypeError, match=r"images: expected a Dataset such as data.test, .*got Data"):
        sarb.predict(model, squares_data)
    with pytest.raises(TypeError, match=r"dataset: expected a Dataset, such as .*, got PosixPath"):
        sarb.evaluate(model, tmp_path / "labels.csv")
    with pytest.raises(TypeError, match=r"scores: expected Scores, which sarb\.predict.* got Model"):
        sarb.complete(model, labels)
    with pytest.raises(TypeError, match=r"labels: expected a LabelMatrix, such as train.labels, got Dataset"):
        sarb.suggest(sarb.predict(model, squares_data.train), squares_data.train, 5)
    with pytest.raises(TypeError, match=r"train: expected a Dataset, such as .*, got Data"):
        sarb.fit(squares_data)
    with pytest.raises(SarbError, match="no such run or model folder"):
        sarb.load_calibration(tmp_path / "nothing")
