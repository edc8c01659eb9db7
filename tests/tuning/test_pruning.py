"""When a trial is ended early."""

import pytest

from sarb.tuning.pruning import FIRST, PrunedError, Pruning, medians


def test_medians_need_enough_trials_and_end_where_one_of_them_ends():
    curves = [[number, 10 + number, 100][: 3 if number else 2] for number in range(FIRST)]
    assert medians(curves) == [2, 12]
    assert medians(curves[1:]) == []


def rows(*values):
    return [{"epoch": epoch, "valid_mAP": value} for epoch, value in enumerate(values)]


def test_the_best_so_far_counts():
    watch = Pruning("mAP", [10, 20, 30])
    watch.log(rows(10))
    watch.log(rows(25, 1))
    with pytest.raises(PrunedError):
        watch.log(rows(25, 1, 29.9))


def test_nothing_ends_without_limits_or_after_them():
    for limits, values in (([], (0, 0)), ([0], (5, 1, 1))):
        assert Pruning("mAP", limits).log(rows(*values)) is None  # and no PrunedError


def test_a_resumed_trial_is_ended_at_the_same_epoch():
    watch = Pruning("mAP", [10, 20])
    with pytest.raises(PrunedError):
        watch.open({}, rows(15, 16))
