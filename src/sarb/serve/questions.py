"""The questions of a review: one per unknown label of the photos that are asked about."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sarb.errors import SarbError, unknown_name
from sarb.labels import UNKNOWN, LabelMatrix

#: orders of the wall -> what to sort by, the smallest first, given probabilities (n,)
ORDERS: dict[str, Callable[[NDArray[np.float64]], NDArray[np.float64]]] = {
    "likely": lambda probabilities: -probabilities,
    "doubtful": lambda probabilities: np.abs(probabilities - 0.5),
}


class StaleError(SarbError):
    """A question about labels that are no longer being served."""


@dataclass(frozen=True)
class Question:
    """One unknown label; ``image`` is its number in ``/api/images``."""

    id: str
    image: int
    file_name: str
    label: str
    category: int
    probability: float
    reason: str


class Questions:
    """The questions about a label matrix (N, C), by entry, by category or by id.

    An entry is the flat index row · C + column of one label.

    Args:
        labels: (N, C).
        entries: the entries to ask about, in the order of asking.
        probabilities: (N, C).
        reasons: entry -> why it is asked.
        asked: (N,) which photos are asked about; all by default.
        own_order: the name of that order, for the journal: ``"valuable"`` or ``"random"``.
    """

    def __init__(
        self,
        labels: LabelMatrix,
        entries: NDArray[np.int64],
        probabilities: NDArray[np.float64],
        reasons: Mapping[int, str],
        asked: NDArray[np.bool_] | None = None,
        own_order: str = "valuable",
    ) -> None:
        self.entries = entries
        self.probabilities = probabilities
        self.counts = np.bincount(entries % len(labels.categories), minlength=len(labels.categories))
        self.own_order = own_order
        self._labels = labels
        self._asked = np.ones(len(labels), bool) if asked is None else asked
        self._reasons = reasons
        self._rows = {name: row for row, name in enumerate(labels.paths)}
        self._columns = {name: column for column, name in enumerate(labels.categories)}
        self._sorted: dict[tuple[int, str | None], NDArray[np.int64]] = {}

    def __getitem__(self, entry: int) -> Question:
        row, column = divmod(entry, len(self._columns))
        file_name = self._labels.paths[row]
        label = self._labels.categories[column]
        checksum = hashlib.sha256(f"{file_name}\0{label}".encode()).hexdigest()[:10]
        return Question(
            id=f"{row}-{column}-{checksum}",
            image=row,
            file_name=file_name,
            label=label,
            category=column,
            probability=float(self.probabilities[row, column]),
            reason=self._reasons.get(entry, ""),
        )

    def column(self, category: str | None) -> int | None:
        """Return the column of a category; None stands for all categories."""
        if category is None:
            return None
        if category not in self._columns:
            raise SarbError(unknown_name("category", category, self._labels.categories))
        return self._columns[category]

    def in_order(self, column: int | None, order: str | None = None) -> NDArray[np.int64]:
        """Return the entries of one column, or of all, in their own order or in another of ``ORDERS``.

        Those of a column are kept in memory, since every answer needs them.
        """
        if order is not None and order not in ORDERS:
            raise SarbError(unknown_name("order", order, ORDERS))
        if column is None:
            if order is not None:
                raise SarbError(f"order '{order}' is for one category; choose a category")
            return self.entries
        if (column, order) not in self._sorted:
            self._sorted[column, order] = self._sort(column, order)
        return self._sorted[column, order]

    def _sort(self, column: int, order: str | None) -> NDArray[np.int64]:
        entries: NDArray[np.int64] = self.entries[self.entries % len(self._columns) == column]
        if order is None:
            return entries
        ranks = ORDERS[order](self.probabilities.ravel()[entries])
        ranked: NDArray[np.int64] = entries[np.argsort(ranks, kind="stable")]
        return ranked

    def in_column(self, entry: int, column: int | None) -> bool:
        """Return whether an entry belongs to a column; None stands for all columns."""
        return column is None or entry % len(self._columns) == column

    def asks_about(self, entry: int) -> bool:
        """Return whether the photo of an entry is among those asked about."""
        return bool(self._asked[entry // len(self._columns)])

    def entry_named(self, file_name: str, label: str) -> int | None:
        """Return the entry of a file and a label; None if the label is known or gone now."""
        row = self._rows.get(file_name)
        column = self._columns.get(label)
        if row is None or column is None or self._labels.values[row, column] != UNKNOWN:
            return None
        return row * len(self._columns) + column

    def entry_with_id(self, ident: str) -> int:
        """Return the entry of a question; raise if the id does not name an unknown label."""
        parts = ident.split("-")
        if len(parts) == 3 and all(part.isascii() and part.isdecimal() for part in parts[:2]):
            row = int(parts[0])
            column = int(parts[1])
            if row < len(self._rows) and column < len(self._columns):
                entry = row * len(self._columns) + column
                unknown = self._labels.values[row, column] == UNKNOWN
                if self[entry].id == ident and unknown and self.asks_about(entry):
                    return entry
        raise StaleError("this question does not belong to the labels being served now; reload the page")
