"""The times of the default on a few demo images; how long they are is not tested."""

from benchmarks.fits import read_csv
from benchmarks.times import main, summary

from tests.benchmarks.small import DEMO


def test_a_run_measures_fit_rungs_and_calibrate(tmp_path, capsys):
    out = tmp_path / "new" / "times.csv"
    assert main(["--data", "demo", "--out", str(out), "--masks", "1", "--image-size", "64", *DEMO]) == 0
    steps = [row["step"] for row in read_csv(out)]
    assert steps[:3] == ["fit", "rung ten lines", "rung probe"]
    assert steps[-1] == "calibrate"
    assert all(float(row["seconds"]) >= 0 for row in read_csv(out))
    assert "calibrate" in capsys.readouterr().out


def test_the_median_counts_and_a_limit_is_checked():
    text = summary({1: {"fit": 70.0}, 2: {"fit": 61.0, "rung ridge": 1.0}, 3: {"fit": 2.0}})
    assert "61.00 s  OVER 60 s" in text
    assert "rung ridge" in text
    assert "5.00 s  under 10 s" in summary({1: {"calibrate": 5.0}})
