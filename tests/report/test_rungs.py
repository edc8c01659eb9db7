"""The ladder as a figure."""

import io

import numpy as np
import pytest
from PIL import Image

from sarb.report.rungs import rungs
from sarb.report.style import THEMES


def row(rung, kept, mean_ap, gain=0.02, **more):
    spread = {"mean_ap_low": mean_ap - 3, "mean_ap_high": mean_ap + 3}
    ahead = {"ahead": mean_ap - 41, "ahead_low": mean_ap - 42, "ahead_high": mean_ap - 40}
    numbers = {"mean_ap": mean_ap, "gain": gain, "low": gain - 0.01, "high": gain + 0.01, **spread, **ahead}
    return {"rung": rung, "kept": kept, **numbers, **more}


STEPS = [row("probe", True, 42.0), row("names", True, 50.0), row("residual", False, 50.1, -0.001)]
ROWS = [
    {"rung": "features", "kept": True, "seconds": 3.0},
    row("ten lines", False, 41.0, ahead=np.nan, ahead_low=np.nan, ahead_high=np.nan),
    *STEPS,
    row("final", True, 50.0),
]


def pixels(picture, colour):
    """How many pixels have exactly this colour, ``#rrggbb``."""
    with Image.open(io.BytesIO(picture)) as image:
        assert image.format == "PNG" and min(image.size) > 100
        found = np.asarray(image.convert("RGB"))
    wanted = [int(colour[at : at + 2], 16) for at in (1, 3, 5)]
    return int((found == wanted).all(2).sum())


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_baseline_steps_and_final_model_have_their_colours(theme):
    steps, baseline, final = THEMES[theme].series[:3]
    picture = rungs(ROWS, theme=theme)
    assert all(pixels(picture, colour) > 50 for colour in (steps, baseline, final))


def test_a_rung_that_is_left_out_is_empty():
    colour = THEMES["light"].series[0]
    kept = [{**each, "kept": True} for each in ROWS]
    assert pixels(rungs(kept), colour) > pixels(rungs(ROWS), colour) + 50


def test_text_from_the_log_draws_the_same():
    texts = [{name: str(value) for name, value in each.items()} for each in ROWS]
    assert rungs(texts) == rungs(ROWS)


@pytest.mark.parametrize("rows", [ROWS[:1], ROWS[:2], STEPS[:1], STEPS])
def test_any_part_of_a_ladder_can_be_drawn(rows):
    assert pixels(rungs(rows), THEMES["light"].background) > 1000
