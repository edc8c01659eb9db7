"""results.csv: whole, sorted, never mixed; means and deviations."""

import csv
import statistics

import pytest

from sarb.errors import DataError
from sarb.reproduce.cells import Cell
from sarb.reproduce.names import ORDER
from sarb.reproduce.results import COLUMNS, Number, Results, summary
from tests.reproduce.hand import SMALL, line, results

REQUIRED = {
    "dataset",
    "network",
    "method",
    "backbone",
    "known",
    "seed",
    "mAP",
    "mAP_interpolated",
    "OP",
    "OR",
    "OF1",
    "CP",
    "CR",
    "CF1",
    "epochs",
    "seconds",
    "command",
}


def test_the_file_is_the_same_in_whatever_order_cells_finish(tmp_path):
    first = results(tmp_path / "a", *SMALL)
    second = results(tmp_path / "b", *reversed(SMALL))
    assert first.path.read_bytes() == second.path.read_bytes()
    with first.path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["row"], row["known"], row["seed"]) for row in rows][:4] == [
        ("SSGRL", "0.1", "0"),
        ("SSGRL", "0.5", "0"),
        ("KGGR", "0.1", "0"),
        ("Pooled", "0.1", "0"),
    ]
    assert REQUIRED <= set(rows[0]) == set(COLUMNS)


def test_it_is_read_back_and_a_repeated_cell_replaces_the_old(tmp_path):
    results(tmp_path, *SMALL)
    again = Results(tmp_path / "results.csv", ORDER)
    assert len(again.lines) == len(SMALL)
    again.add(line("Ours", 0.1, 0, 51.0))
    assert len(again.lines) == len(SMALL)
    assert again.values("Ours", 0.1, "mAP") == {0: 51.0, 1: 54.0}


def test_a_broken_file_is_refused(tmp_path):
    (tmp_path / "results.csv").write_text("row,known,seed\nOurs,much,0\n")
    with pytest.raises(DataError, match="line 2 is not the result"):
        Results(tmp_path / "results.csv", ORDER)


def test_other_data_and_other_settings_are_not_mixed(tmp_path):
    made = results(tmp_path, *SMALL)
    made.check("d", {"Ours": "setup of Ours", "GCN-ML": "whatever"})
    with pytest.raises(DataError, match="other data"):
        made.check("e", {})
    with pytest.raises(DataError, match="'Ours, 10 % known, seed 0' with other settings"):
        made.check("d", {"Ours": "another"})


def test_mean_and_deviation_over_seeds(tmp_path):
    made = results(tmp_path, *SMALL)
    assert made.number("Ours", 0.1, "mAP") == Number(52.0, pytest.approx(statistics.stdev([50, 54])))
    assert made.number("SSGRL", 0.1, "mAP") == Number(45.0)
    assert made.number("GCN-ML", 0.1, "mAP") is None
    assert summary([]) is None


def test_an_average_is_over_the_proportions_run(tmp_path):
    made = results(tmp_path, *SMALL)
    assert made.shares(["Ours", "Pooled"]) == [0.1, 0.5]
    expected = Number(56.5, pytest.approx(statistics.stdev([(50 + 60) / 2, (54 + 62) / 2])))
    assert made.average("Ours", [0.1, 0.5], "mAP") == expected
    assert made.average("KGGR", [0.1, 0.5], "mAP") is None, "a missing proportion leaves no average"
    made.add(line("SSGRL", 0.1, 1, 47.0))
    assert made.average("SSGRL", [0.1, 0.5], "mAP") == Number((46 + 59) / 2), (
        "no deviation where the seeds differ"
    )


def test_common_keeps_what_all_rows_have(tmp_path):
    part = results(tmp_path, *SMALL).common(["Ours", "SSGRL", "KGGR"])
    assert {cell for cell in part.lines if cell.row == "Ours"} == {Cell("Ours", 0.1, 0)}
