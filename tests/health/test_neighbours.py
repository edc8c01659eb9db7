"""Blocked search against the obvious one."""

import numpy as np
import pytest

from sarb.health import neighbours
from sarb.health.neighbours import directions, nearest
from sarb.progress import Progress


@pytest.mark.parametrize(("images", "count"), [(1, 3), (2, 3), (5, 10), (40, 7)])
def test_nearest_equals_a_full_sort(images, count, monkeypatch):
    monkeypatch.setattr(neighbours, "ROWS", 6)
    monkeypatch.setattr(neighbours, "COLUMNS", 11)
    units = np.random.default_rng(0).normal(size=(images, 8)).astype(np.float32)
    units /= np.linalg.norm(units, axis=1, keepdims=True)
    found = nearest(units, Progress(False), count)
    assert found.rows.shape == (images, min(count, images - 1))
    cosines = units @ units.T
    for row in range(images):
        others = sorted(set(range(images)) - {row}, key=lambda other: -cosines[row, other])[:count]
        assert found.rows[row].tolist() == others
        assert found.cosines[row] == pytest.approx(cosines[row, others], abs=1e-6)


def test_directions_have_length_one_and_keep_images_apart():
    pooled = np.abs(np.random.default_rng(1).normal(size=(30, 12))).astype(np.float32)
    pooled[7] = pooled[3]
    units = directions(pooled)
    assert np.linalg.norm(units, axis=1) == pytest.approx(np.ones(30), abs=1e-5)
    assert units[3] @ units[7] == pytest.approx(1, abs=1e-5)
    assert nearest(units, Progress(False)).rows[3, 0] == 7
