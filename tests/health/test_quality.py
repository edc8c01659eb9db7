"""Limits are absolute and relative to the data set."""

import numpy as np

from sarb.health.looks import CELLS, SMALL, Look
from sarb.health.quality import faulty_images
from tests.health.images import images


def usual(**changes):
    small = np.zeros((SMALL, SMALL), np.uint8)
    good = {"digest": b"", "side": 256, "sharpness": 0.8, "light": 0.8, "shade": 0.1, "small": small}
    colours = {"contrast": 0.5, "colours": np.zeros((CELLS, CELLS, 3), np.float32)}
    return Look(**{**good, **colours, **changes})


def kinds(looks):
    return {(found.kind, found.file_name) for found in faulty_images(images(["train"] * len(looks)), looks)}


def test_each_kind():
    good = [usual(sharpness=0.7 + 0.01 * place) for place in range(20)]
    bad = [
        usual(sharpness=0.3),
        usual(light=0.15),
        usual(shade=0.95, light=1.0),
        usual(light=0.5, shade=0.49, sharpness=float("nan"), contrast=0.03),
        usual(side=40),
        usual(light=0.5, shade=0.5, contrast=0.4),  # a drawing: a small shape on one tone
    ]
    expected = [
        ("blurry", "20.jpg"),
        ("dark", "21.jpg"),
        ("bright", "22.jpg"),
        ("blank", "23.jpg"),
        ("tiny", "24.jpg"),
    ]
    assert kinds([*good, *bad]) == set(expected)


def test_the_worst_comes_first_and_scores_are_shares():
    looks = [
        *(usual(sharpness=0.7 + 0.01 * place) for place in range(20)),
        usual(light=0.2, shade=0.0),
        usual(light=0.1, shade=0.0),
    ]
    first, second = faulty_images(images(["train"] * 22), looks)
    assert (first.file_name, second.file_name) == ("21.jpg", "20.jpg")
    assert 0 < second.score < first.score <= 1 and "10%" in first.detail


def test_a_data_set_that_is_all_like_that_has_no_fault():
    random = np.random.default_rng(0)
    looks = [
        usual(
            sharpness=float(random.uniform(0.3, 0.4)),
            light=float(random.uniform(0.18, 0.22)),
            shade=0.0,
            side=32,
        )
        for _ in range(50)
    ]
    assert kinds(looks) == set()
    assert kinds([usual(shade=0.93, light=1.0) for _ in range(50)]) == set()
