"""Curves of a training from logs that are complete, poor, or odd."""

import numpy as np
import pytest

from sarb.report import curves
from sarb.runs.log import read_log
from tests.report.conftest import LOG, STEPS
from tests.report.test_plots import colours

ALL = [curves.loss_curves, curves.validation_curves, curves.blend_strengths, curves.completed_labels]


@pytest.fixture
def log(tmp_path):
    (tmp_path / "log.csv").write_text(LOG)
    return read_log(tmp_path / "log.csv")


@pytest.mark.parametrize("draw", ALL)
def test_every_curve_is_drawn(draw, log):
    assert colours(draw(log)) > 20


@pytest.mark.parametrize("draw", ALL)
@pytest.mark.parametrize("poor", [{}, {"seconds": np.array([1.0, 2.0])}])
def test_missing_columns_give_a_sentence(draw, poor):
    assert colours(draw(poor)) > 5


@pytest.mark.parametrize("draw", ALL)
def test_a_single_epoch_and_hundreds(draw, log):
    assert colours(draw({name: column[:1] for name, column in log.items()})) > 10
    assert (
        colours(
            draw({name: np.tile(column, 60) for name, column in log.items()} | {"epoch": np.arange(180.0)})
        )
        > 10
    )


def test_the_range_over_categories_is_a_band(log):
    plain = {key: value for key, value in log.items() if key not in ("alpha", "beta")} | {
        "alpha_mean": log["alpha"]
    }
    band = plain | {"alpha_min": log["alpha"] - 0.1, "alpha_max": log["alpha"] + 0.1}
    assert curves.blend_strengths(band) != curves.blend_strengths(plain)


def test_an_unknown_loss_term_gets_its_own_panel(log):
    extra = dict(log) | {"loss_asymmetric": log["loss"]}
    assert len(curves.loss_curves(extra)) > len(curves.loss_curves(log))


def test_steps_stand_behind_the_total(log, tmp_path):
    (tmp_path / "steps.csv").write_text(STEPS)
    steps = read_log(tmp_path / "steps.csv")
    assert curves.loss_curves(log, steps) != curves.loss_curves(log)
    assert curves.loss_curves(log, {"loss": np.array([1.0])}) == curves.loss_curves(log)


def test_has_curves(log):
    assert curves.has_curves(log, "valid_") and not curves.has_curves(log, "test_", "gamma")
    assert not curves.has_curves({"loss": np.array([np.nan])}, "loss")
