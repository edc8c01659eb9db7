"""The inference loop."""

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

import sarb
from sarb.data.dataset import Dataset
from sarb.errors import ImageError, SarbError
from sarb.labels import LabelMatrix
from sarb.model import Model, build_network


@pytest.fixture
def model(squares_data: sarb.Data) -> Model:
    torch.manual_seed(0)
    config = {"network": "ssgrl", "network_options": {"dim": 8, "hidden": 4}, "backbone": "tiny", "image_size": 64}
    return Model(build_network(len(squares_data.categories), **config), squares_data.categories, config)  # type: ignore[arg-type]


def test_no_image_is_dropped_and_the_batch_size_does_not_matter(model: Model, squares_data: sarb.Data) -> None:
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


def test_evaluate_takes_columns_in_any_order_and_refuses_other_categories(
    model: Model, squares_data: sarb.Data
) -> None:
    test = squares_data.test
    expected = sarb.evaluate(model, test).mAP
    turned = Dataset(LabelMatrix(test.labels.values[:, ::-1], test.categories[::-1], test.labels.paths), test.root)
    assert sarb.evaluate(model, turned).mAP == expected
    renamed = Dataset(LabelMatrix(test.labels.values, ["rde", *test.categories[1:]], test.labels.paths), test.root)
    with pytest.raises(SarbError, match="other categories than the model: 1 of the model's are missing, 1 are new"):
        sarb.evaluate(model, renamed)


def test_inference_leaves_the_mode_of_the_network(model: Model, squares_data: sarb.Data) -> None:
    model.network.train()
    sarb.predict(model, squares_data.test.take([0]))
    assert model.network.training
