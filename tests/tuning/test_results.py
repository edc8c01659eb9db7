"""What a search leaves behind."""

import csv
from pathlib import Path

import pytest

from sarb.errors import SarbError
from sarb.report.style import png, style
from sarb.tuning.results import SHOWN, Trial, Tuned, best_of, draw_history, page_text, text, write_trials


def trial(number, value=None, state="finished", **values):
    return Trial(
        number, state, {"lr": 0.1, **values}, value, 2.5, 0, Path(f"out/trial-{number}"), "sarb train"
    )


TRIALS = (trial(0, 40.0), trial(1, state="failed"), trial(2, 60.0), trial(3, 60.0), trial(4, state="running"))


def test_the_best_is_the_earliest_of_equals():
    assert best_of(TRIALS) is TRIALS[2]
    tuned = Tuned(TRIALS, "mAP", Path("out"))
    assert tuned.best is TRIALS[2] and str(tuned) == "best of 5 trials: mAP 60.00 in trial 2 (lr 0.1)"


def test_without_a_finished_trial_there_is_no_best():
    assert best_of(TRIALS[1:2]) is None
    with pytest.raises(SarbError, match=r"no trial has finished; trials\.csv has the reasons"):
        _ = Tuned(TRIALS[1:2], "mAP", Path("out")).best


def test_one_line_per_trial(tmp_path):
    write_trials(tmp_path, TRIALS, "OF1")
    with (tmp_path / "trials.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [(row["trial"], row["state"], row["valid_OF1"]) for row in rows] == [
        ("0", "finished", "40.0"),
        ("1", "failed", ""),
        ("2", "finished", "60.0"),
        ("3", "finished", "60.0"),
        ("4", "running", ""),
    ]
    assert {row["command"] for row in rows} == {"sarb train"} and rows[0]["seconds"] == "2.5"


def test_the_page_names_what_was_found_and_counts_only_what_ended():
    page = page_text(TRIALS, "mAP", "my <data>", "sarb tune", "About.", "sarb train best.toml")
    assert "4 trials: 3 finished, 1 failed. About." in page and "my &lt;data&gt;" in page
    assert "trial 2, mAP 60.00" in page and "$ sarb train best.toml" in page
    rows = [line.split(" | ")[0] for line in page.splitlines() if line.startswith("| ")]
    assert rows[2:] == ["| 2", "| 3", "| 0", "| 1"]
    assert "Best:" not in page_text(TRIALS[1:2], "mAP", "data", "", "About.", None)


def test_a_long_table_is_cut():
    page = page_text([trial(number, float(number)) for number in range(SHOWN + 5)], "mAP", "d", "", "", "x")
    assert page.count("\n| ") == SHOWN + 2 and "The best 30; all are in" in page


def test_the_history_shows_the_best_so_far():
    trials = [trial(0, 40.0), trial(1, 30.0), trial(2, 50.0), trial(3, state="pruned")]
    with style() as colours:
        figure = draw_history(trials, "mAP", "data", colours)
        assert png(figure).startswith(b"\x89PNG")
    lines = {line.get_label(): line for line in figure.axes[0].get_lines()}
    assert list(lines["best so far"].get_ydata()) == [40, 40, 50]
    assert list(lines["pruned"].get_xdata()) == [3]


def test_values_in_words():
    assert [text(value) for value in (0.123456, 3, True, None, "a")] == ["0.1235", "3", "true", "None", "a"]
