"""The rungs in words."""

import numpy as np
import pytest

from sarb.auto.told import not_tried, table, verdict

NAN = float("nan")


def row(rung, kept=True, mean_ap=50.0, **numbers):
    return {
        "rung": rung,
        "kept": kept,
        "mean_ap": mean_ap,
        "gain": 0.1,
        "low": 0.05,
        "high": 0.15,
        "seconds": 2.0,
        **numbers,
    }


def ladder(ahead=8.9, low=7.0, high=11.0):
    return [
        {"rung": "features", "kept": True, "seconds": 4.5},
        row("ten lines", False, 45.2),
        row("probe"),
        row("a rung of tomorrow", False, gain=-0.01, low=-0.02, high=0.004),
        row("final", True, 54.1, ahead=ahead, ahead_low=low, ahead_high=high),
    ]


def test_a_line_per_rung_and_aligned_columns():
    lines = table(ladder())
    assert len(lines) == 6 and lines[0].startswith("rung")
    assert len({len(line) for line in lines}) == 1  # seconds are right-aligned
    assert lines[1].split()[0] == "features" and "–" in lines[1]
    assert "the rates" in lines[2] and "baseline" in lines[2]
    assert "-0.0100 (-0.0200 to +0.0040)" in lines[4] and "kept rungs" in lines[4] and "left out" in lines[4]
    assert "ten lines" in lines[5] and "the model" in lines[5]


def test_text_from_a_file_gives_the_same_lines():
    texts = [{name: str(value) for name, value in each.items()} for each in ladder()]
    assert table(texts) == table(ladder()) and verdict(texts) == verdict(ladder())


@pytest.mark.parametrize(
    ("numbers", "ends"),
    [
        ((8.9, 7.0, 11.0), "ten lines of scikit-learn 45.2 (+8.9, 95 % interval +7.0 to +11.0)"),
        ((0.3, -0.7, 1.1), "(+0.3, 95 % interval -0.7 to +1.1): no clear difference"),
        ((-3.0, -5.0, -1.0), "(-3.0, 95 % interval -5.0 to -1.0): it is worse"),
        ((8.9, NAN, NAN), "ten lines of scikit-learn 45.2 (+8.9)"),
    ],
)
def test_the_verdict_says_plainly_who_is_ahead(numbers, ends):
    said = verdict(ladder(*numbers))
    assert said.startswith("final: 54.1 out-of-fold mAP on known labels") and said.endswith(ends)


def test_the_verdict_without_baseline_positives_or_final():
    rows = ladder()
    assert "were not fitted" in verdict([each for each in rows if each["rung"] != "ten lines"])
    assert "no positive label is known" in verdict([row("final", mean_ap=np.nan)])
    assert verdict(rows[:-1]) == ""


def test_rungs_that_were_not_tried_have_a_reason():
    everything = {"probe", "names", "bayes", "neighbours"}
    assert not_tried(everything, "names", concepts=True, tied=True) == ""
    assert not_tried(everything - {"names", "bayes"}, "strict", concepts=True, tied=False) == ""
    assert not_tried(everything - {"names"}, "names", concepts=True, tied=False) == (
        "rungs that were not tried: names (no category name is tied to a concept of the backbone's classifier)"
    )
    missing = not_tried({"probe"}, "names", concepts=False, tied=True)
    assert missing.count("the backbone has no classifier of its own") == 2 and "neighbours" in missing
