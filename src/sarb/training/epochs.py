"""The epochs in words: a few about the last one beside the progress, and a table for ``--verbose``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from sarb.progress import about
from sarb.report.terms import TERMS, by_whom

Row = Mapping[str, Any]

#: column of ``log.csv`` -> its heading; the others are in the file only
HEADINGS = {"epoch": "epoch", "loss": "loss", "valid_mAP": "valid mAP", "alpha": "α", "beta": "β"}


def summary(epoch: int, log: Sequence[Row]) -> str:
    """The current epoch, and what the one before it reached."""
    names = {name: HEADINGS[name] for name in ("loss", "valid_mAP")}
    numbers = [f"{word} {log[-1][name]:.4g}" for name, word in names.items() if log and name in log[-1]]
    return ", ".join([f"epoch {epoch}", *numbers])


class EpochTable:
    """One line per epoch below a heading.

    Args:
        total: epochs of the whole training.
    """

    def __init__(self, total: int) -> None:
        self._total = total
        self._columns: dict[str, str] = {}

    def lines(self, log: Sequence[Row]) -> list[str]:
        """The line of the last epoch; before the first one, what the columns are."""
        row = log[-1]
        head = [] if self._columns else self._begin(row)
        cells = [_cell(row.get(name)) for name in self._columns]
        widths = [max(len(heading), 7) for heading in self._columns.values()]
        left = (self._total - len(log)) * float(np.mean([entry["seconds"] for entry in log]))
        line = "  ".join(cell.rjust(width) for cell, width in zip(cells, widths, strict=True))
        return [*head, f"{line}  {row['seconds']:>7.1f}  {about(left)}"]

    def _begin(self, row: Row) -> list[str]:
        filled = {name: f"by {by_whom(name)}" for name in row if name.startswith("completed_")}
        self._columns = {name: text for name, text in HEADINGS.items() if name in row} | filled
        headings = "  ".join(text.rjust(max(len(text), 7)) for text in self._columns.values())
        notes = [f"by {by_whom(name)}: unknown labels filled in this epoch" for name in filled]
        terms = [f"{name}: {TERMS[name]}" for name in map(by_whom, filled) if name in TERMS]
        return [*notes, *terms, f"{headings}  {'seconds':>7}  left"]


def _cell(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:,}" if isinstance(value, int) else f"{value:.4g}"
