"""The strong view of an image."""

import numpy as np
import pytest
from PIL import Image

from sarb.data.strong import CHANGES, StrongTransform
from sarb.data.transforms import TrainTransform


def photo():
    pixels = np.random.default_rng(0).integers(0, 256, (48, 64, 3), dtype=np.uint8)
    return Image.fromarray(pixels)


def test_same_generator_same_view_other_generator_another():
    view = StrongTransform(32)
    one, same, other = (view(photo(), np.random.default_rng(seed)) for seed in (1, 1, 2))
    assert one.shape == (3, 32, 32) and one.dtype == np.float32 and np.isfinite(one).all()
    assert np.array_equal(one, same) and not np.array_equal(one, other)


def test_without_changes_and_hole_it_is_the_usual_view():
    strong = StrongTransform(32, changes=0, hole=0.0)(photo(), np.random.default_rng(3))
    assert np.array_equal(strong, TrainTransform(32)(photo(), np.random.default_rng(3)))


def test_the_hole_has_the_mean_colour():
    view = StrongTransform(32, changes=0, hole=1.0)
    empty = [(view(photo(), np.random.default_rng(seed)) == 0).all(0).mean() for seed in range(20)]
    assert 0 < np.mean(empty) < 0.6 and max(empty) <= 1


@pytest.mark.parametrize("name", CHANGES)
def test_every_change_keeps_the_size_and_no_image_is_written_to(name):
    image = photo()
    before = image.tobytes()
    for strength in (0.0, 0.5, 1.0):
        changed = CHANGES[name](image, strength)
        assert changed.size == image.size and changed.mode == "RGB"
    assert image.tobytes() == before
    assert CHANGES[name](image, 0.9).tobytes() != before or name == "stretched"
