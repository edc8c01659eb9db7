"""Losses, scales and choices."""

import numpy as np
import pytest

from sarb.auto.judge import Judge
from sarb.auto.parts import Parts
from sarb.metrics.bootstrap import centred
from tests.auto.made import made


def _judge(**options):
    _, labels, full, _, _ = made(**options)
    return Judge.of(Parts.of(labels, 3)), full


def test_scale_and_shift_of_scores_do_not_matter():
    judge, full = _judge(images=400)
    scores = 1.0 * full + np.random.RandomState(0).randn(*full.shape)
    np.testing.assert_allclose(judge.loss(scores), judge.loss(3 * scores + 5), rtol=1e-3)
    slope, shifts = judge.temper(3 * scores + 5)
    assert 0.4 < slope < 1.2
    assert (shifts < 0).all()


def test_rates_alone_have_loss_one_and_the_truth_none():
    judge, full = _judge(images=400)
    np.testing.assert_allclose(judge.loss(np.zeros(full.shape)), 1, atol=0.01)
    assert judge.loss(10.0 * full) < 0.05


def test_unknown_entries_do_not_count():
    judge, full = _judge()
    scores = np.random.RandomState(0).randn(*full.shape)
    other = np.where(judge.parts.known, scores, 99.0)
    assert judge.loss(scores) == judge.loss(other)
    assert judge.gain(scores, other).mean == 0


def test_a_category_whose_evidence_is_wrong_gets_weight_zero():
    judge, full = _judge(images=600, known=0.8)
    evidence = 1.0 * full + np.random.RandomState(1).randn(*full.shape)
    evidence[:, 2] *= -1
    base = np.random.RandomState(2).randn(*full.shape) + 0.5 * full
    weights = np.array([0.0, 0.5, 1.0])
    chosen = judge.choose(np.stack([base + weight * evidence for weight in weights]), weights)
    assert (chosen[:, [0, 1, 3]] > 0).all()
    assert (chosen[:, 2] == 0).all()
    shared = judge.choose(np.stack([base + weight * evidence for weight in weights]), weights, 1e6)
    assert (shared == shared[:, :1]).all()


def test_the_interval_of_map_is_around_it():
    """Plain percentiles would be too high where positives are few."""
    labels = made(images=200, known=0.1)[1]
    judge = Judge.of(Parts.of(labels, 5, 0))
    scores = labels.values + 2 * np.random.RandomState(0).randn(*labels.shape)
    spread = judge.spread(scores)
    found = centred(spread)
    assert found.value == pytest.approx(judge.mean_ap(scores)) and found.low < found.value < found.high
    np.testing.assert_array_equal(spread, judge.spread(scores))
    assert centred(np.array([3.0, np.nan])) == pytest.approx((3.0, np.nan, np.nan), nan_ok=True)


def test_with_very_many_labels_there_is_no_interval_of_map(monkeypatch):
    monkeypatch.setattr("sarb.auto.judge.MOST_ENTRIES", 5)
    labels = made()[1]
    assert Judge.of(Parts.of(labels, 5, 0)).spread(np.random.RandomState(0).randn(*labels.shape)).shape == (
        1,
    )
