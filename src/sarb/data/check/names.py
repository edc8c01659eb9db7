"""Check image and category names: unusable, duplicate, or too similar."""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sarb.data.check.problems import Problems
from sarb.labels import word_of


@dataclass(frozen=True)
class Rows:
    """The N rows that a reader has read.

    Args:
        names: N image names.
        values: (N, C) of -1/0/+1.
        categories: C names.
        splits: N words: train, test, valid or empty; None if the source has no splits.
        lines: N line numbers; None if the source has no lines.
    """

    names: Sequence[str]
    values: NDArray[np.int8]
    categories: Sequence[str]
    splits: Sequence[str] | None
    lines: Sequence[int] | None

    def line(self, row: int) -> int | None:
        """Return the line number of a row, or None."""
        return None if self.lines is None else self.lines[row]

    def split(self, row: int) -> str:
        """Return the split of a row, train by default."""
        return "train" if self.splits is None else self.splits[row] or "train"


def usable_rows(problems: Problems, rows: Rows) -> list[int]:
    """Return the rows to keep, the first of each image with a usable name; report the others."""
    first_row: dict[str, int] = {}
    kept = []
    for row, name in enumerate(rows.names):
        if not name.strip() or "\0" in name:
            problems.add(
                "empty" if not name.strip() else f"not a file name: {name[:60]!r}",
                kind="bad-name",
                line=rows.line(row),
                column="file_name",
            )
            continue
        key = os.path.normpath(name) if "./" in name or "//" in name else name
        first = first_row.setdefault(key, row)
        if first == row:
            kept.append(row)
        else:
            _note_repeat(problems, rows, first, row)
    return kept


def _note_repeat(problems: Problems, rows: Rows, first: int, second: int) -> None:
    name = rows.names[second]
    kind = "duplicate-row"
    text = f"file_name '{name}' occurs twice"
    if rows.lines is not None:
        text += f", on lines {rows.lines[first]} and {rows.lines[second]}"
    differ = np.flatnonzero(rows.values[first] * rows.values[second] < 0)
    if len(differ):
        kind = "conflicting-rows"
        column = int(differ[0])
        labels = " and ".join(word_of(int(rows.values[row, column])) for row in (first, second))
        more = f" (and {len(differ) - 1} more)" if len(differ) > 1 else ""
        text += f"; they disagree: '{rows.categories[column]}' is {labels}{more}"
    if rows.split(first) != rows.split(second):
        kind = "split-overlap"
        text += f"; once in {rows.split(first)}, once in {rows.split(second)}"
    problems.add(text, kind=kind, line=rows.line(second), column="file_name", value=name)


def check_categories(problems: Problems, categories: Sequence[str]) -> None:
    """Report names that are not allowed, or that people cannot tell apart."""
    seen: dict[str, str] = {}
    for name in categories:
        if "\0" in name:
            problems.add(
                f"category {name!r} contains a NUL character", kind="bad-name", column=name, value=name
            )
        if name != name.strip():
            problems.add(
                f"category {name!r} starts or ends with a space",
                kind="spaces",
                level="warning",
                column=name,
                value=name,
            )
        first = seen.setdefault(folded(name.strip()), name)
        if first != name:
            same = same_characters(first, name)
            difference = "their Unicode form (NFC/NFD)" if same else "case or spaces"
            problems.add(
                f"categories {first!r} and {name!r} differ only in {difference}",
                kind="similar-categories",
                level="error" if same else "warning",
                column=name,
                value=name,
            )


def folded(text: str) -> str:
    """Return a key that is the same for texts that differ only in case or Unicode form."""
    return unicodedata.normalize("NFC", text).casefold()


def same_characters(first: str, second: str) -> bool:
    """Return whether two texts are the same apart from their Unicode form."""
    return unicodedata.normalize("NFC", first) == unicodedata.normalize("NFC", second)
