import numpy as np
import pytest

from sarb.errors import DataError
from sarb.labelling.reliability import (
    base_rates,
    brier_score,
    calibration_error,
    equal_mass_bins,
    reliability_table,
)
from sarb.labels import LabelMatrix
from tests.labelling.made_scores import make


def slow_error(p, labels, bins):
    """Per category: sort, cut, compare; entries of equal probability go where the first of them goes."""
    result = []
    for column in range(p.shape[1]):
        known = sorted(
            (p[row, column], labels[row, column] > 0) for row in range(len(p)) if labels[row, column]
        )
        members = {}
        for value, present in known:
            first = next(at for at, (other, _) in enumerate(known) if other == value)
            members.setdefault(first * bins // len(known), []).append((value, present))
        gaps = [abs(sum(v for v, _ in m) - sum(y for _, y in m)) for m in members.values()]
        result.append(sum(gaps) / len(known) if known else np.nan)
    return result


@pytest.mark.parametrize(("decimals", "together"), [(1, True), (9, True), (9, False)])
def test_against_a_slow_loop(decimals, together):
    random = np.random.default_rng(0)
    p, labels = random.random((70, 4)).round(decimals), random.integers(-1, 2, (70, 4))
    labels[:, 3] = 0
    found = calibration_error(p, labels, bins=7, together=together)
    np.testing.assert_allclose(found, slow_error(p, labels, 7))


def test_bins_have_equal_mass_and_keep_ties():
    assert equal_mass_bins(np.array([0.4, 0.1, 0.3, 0.2]), 2).tolist() == [1, 0, 1, 0]
    assert equal_mass_bins(np.array([0.5] * 9), 3, together=True).tolist() == [0] * 9
    divided = equal_mass_bins(np.array([0.5] * 300), 3)
    assert np.bincount(divided).tolist() == [100] * 3 and 20 < divided[:100].sum() - 50 < 90
    assert equal_mass_bins(np.array([]), 3).tolist() == []


def test_true_probabilities_have_a_small_error_and_others_a_large_one():
    _, labels, _, truth = make(20_000, [1.0, 0.5], [-1.0, 0.0])
    assert calibration_error(truth, labels).max() < 0.02
    assert calibration_error(truth**0.5, labels).min() > 0.1
    assert (brier_score(truth, labels) < brier_score(truth**0.5, labels)).all()


def test_brier_by_hand():
    p, labels = [[0.8, 0.5], [0.4, 0.5]], [[1, 0], [-1, 0]]
    assert brier_score(p, labels)[0] == pytest.approx((0.04 + 0.16) / 2)
    assert np.isnan(brier_score(p, labels)[1]) and np.isnan(calibration_error(p, labels)[1])


def test_base_rates():
    labels = LabelMatrix([[1, 0], [-1, 0], [-1, 0], [0, 0]], ["a", "b"])
    assert base_rates(labels).tolist() == pytest.approx([1 / 3, 1 / 3])


def test_table_counts_every_known_entry():
    _, labels, _, p = make(400, [1.0, 2.0], [0.0, -2.0], known=0.5)
    rows = reliability_table(p, labels)
    assert sum(row[2] for row in rows) == labels.known.sum()
    mean = sum(row[0] * row[2] for row in rows) / labels.known.sum()
    assert mean == pytest.approx(p[labels.known].mean())
    assert sum(row[1] * row[2] for row in rows) == pytest.approx((labels.values > 0).sum())
    assert reliability_table(p, np.zeros_like(labels.values)) == []


def test_shapes_must_agree():
    with pytest.raises(DataError, match="shape"):
        calibration_error(np.zeros((2, 2)), np.zeros((3, 2)))
