"""Files that a command may replace: none but its own earlier output, and never a label table."""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path

from sarb.errors import DataError
from sarb.files import is_stdout, open_text

#: rows of an existing file that are looked at
LOOK = 50
QUESTIONS = ["file_name", "label", "score", "reason"]
CHOSEN = (["file_name", "label", "probability"], ["file_name", "label", "probability", "calibrated"])

#: rows of a CSV, the first one its header -> whether the command wrote it
Own = Callable[[Sequence[Sequence[str]]], bool]


def check_output(out: Path, own: Own, what: str) -> None:
    """Raise if ``out`` is there already and is not ``what`` the command itself writes.

    Args:
        out: where it is about to write.
        own: whether these rows are an earlier output.
        what: of the command, for the message.
    """
    if is_stdout(out) or not out.is_file() or own(_rows(out)):
        return
    raise DataError(
        f"{out}: exists already and does not hold {what}, so it is not replaced; write to another file, or remove it"
    )


def _rows(file: Path) -> list[list[str]]:
    """The first rows; none of a file that is not a CSV."""
    try:
        with open_text(file, "utf-8-sig") as opened:
            return list(islice(csv.reader(opened), LOOK))
    except (UnicodeDecodeError, csv.Error):
        return []


def are_questions(rows: Sequence[Sequence[str]]) -> bool:
    """Whether ``sarb suggest`` wrote this, and nobody has added a column."""
    return bool(rows) and list(rows[0]) == QUESTIONS


def are_predictions(rows: Sequence[Sequence[str]]) -> bool:
    """Whether ``sarb predict`` wrote this: chosen labels, or probabilities of which some are neither 0 nor 1.

    A table of labels has no such number.
    """
    if rows and list(rows[0]) in CHOSEN:
        return True
    cells = [cell for row in rows[1:] for cell in row[1:]]
    try:
        values = [float(cell) for cell in cells]
    except ValueError:
        return False
    inside = all(0 <= value <= 1 for value in values)
    return bool(values) and rows[0][0] == "file_name" and inside and any(value % 1 for value in values)
