import math

import numpy as np
import pytest

from sarb.labels import LabelMatrix
from sarb.metrics import evaluate
from sarb.metrics.bootstrap import Interval, spread
from sarb.reproduce.field.ranking import Block, critical_difference, inside_the_noise, standing


@pytest.fixture(scope="module")
def labels():
    values = np.where(np.random.RandomState(0).random_sample((300, 6)) < 0.3, 1, -1)
    return LabelMatrix(values, [str(number) for number in range(6)])


def scores(labels, noise, seed):
    return labels.values + noise * np.random.RandomState(seed).standard_normal(labels.shape)


def place(found, labels, resamples):
    return standing(
        {
            block: {row: spread(values, labels, resamples) for row, values in rows.items()}
            for block, rows in found.items()
        }
    )


def test_ranks_and_differences(labels):
    noises = {"best": 1.0, "same": 1.02, "worst": 4.0}
    found = {
        Block("partial", 0.1, seed): {
            row: scores(labels, noise, 10 * seed + number)
            for number, (row, noise) in enumerate(noises.items())
        }
        for seed in (1, 2)
    }
    where = place(found, labels, 200)
    assert where.blocks == 2 and set(where.rows) == set(noises) and where.rows[-1] == "worst"
    measured = {
        row: np.mean([evaluate(found[block][row], labels)["mAP"] for block in found]) for row in noises
    }
    behind = where.behind["partial", 0.1]
    top = max(measured.values())
    for row, interval in zip(where.rows, behind, strict=True):
        assert interval.value == pytest.approx(measured[row] - top, abs=1e-9)
        assert interval.low <= interval.value <= interval.high
    assert where.ranks[-1].value == 3 and 1 <= where.ranks[0].low <= where.ranks[0].value
    assert set(inside_the_noise(where.rows, behind)) == {"best", "same"}


def test_equal_scores_share_a_rank(labels):
    same = scores(labels, 1.0, 0)
    where = place({Block("partial", 0.1, 0): {"a": same, "b": same}}, labels, 50)
    assert [interval.value for interval in where.ranks] == [1.5, 1.5]
    assert math.isnan(where.critical)


def test_a_row_that_lacks_a_block_is_not_ranked(labels):
    full = {row: scores(labels, 1.0, seed) for seed, row in enumerate("abc")}
    blocks = {Block("partial", 0.1, 0): full, Block("partial", 0.5, 0): {"a": full["a"], "c": full["c"]}}
    assert set(place(blocks, labels, 20).rows) == {"a", "c"}
    assert place({Block("partial", 0.1, 0): {"a": full["a"]}}, labels, 20) is None
    assert standing({}) is None


def test_critical_difference():
    """Demšar 2006, Table 5: q for 5 % is 2.343 with three methods, 3.164 with ten."""
    assert critical_difference(3, 10) == pytest.approx(2.343 * math.sqrt(3 * 4 / 60), abs=1e-3)
    assert critical_difference(10, 7) == pytest.approx(3.164 * math.sqrt(10 * 11 / 42), abs=1e-3)


def test_a_difference_without_interval_is_noise():
    assert inside_the_noise(["a"], [Interval(0.0, math.nan, math.nan)]) == ["a"]
