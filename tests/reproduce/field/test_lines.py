import pytest

from sarb.errors import DataError
from sarb.reproduce.field.lines import CELLS, TRIALS, Lines
from sarb.reproduce.field.protocol import Job
from sarb.reproduce.field.tables import idle_rows, idle_sentence

TRIAL = {
    "row": "AN",
    "setting": "partial",
    "known": 0.1,
    "seed": 100,
    "trial": 1,
    "options": "lr=0.1",
    "data": "d",
}
CELL = {"row": "AN", "setting": "single-positive", "known": 1.0, "seed": 0, "options": "lr=0.1", "data": "d"}


@pytest.mark.parametrize(("columns", "line"), [(TRIALS, TRIAL), (CELLS, CELL)])
def test_what_is_written_is_read(tmp_path, columns, line):
    lines = Lines(tmp_path / "x.csv", columns)
    lines.add({**line, "setup": "s"})
    job = Job(line["row"], line["setting"], line["known"], line["seed"], line.get("trial"))
    again = Lines(tmp_path / "x.csv", columns)
    assert list(again.lines) == [job] and again.has(job, ["lr=0.1"]) and not again.has(job, ["lr=0.3"])
    again.add({**line, "options": "lr=0.3", "setup": "s"})
    assert len(again.lines) == 1 and again.has(job, ["lr=0.3"])
    again.check("d", {"AN": "s"})
    with pytest.raises(DataError, match="other data"):
        again.check("e", {})
    with pytest.raises(DataError, match="other settings"):
        again.check("d", {"AN": "t"})


def test_a_line_that_is_no_training_is_named(tmp_path):
    (tmp_path / "x.csv").write_text("row,setting,known,seed\nAN,partial,much,0\n")
    with pytest.raises(DataError, match=r"x\.csv: line 2"):
        Lines(tmp_path / "x.csv", CELLS)


def test_rows_that_complete_next_to_nothing_are_named(tmp_path):
    lines = Lines(tmp_path / "x.csv", CELLS)
    cell = {**CELL, "setting": "partial", "known": 0.1, "known_labels": 9000, "setup": "s"}
    for row, completed in (("SST", [0, 8]), ("DSRB", [0, 500]), ("EPR", [0, 0]), ("SPLC", [20000, 20000])):
        for seed, number in enumerate(completed):
            lines.add({**cell, "row": row, "seed": seed, "completed": number})
    rows = ["EPR", "SST", "DSRB", "SPLC"]
    assert idle_rows(lines, rows) == {("partial", 0.1): ["SST"]}  # EPR has nothing to complete
    assert "last epoch: SST (10 % known).**" in idle_sentence(lines, rows)
    assert idle_sentence(lines, ["DSRB"]) == ""
