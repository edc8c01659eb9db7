import numpy as np
import pytest

from sarb.errors import ConfigError
from sarb.labelling.thresholds import (
    EXPECTED_WEIGHT,
    LEVELS,
    NEVER,
    best_f1,
    expected_for_precision,
    for_precision,
    implied_threshold,
    level_counts,
    precision_above,
    steady,
)
from sarb.labels import LabelMatrix
from tests.labelling.made_scores import make


@pytest.fixture(scope="module")
def case():
    _, labels, _, p = make(500, [1.0, 0.6, 1.5], [-1.0, -2.0, 0.5], known=0.6)
    return p, labels, level_counts(p, labels)


def outcome(p, labels, column, threshold):
    """Right and wrong of what is said to be present."""
    said = p[:, column] >= threshold
    return (said & (labels[:, column] > 0)).sum(), (said & (labels[:, column] < 0)).sum()


def test_counts(case):
    p, labels, counts = case
    assert counts.shape == (2, 3, LEVELS)
    for kind, code in enumerate((1, -1)):
        for column in range(3):
            inside = [
                int(p[row, column] * LEVELS) for row in range(500) if labels.values[row, column] == code
            ]
            assert counts[kind, column].tolist() == np.bincount(inside, minlength=LEVELS).tolist()
    assert level_counts(np.array([[1.0]]), LabelMatrix([[1]], ["a"]))[0, 0, LEVELS - 1] == 1


def test_best_f1_by_brute_force(case):
    p, labels, counts = case
    for column, threshold in enumerate(best_f1(counts, weight=0)):
        positives = (labels.values[:, column] > 0).sum()

        def f1(at, column=column, positives=positives):
            right, wrong = outcome(p, labels.values, column, at)
            return 2 * right / (positives + right + wrong)

        assert f1(threshold) == max(f1(level / LEVELS) for level in range(LEVELS))


def test_f1_of_a_category_without_labels_is_the_shared_one(case):
    _, _, counts = case
    counts = counts.copy()
    counts[:, 1] = 0
    together = best_f1(counts.sum(1, keepdims=True), weight=0)
    assert best_f1(counts)[1] == together[0]
    assert best_f1(counts * 1000)[0] == best_f1(counts, weight=0)[0]


def test_precision_by_brute_force(case):
    p, labels, counts = case
    for column, threshold in enumerate(for_precision(counts, 0.753, weight=0.001, caution=0)):
        shares = []
        for level in range(LEVELS):
            right, wrong = outcome(p, labels.values, column, level / LEVELS)
            shares.append(right / (right + wrong) if right + wrong else 0)
        lowest = next((level for level, share in enumerate(shares) if share >= 0.753), NEVER) / LEVELS
        assert threshold == pytest.approx(lowest)


def test_few_labels_take_the_precision_of_all(case):
    _, _, counts = case
    counts = counts.copy()
    counts[:, 2] = 0
    (found, wrong) = counts.sum(1)[:, 150:].sum(1)
    said = sum((level + 0.5) / LEVELS * counts[:, :, level].sum() for level in range(150, LEVELS)) / (
        found + wrong
    )
    mean = (found + EXPECTED_WEIGHT * said) / (found + wrong + EXPECTED_WEIGHT)
    spread = np.sqrt(mean * (1 - mean) / (found + wrong + EXPECTED_WEIGHT + 1))
    assert precision_above(counts)[2, 150] == pytest.approx(mean - spread)
    lucky = np.zeros((2, 2, LEVELS), np.int64)
    lucky[0, 0, 100], lucky[1, 1, 100], lucky[0, 1, 100] = (
        1,
        50,
        50,
    )  # one right of one, and half right of a hundred
    assert (for_precision(lucky, 0.9) > 0.9).all()


def test_reaches_the_precision_on_new_labels():
    slope, offset = np.full(40, 1.5), np.linspace(-4, -2, 40)
    _, labels, truth, p = make(3_000, slope, offset, known=0.1)
    thresholds = for_precision(level_counts(p, labels), 0.9)
    filled = (p >= thresholds) & ~labels.known
    assert 0.88 < (truth.values > 0)[filled].mean() < 0.97
    assert filled.sum() > 300


def test_a_share_is_wanted():
    with pytest.raises(ConfigError, match=r"did you mean 0\.9"):
        for_precision(np.zeros((2, 1, LEVELS), np.int64), 90)


def test_from_probabilities_alone():
    p = np.array([[0.9, 0.2], [0.8, np.nan], [0.4, 0.1]])
    assert expected_for_precision(p, 0.85).tolist() == [0.8, NEVER]
    assert expected_for_precision(p, 0.7).tolist() == [0.4, NEVER]
    assert expected_for_precision(p, 0.0).tolist() == [0.4, 0.1]
    assert expected_for_precision(np.zeros((0, 2)), 0.5).tolist() == [NEVER, NEVER]


def counts_at(present, absent):
    """Counts (2, 1, L) of one category, from level -> number."""
    counts = np.zeros((2, 1, LEVELS), np.int64)
    for kind, levels in enumerate((present, absent)):
        for level, number in levels.items():
            counts[kind, 0, level] = number
    return counts


def test_of_equally_good_thresholds_the_nearest_is_taken():
    counts = counts_at({180: 5}, {10: 5})
    assert best_f1(counts, near=0.45)[0] == 0.45
    assert best_f1(counts, near=0.02)[0] == 11 / LEVELS  # just above those that are absent
    assert best_f1(counts, near=0.99)[0] == 180 / LEVELS


def test_the_implied_threshold_is_half_of_the_best_f1():
    assert implied_threshold(counts_at({180: 5}, {10: 5})) == 0.5
    assert implied_threshold(counts_at({100: 6}, {100: 2})) == pytest.approx(0.5 * 2 * 6 / (6 + 8))
    assert implied_threshold(counts_at({}, {100: 2})) == 0.5


@pytest.mark.parametrize("many", [1, 1000])
def test_few_labels_of_the_rarer_kind_move_a_threshold_only_a_little(many):
    """All are found at 0.06 only, but with one absent label that is no reason to go there."""
    counts = counts_at({12: 8 * many, 180: 2 * many}, {2: many})
    own, implied = best_f1(counts, near=0.5)[0], implied_threshold(counts)
    (found,) = steady(counts)
    weight = many / (many + 10)
    assert found == pytest.approx(weight * own + (1 - weight) * implied)
    assert own <= 0.06 and (found > 0.4 if many == 1 else found < 0.07)


def test_equal_probabilities_join_together_or_not_at_all():
    p = np.array([[0.9], [0.8], [0.8], [0.8]])
    assert expected_for_precision(p, 0.84)[0] == 0.9  # with one of the three it would be 0.85, with all 0.825
    assert expected_for_precision(p, 0.82)[0] == 0.8
