"""Images that resemble no other."""

import numpy as np

from sarb.health.neighbours import Nearest
from sarb.health.odd import odd_images
from tests.health.images import images


def similar(likeness):
    """Neighbours whose median similarity is as given; one of them is a duplicate."""
    cosines = np.repeat(np.array(likeness, np.float32)[:, None], 5, axis=1)
    cosines[:, 0] = 1
    return Nearest(np.zeros(cosines.shape, np.int64), cosines)


def test_only_the_far_one_is_odd():
    likeness = [*np.linspace(0.4, 0.6, 199), 0.1]
    (found,) = odd_images(images(["train"] * 200), similar(likeness))
    assert found.file_name == "199.jpg" and "0.10" in found.detail and 0 < found.score <= 1


def test_an_even_data_set_has_none():
    assert odd_images(images(["train"] * 200), similar(np.linspace(0.4, 0.6, 200))) == []


def test_few_images_are_not_judged():
    assert odd_images(images(["train"] * 20), similar([*np.linspace(0.4, 0.6, 19), 0.1])) == []
