"""The nearest training images."""

import numpy as np

from sarb.auto.neighbours import bank_labels, bank_rows, nearest
from sarb.auto.parts import Parts
from tests.auto.made import made


def _units(count, width=6, seed=0):
    rows = np.random.RandomState(seed).randn(count, width)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def test_an_image_is_never_its_own_neighbour():
    bank = _units(30)
    for own in (np.arange(30), None):
        found = nearest(bank, bank, own, count=5)
        assert (found.rows != np.arange(30)[:, None]).all()
        np.testing.assert_allclose(found.weights.sum(1), 1)


def test_weights_by_an_obvious_loop():
    bank = _units(20)
    query = _units(3, seed=1)
    found = nearest(query, bank, count=4)
    labels = np.random.RandomState(2).rand(20, 3)
    for row in range(3):
        order = np.argsort(-(bank @ query[row]))
        cosine = (bank @ query[row])[order]
        raw = np.exp(cosine[:4] / 0.1) - np.exp(cosine[4] / 0.1)
        expected = (raw / raw.sum()) @ labels[order[:4]]
        np.testing.assert_allclose(found.average(labels)[row], expected, atol=1e-4)


def test_two_images_and_a_bounded_bank():
    bank = _units(2)
    found = nearest(bank, bank, np.arange(2))
    np.testing.assert_array_equal(found.rows, [[1], [0]])
    assert len(bank_rows(1000, 10)) == 10
    assert bank_rows(1000, 10)[-1] == 999
    assert len(set(bank_rows(1000, 10))) == 10


def test_a_model_sees_predictions_where_a_label_is_held_out():
    _, labels, _, _, _ = made()
    parts = Parts.of(labels, 3)
    scores = np.zeros((4, *labels.shape))
    held = bank_labels(parts, scores, 1)
    hidden = (parts.numbers == 1) | ~parts.known
    assert (held[hidden] == 0.5).all()
    assert set(np.unique(held[~hidden])) == {0.0, 1.0}
