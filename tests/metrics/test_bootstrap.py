"""Intervals of mAP: each resample against the repeated images, the interval against its promise."""

import numpy as np
import pytest

from sarb.labels import LabelMatrix
from sarb.metrics import average_precision, bootstrap, evaluate, map_difference, map_interval
from sarb.metrics.bootstrap import Interval, centred, draw, resampled_map, spread


def case(seed=0, images=40, categories=3):
    random = np.random.RandomState(seed)
    scores = random.randn(images, categories).round(1)  # with equal scores
    return scores, random.choice([-1, 0, 1], (images, categories)).astype(np.int8)


def drawn(images, resamples, seed=0):
    return np.concatenate([*draw(images, resamples, seed)], axis=1)


def test_each_resample_is_map_of_the_repeated_images():
    scores, labels = case()
    counts = drawn(40, 5)
    assert counts.shape == (40, 6) and (counts.sum(0) == 40).all() and (counts[:, 0] == 1).all()
    found = spread(scores, labels, 5)
    for number, column in enumerate(counts.T):
        rows = np.repeat(np.arange(40), column)
        expected = 100 * np.nanmean(average_precision(scores[rows], labels[rows]))
        np.testing.assert_allclose(found[number], expected)


def test_blocks_and_seeds(monkeypatch):
    scores, labels = case()
    whole = spread(scores, LabelMatrix(labels, ["a", "b", "c"], list(map(str, range(40)))), 20, seed=3)
    monkeypatch.setattr(bootstrap, "COUNTS", 3 * 40)
    np.testing.assert_array_equal(spread(scores, labels, 20, seed=3), whole)
    assert [block.shape for block in draw(40, 7)] == [(40, 3), (40, 3), (40, 2)]
    assert (spread(scores, labels, 20, seed=4)[1:] != whole[1:]).any()


def test_a_category_without_a_positive_is_left_out_and_none_at_all_is_nan(recwarn):
    scores, labels = case()
    labels[:, 1] = -1
    assert spread(scores, labels, 0) == pytest.approx([evaluate(scores, labels)["mAP"]])
    assert np.isnan(spread(scores, -np.abs(labels), 3)).all()
    one = np.full_like(labels, -1)
    one[0, 0] = 1
    some = resampled_map(scores, one, drawn(40, 20))
    assert np.isfinite(some[0]) and np.isnan(some).any()
    assert np.isfinite(map_interval(scores, one, 20)).all()
    assert not recwarn.list


def test_the_interval_is_around_the_map_where_plain_percentiles_are_above_it():
    random = np.random.RandomState(0)
    labels = np.where(random.random_sample((300, 200)) < 0.02, 1, -1).astype(np.int8)
    scores = labels + 1.5 * random.standard_normal(labels.shape)
    values = spread(scores, labels)
    assert np.percentile(values[1:], 2.5) > values[0]
    found = map_interval(scores, labels)
    assert found.low < found.value < found.high
    assert found.value == pytest.approx(evaluate(scores, labels)["mAP"])


def test_one_image_has_no_interval_and_a_perfect_ranking_stays_within_100():
    assert map_interval([[1.0]], [[1]]) == pytest.approx((100, np.nan, np.nan), nan_ok=True)
    scores, labels = case()
    good = map_interval(labels + 1.0 * scores, labels, 200)
    assert good.value < good.high <= 100
    assert map_interval(labels * 1.0, labels, 50) == (100, 100, 100)


def test_the_interval_holds_the_truth_about_as_often_as_it_says():
    """The mAP that tests of 150 images give on average lies in the interval of most single tests."""
    random = np.random.RandomState(0)

    def sample(images):
        labels = np.where(random.random_sample((images, 3)) < 0.15, 1, -1).astype(np.int8)
        return labels + 1.5 * random.standard_normal(labels.shape), labels

    truth = np.mean([evaluate(*sample(150))["mAP"] for _ in range(1000)])
    found = [map_interval(*sample(150), resamples=200, seed=trial) for trial in range(200)]
    inside = np.mean([interval.low <= truth <= interval.high for interval in found])
    assert 0.87 <= inside <= 0.99


def test_a_difference_is_paired_and_pools_models():
    random = np.random.RandomState(0)
    labels = np.where(random.random_sample((200, 3)) < 0.4, 1, -1).astype(np.int8)
    noise = random.standard_normal((4, *labels.shape))
    good = [labels + noise[0], labels + noise[1]]
    poor = [0.2 * labels + noise[2], 0.2 * labels + noise[3]]
    won = map_difference(good, poor, labels, resamples=100)
    means = [np.mean([evaluate(scores, labels)["mAP"] for scores in kind]) for kind in (good, poor)]
    assert won.value == pytest.approx(means[0] - means[1])
    assert 0 < won.low < won.value < won.high and not won.zero_inside
    assert map_difference(good, good, labels, resamples=20) == (0, 0, 0)
    near = map_difference([good[0]], [good[0] + 0.01 * noise[2]], labels)
    alone = map_interval(good[0], labels)
    assert near.high - near.low < (alone.high - alone.low) / 5


def test_what_zero_inside_means():
    nan = float("nan")
    cases = [
        Interval(1, -1, 3),
        Interval(0, 0, 0),
        Interval(1, nan, nan),
        Interval(2, 1, 3),
        Interval(-2, -3, -1),
    ]
    assert [interval.zero_inside for interval in cases] == [True, True, True, False, False]
    assert centred(np.array([3.0, np.nan])) == pytest.approx((3.0, nan, nan), nan_ok=True)
