"""The ablation of the rungs on a few demo images."""

import pytest
from benchmarks.fits import read_csv
from benchmarks.rungs import main, rows

from tests.benchmarks.small import DEMO


def test_every_row_is_compared_with_one_above_it():
    names = [row.model for row in rows()]
    assert len(names) == len(set(names))
    for place, row in enumerate(rows()):
        assert names.index(row.against) <= place


def test_a_run_writes_the_table(tmp_path, capsys):
    out = tmp_path / "rungs.csv"
    options = ["--out", str(out), "--cells", "scenes5,demo", "--develop", "--image-size", "64", *DEMO]
    assert main([*options, "--masks", "1", "--residuals"]) == 0
    told = capsys.readouterr().out
    assert "give its folder with --scenes5" in told
    notes = {row["model"]: row["note"].split(": ")[1] for row in read_csv(out)}
    assert notes["probe"] == "probe"
    assert notes["+ student"] == "probe student"
    assert notes["all, strict"] == "probe student neighbours"
    table = {row["model"]: row for row in read_csv(tmp_path / "rungs-table.csv")}
    assert list(table) == list(notes)
    assert "chosen, names + residual SARB" in table
    assert table["probe"]["gain"] == ""
    gain = float(table["+ neighbours"]["mAP"]) - float(table["probe"]["mAP"])
    assert float(table["+ neighbours"]["gain"]) == pytest.approx(gain, abs=0.02)
