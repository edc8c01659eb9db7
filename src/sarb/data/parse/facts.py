"""Collect labels one at a time: this image shows that category."""

from __future__ import annotations

from array import array
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sarb.data.check.problems import Problems, fault
from sarb.data.parse.messages import first_here
from sarb.errors import data_option, did_you_mean
from sarb.labels import UNKNOWN, word_of

#: refuse a larger matrix; this one takes 8 GB
MOST_ENTRIES = 8_000_000_000


class Facts:
    """Collects facts (image, category, label, line) and turns them into a label matrix.

    A fact takes 17 bytes, so the tens of millions of rows of Open Images fit in memory. A repeated fact
    counts once; facts that contradict each other are reported with both lines.

    Args:
        problems: collects the problems of the file.
        declared: the categories, in order; any other name is reported with the closest match. None: every
            name that occurs is a category, in alphabetical order.
    """

    def __init__(self, problems: Problems, declared: Sequence[str] | None = None) -> None:
        self.problems = problems
        self.declared = declared is not None
        self.images: dict[str, int] = {}
        self.columns: dict[str, int] = {name: number for number, name in enumerate(declared or ())}
        self.splits: list[str] = []
        self.lines: list[int] = []
        self._rows = array("i")
        self._columns = array("i")
        self._labels = array("b")
        self._fact_lines = array("q")
        self._strangers: dict[str, tuple[int, int]] = {}

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def names(self) -> list[str]:
        """N image names, in the order in which they were added."""
        return list(self.images)

    def image(self, name: str, split: str = "", line: int = 0) -> int:
        """Return the row of an image, adding it if it is new."""
        row = self.images.setdefault(name, len(self.images))
        if row == len(self.splits):
            self.splits.append(split)
            self.lines.append(line)
        return row

    def say(self, row: int, category: str, label: int, line: int = 0) -> None:
        """Record that image ``row`` has ``label`` for a category."""
        column = self.columns.get(category)
        if column is None:
            if self.declared:
                first, times = self._strangers.get(category, (line, 0))
                self._strangers[category] = first, times + 1
                return
            column = self.columns[category] = len(self.columns)
        self._rows.append(row)
        self._columns.append(column)
        self._labels.append(label)
        self._fact_lines.append(line)

    def matrix(self, rest: int, conflict: int | None = None) -> tuple[NDArray[np.int8], list[str]]:
        """Return labels (N, C) and the C categories.

        Args:
            rest: label of an entry without a fact.
            conflict: label of an entry with contradictory facts; None reports them as problems.
        """
        self._note_strangers()
        size = len(self.images) * len(self.columns)
        if size > MOST_ENTRIES:
            raise fault(
                self.problems.source,
                f"{len(self.images):,} images × {len(self.columns):,} categories do not fit in memory; "
                f"choose fewer categories with {data_option('categories', 'FILE')}",
                kind="too-large",
            )
        names = list(self.columns) if self.declared else sorted(self.columns)
        # columns are numbered in the order of arrival; map that number to the final column
        final = np.empty(len(names), np.int32)
        final[[self.columns[name] for name in names]] = np.arange(len(names), dtype=np.int32)
        rows = np.asarray(self._rows)
        columns = final[np.asarray(self._columns)]
        values = np.full((len(self.images), len(names)), rest, np.int8)
        labels = np.asarray(self._labels)
        values[rows, columns] = labels
        self._settle(values, names, rows, columns, labels, conflict)
        return values, names

    def _settle(
        self,
        values: NDArray[np.int8],
        categories: list[str],
        rows: NDArray[np.int32],
        columns: NDArray[np.int32],
        labels: NDArray[np.int8],
        conflict: int | None,
    ) -> None:
        """Find facts that a later fact about the same entry contradicts."""
        other = np.flatnonzero(values[rows, columns] != labels)
        if conflict is not None:
            values[rows[other], columns[other]] = conflict
            return
        names = list(self.images) if len(other) else []
        limit = self.problems.limit
        for number, fact in enumerate(other[:limit].tolist()):
            row = int(rows[fact])
            column = int(columns[fact])
            last = int(np.flatnonzero((rows == row) & (columns == column))[-1])
            first_line = self._fact_lines[fact]
            last_line = self._fact_lines[last]
            earlier = f"{word_of(int(labels[fact]))} on line {first_line}"
            later = f"{word_of(int(values[row, column]))} on line {last_line}"
            self.problems.add(
                f"'{names[row]}': '{categories[column]}' is {earlier} but {later}",
                kind="conflict",
                line=last_line,
                value=categories[column],
                times=1 + (len(other) - limit if number == limit - 1 else 0),
            )
        values[rows[other], columns[other]] = UNKNOWN

    def _note_strangers(self) -> None:
        for number, (name, (line, times)) in enumerate(self._strangers.items()):
            # finding the closest match is slow, so do it only for the names that are shown
            near = did_you_mean(name, self.columns) if number < self.problems.limit else ""
            self.problems.add(
                f"unknown category '{name}'{first_here(times)}.{near}",
                kind="unknown-category",
                line=line or None,
                value=name,
            )
