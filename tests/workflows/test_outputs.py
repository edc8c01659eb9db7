import csv

import pytest

from sarb.errors import DataError
from sarb.labelling.suggestion import Question
from sarb.workflows.outputs import QUESTIONS, are_predictions, are_questions, check_output

LABELS = [["file_name", "cat", "dog"], ["a.jpg", "1", "0"], ["b.jpg", "0", "1.0"]]
WIDE = [["file_name", "cat", "dog"], ["a.jpg", "0.91", "0"], ["b.jpg", "1", "0.2"]]
LONG = [["file_name", "label", "probability"], ["a.jpg", "cat", "0.9"]]


def test_what_each_command_writes():
    assert list(Question._fields) == QUESTIONS
    assert are_predictions(WIDE) and are_predictions(LONG)
    assert are_predictions([["file_name", "label", "probability", "calibrated"]])
    assert are_questions([QUESTIONS, ["a.jpg", "cat", "1", "rare"]])


OTHERS = [
    LABELS,
    [],
    [["file_name"]],
    [["Datei", "cat"], ["a.jpg", "0.5"]],
    [["file_name", "cat"], ["a.jpg", ""]],
]


@pytest.mark.parametrize("rows", OTHERS)
def test_a_table_of_labels_is_not_an_output(rows):
    assert not are_predictions(rows) and not are_questions(rows)


def test_questions_with_a_column_of_answers_are_kept():
    assert not are_questions([[*QUESTIONS, "answer"], ["a.jpg", "cat", "1", "rare", "yes"]])


def test_only_an_own_file_is_replaced(tmp_path):
    file = tmp_path / "out.csv"
    check_output(file, are_predictions, "predictions")
    for rows, kept in ((WIDE, False), (LABELS, True)):
        with file.open("w", newline="", encoding="utf-8-sig") as opened:
            csv.writer(opened).writerows(rows)
        if not kept:
            check_output(file, are_predictions, "predictions")
            continue
        with pytest.raises(DataError, match=r"out\.csv: exists already .* write to another file"):
            check_output(file, are_predictions, "predictions")
    file.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(DataError, match="is not replaced"):
        check_output(file, are_questions, "questions")
