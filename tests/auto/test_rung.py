"""What a step reaches out of fold, and its row in the log."""

import time

import numpy as np
import pytest

from sarb.auto.judge import Gain, Judge
from sarb.auto.parts import Parts
from sarb.auto.rung import Rung, over_rates
from tests.auto.made import made


@pytest.fixture
def judge():
    return Judge.of(Parts.of(made()[1], 5, 0))


def test_a_rung_is_measured_by_the_judge(judge):
    scores = 2.0 * judge.parts.values + np.random.RandomState(0).randn(*judge.parts.values.shape)
    rung = Rung.of("probe", True, judge, scores, Gain(0.2, 0.1, 0.3), 0.3, time.perf_counter())
    assert (rung.mean_ap, rung.loss) == (judge.mean_ap(scores), judge.loss(scores))
    assert rung.spread[0] == pytest.approx(rung.mean_ap)
    row = rung.row()
    assert (row["rung"], row["kept"], row["gain"], row["low"], row["high"]) == ("probe", True, 0.2, 0.1, 0.3)
    assert row["mean_ap_low"] < row["mean_ap"] < row["mean_ap_high"] and np.isnan(row["ahead"])


def test_a_paired_difference_is_narrower_than_either_interval(judge):
    random = np.random.RandomState(1)
    scores = judge.parts.values + random.randn(*judge.parts.values.shape)
    close = scores + 0.05 * random.randn(*scores.shape)
    first = Rung.of("a", True, judge, scores, Gain(0, 0, 0), 0, 0.0)
    second = Rung.of("b", True, judge, close, Gain(0, 0, 0), 0, 0.0)
    row = second.row(first)
    assert row["ahead"] == pytest.approx(second.mean_ap - first.mean_ap, abs=1e-5)
    assert row["ahead_high"] - row["ahead_low"] < 0.5 * (row["mean_ap_high"] - row["mean_ap_low"])


def test_a_rung_without_resamples_has_no_interval():
    row = Rung("x", True, 50.0, 0.5, 0.1, 0.0, 0.2, 1.0, 2.0).row()
    assert row["mean_ap"] == 50 and np.isnan(row["mean_ap_low"]) and np.isnan(row["ahead_high"])


def test_the_rates_gain_nothing_over_the_rates(judge):
    rates = judge.parts.rates(judge.parts.count)
    flat = np.broadcast_to(np.log(rates / (1 - rates)), judge.parts.values.shape)
    assert abs(over_rates(judge, flat).mean) < 0.02
    assert over_rates(judge, 3.0 * judge.parts.values).low > 0.3
