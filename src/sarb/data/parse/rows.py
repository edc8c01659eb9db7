"""Rows of a table with a header: find columns, and report rows and cells that do not fit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from sarb.data.assemble import SPLITS
from sarb.data.check.problems import Problems
from sarb.data.parse.messages import counted
from sarb.errors import data_option, did_you_mean

#: (line number, cells as text)
Rows = Iterator[tuple[int, list[str]]]


def first_columns(header: Sequence[str]) -> dict[str, int]:
    """Return name -> index of the first column with that name."""
    return {name: index for index, name in reversed(list(enumerate(header)))}


def full_rows(problems: Problems, rows: Rows, width: int) -> Rows:
    """Yield the rows that have ``width`` cells; report the others."""
    for line, row in rows:
        if len(row) == width:
            yield line, row
        else:
            problems.add(
                f"{counted(len(row), 'field')}, but the header has {width}", line=line, kind="bad-row"
            )


def split_of(
    problems: Problems, cell: str, line: int, column: str | None = None, file: Path | None = None
) -> str:
    """Return train, test or valid for the word in a cell; report any other word."""
    word = cell.strip()
    if word.lower() not in SPLITS:
        expected = "train, test or valid"
        problems.add(
            f"value {word[:60]!r}; expected {expected}.{did_you_mean(word[:60], SPLITS)}",
            kind="bad-split",
            line=line,
            column=column,
            value=word[:60],
            expected=expected,
            file=file,
        )
    return SPLITS.get(word.lower(), "")


def other_delimiter(problems: Problems, header: Sequence[str]) -> str | None:
    """Return the delimiter of a header that is a single field with another delimiter in it, and report it."""
    mark = next((mark for mark in ";\t|" if len(header) == 1 and mark in header[0]), None)
    if mark is not None:
        option = data_option("delimiter", "tab" if mark == "\t" else mark)
        problems.add(f"the header contains no comma; add {option}", line=1, kind="bad-header")
        problems.raise_any()
    return mark
