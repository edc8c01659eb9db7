"""One image of a split and where its source lists it, for the messages of the checks."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from sarb.data.dataset import Dataset


class Entry(NamedTuple):
    """Image number ``row`` of a split."""

    split: str
    dataset: Dataset
    row: int

    @property
    def name(self) -> str:
        """Name as written in the source."""
        return self.dataset.labels.paths[self.row]

    @property
    def path(self) -> Path:
        """Image file."""
        return self.dataset.root / self.name

    @property
    def where(self) -> dict[str, Any]:
        """File, line and name as keyword arguments for :meth:`Problems.add`."""
        return {"file": self.dataset.source, "line": self.dataset.line(self.row), "value": self.name}


def both_lines(first: Entry, second: Entry) -> str:
    """Return ``" (lines 2 and 5)"``, or an empty text if one of the images has no line."""
    lines = [entry.dataset.line(entry.row) for entry in (first, second)]
    return f" (lines {lines[0]} and {lines[1]})" if all(lines) else ""
