"""``results.csv``: one line per finished cell, in the order of the paper's tables."""

from __future__ import annotations

import copy
import csv
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sarb.errors import DataError
from sarb.files import write_csv
from sarb.reproduce.cells import METRICS, Cell

COLUMNS = (
    "dataset",
    "row",
    "network",
    "method",
    "backbone",
    "known",
    "seed",
    *METRICS,
    "valid_mAP",
    "best_mAP",
    "loss_mean",
    "loss_change",
    "completed",
    "known_labels",
    "skipped",
    "epochs",
    "threads",
    "seconds",
    "data",
    "setup",
    "command",
)


@dataclass(frozen=True)
class Number:
    """A mean over seeds and, with at least two seeds, the sample standard deviation."""

    value: float
    deviation: float | None = None


def summary(values: Sequence[float]) -> Number | None:
    """Mean and sample standard deviation; None if there are no values."""
    if not values:
        return None
    mean = math.fsum(values) / len(values)
    if len(values) == 1:
        return Number(mean)
    return Number(mean, math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1)))


class Results:
    """The lines of a ``results.csv``.

    Args:
        path: the file; it may not exist yet.
        order: row names in the order to write them; other rows follow by name.
    """

    def __init__(self, path: Path, order: Sequence[str]) -> None:
        self.path = path
        self.order = {name: position for position, name in enumerate(order)}
        self.lines: dict[Cell, dict[str, str]] = {}
        if path.is_file():
            with path.open(encoding="utf-8", newline="") as file:
                for number, line in enumerate(csv.DictReader(file), 2):
                    try:
                        self.lines[Cell(line["row"], float(line["known"]), int(line["seed"]))] = line
                    except (KeyError, TypeError, ValueError) as error:
                        raise DataError(
                            f"{path}: line {number} is not the result of a cell ({error!r})"
                        ) from error

    def check(self, data: str, setups: Mapping[str, str]) -> None:
        """Raise an error if results come from other data, or if a row was run with other settings."""
        for cell, line in self.lines.items():
            if line["data"] != data:
                raise DataError(
                    f"{self.path}: has results for other data ('{line['dataset']}', {line['data']}; "
                    f"now {data}). Choose another --out"
                )
            if cell.row in setups and line["setup"] != setups[cell.row]:
                raise DataError(
                    f"{self.path}: has '{cell}' with other settings, which must not be mixed with these. "
                    f"Choose another --out, or remove that line. Its command was: {line['command']}"
                )

    def add(self, line: Mapping[str, Any]) -> None:
        """Add a finished cell and rewrite the file."""
        cell = Cell(str(line["row"]), float(line["known"]), int(line["seed"]))
        self.lines[cell] = {name: str(line.get(name, "")) for name in COLUMNS}
        self.write()

    def write(self) -> None:
        """Write all lines in order."""
        write_csv(self.path, COLUMNS, (self.lines[cell] for cell in self.cells()))

    def cells(self) -> list[Cell]:
        """All cells, sorted by row, known share and seed."""
        last = len(self.order)
        return sorted(
            self.lines, key=lambda cell: (self.order.get(cell.row, last), cell.row, cell.known, cell.seed)
        )

    def rows(self, among: Iterable[str]) -> list[str]:
        """The rows that have results, in order."""
        wanted = set(among)
        return list(dict.fromkeys(cell.row for cell in self.cells() if cell.row in wanted))

    def shares(self, rows: Iterable[str]) -> list[float]:
        """The known shares below 1 at which any of these rows was run."""
        wanted = set(rows)
        return sorted({cell.known for cell in self.lines if cell.row in wanted and cell.known < 1})

    def common(self, rows: Iterable[str]) -> Results:
        """Only the (known share, seed) pairs that all these rows have, so that all saw the same labels."""
        rows = list(rows)
        pairs = [{(cell.known, cell.seed) for cell in self.lines if cell.row == row} for row in rows]
        shared = set.intersection(*pairs) if pairs else set()
        part = copy.copy(self)
        part.lines = {cell: line for cell, line in self.lines.items() if (cell.known, cell.seed) in shared}
        return part

    def values(self, row: str, known: float, metric: str) -> dict[int, float]:
        """Return seed -> value, where there is one."""
        return {
            cell.seed: float(self.lines[cell][metric])
            for cell in self.cells()
            if cell.row == row and cell.known == known and self.lines[cell].get(metric)
        }

    def number(self, row: str, known: float, metric: str) -> Number | None:
        """Mean and deviation over seeds."""
        return summary(list(self.values(row, known, metric).values()))

    def average(self, row: str, shares: Sequence[float], metric: str) -> Number | None:
        """Mean over known shares of the means over seeds; None if one is missing.

        The deviation is that of the per-seed averages; there is none if the seeds differ between shares.
        """
        values = [self.values(row, known, metric) for known in shares]
        if not values or not all(values):
            return None
        if all(set(part) == set(values[0]) for part in values):
            return summary([math.fsum(part[seed] for part in values) / len(values) for seed in values[0]])
        return Number(math.fsum(math.fsum(part.values()) / len(part) for part in values) / len(values))
