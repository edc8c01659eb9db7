"""mAP of resampled images."""

import numpy as np

from sarb.auto.resample import draw, resampled_map
from sarb.metrics import average_precision


def case(seed=0, images=40, categories=3):
    random = np.random.RandomState(seed)
    scores = random.randn(images, categories).round(1)  # with equal scores
    return scores, random.choice([-1, 0, 1], (images, categories)).astype(np.int8)


def test_each_resample_is_map_of_the_repeated_images():
    scores, labels = case()
    counts = draw(len(scores), 5)
    assert counts.shape == (40, 6) and (counts.sum(0) == 40).all() and (counts[:, 0] == 1).all()
    found = resampled_map(scores, labels, counts)
    for number, column in enumerate(counts.T):
        rows = np.repeat(np.arange(40), column)
        expected = 100 * np.nanmean(average_precision(scores[rows], labels[rows]))
        np.testing.assert_allclose(found[number], expected)


def test_no_positive_is_nan_without_a_warning(recwarn):
    scores, labels = case()
    assert np.isnan(resampled_map(scores, -np.abs(labels), draw(40, 3))).all()
    one = np.full_like(labels, -1)
    one[0, 0] = 1
    some = resampled_map(scores, one, draw(40, 20))
    assert np.isfinite(some[0]) and np.isnan(some).any()
    assert not recwarn.list
