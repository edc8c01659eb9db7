"""The CSV of fits: one row each, written when it ends and not run again; scores are kept beside it."""

from __future__ import annotations

import csv
import fcntl
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.source import Cell, Fitted, Source
from sarb.files import write_csv
from sarb.metrics import evaluate

COLUMNS = (
    *("split", "cell", "mask", "model", "mAP", "note", "train_photos", "photos", "categories", "image_size"),
    *("seed", "seconds", "commit", "command"),
)

Fit = Callable[[Source, Cell, int], Fitted]


class Key(NamedTuple):
    """What tells one fit from another, as in the CSV."""

    split: str
    cell: str
    mask: str
    model: str
    image_size: str

    @classmethod
    def of(cls, source: Source, cell: Cell, mask: int, model: str) -> Key:
        """The key of a fit that is about to run."""
        return cls(source.how.split, cell.name, str(mask), model, str(source.image_size))

    @classmethod
    def read(cls, row: Mapping[str, str]) -> Key:
        """The key of a row of the CSV."""
        return cls(*(row[name] for name in cls._fields))

    @property
    def file_name(self) -> str:
        """Name of the file with the scores."""
        return "_".join(self).replace("/", " ").replace(" ", "_") + ".npy"


class Results:
    """The CSV of fits, and the scores beside it."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.folder = file.with_suffix(".scores")
        self.folder.mkdir(parents=True, exist_ok=True)
        self.rows = read_csv(file)

    def has(self, key: Key) -> bool:
        """Whether a fit is done, with scores to compare."""
        return any(Key.read(row) == key for row in self.rows) and (self.folder / key.file_name).exists()

    def add(self, row: dict[str, Any], scores: NDArray[np.floating]) -> None:
        """Write scores first: a row promises them. A row whose scores were lost is replaced."""
        texts = {column: str(row[column]) for column in COLUMNS}
        key = Key.read(texts)
        np.save(self.folder / key.file_name, scores)
        with (self.folder / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # another process may add the fits of other masks or sizes
            self.rows = [*(old for old in read_csv(self.file) if Key.read(old) != key), texts]
            write_csv(self.file, COLUMNS, self.rows, line_end="\n")

    def scores(self, key: Key) -> NDArray[np.floating]:
        """Logits (photos, categories) of a finished fit."""
        loaded: NDArray[np.floating] = np.load(self.folder / key.file_name)
        return loaded


def read_csv(file: Path) -> list[dict[str, str]]:
    """Rows of a CSV; none if there is no such file."""
    if not file.exists():
        return []
    with file.open(newline="", encoding="utf-8") as opened:
        return list(csv.DictReader(opened))


def write_table(
    file: Path, columns: Sequence[str], key: Sequence[str], rows: Sequence[Mapping[str, str]]
) -> None:
    """Replace the rows of a CSV that have the same key; those of other runs stay."""
    new = {tuple(row[name] for name in key) for row in rows}
    old = [row for row in read_csv(file) if tuple(row[name] for name in key) not in new]
    write_csv(file, columns, [*old, *rows], line_end="\n")


def markdown(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table; empty cells are dashes."""
    lines = [columns, ["---"] * len(columns), *([text or "–" for text in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def run_cell(
    source: Source, cell: Cell, masks: Sequence[int], fits: Mapping[str, Fit], results: Results, command: str
) -> None:
    """Fit every model with every mask, unless the CSV has it."""
    answers = source.answers(cell)
    for mask in cell.masks(masks):
        for model, fit in fits.items():
            key = Key.of(source, cell, mask, model)
            if results.has(key):
                continue
            started = time.perf_counter()
            fitted = fit(source, cell, mask)
            seconds = time.perf_counter() - started
            quality = evaluate(fitted.scores, answers)["mAP"]
            row = {
                **key._asdict(),
                "mAP": f"{quality:.3f}",
                "note": fitted.note,
                "train_photos": len(source.problem(cell, mask).rows),
                "photos": len(answers),
                "categories": len(answers.categories),
                "seed": source.how.seed,
                "seconds": f"{seconds:.1f}",
                "commit": commit(),
                "command": command,
            }
            results.add(row, fitted.scores)
            told = f"{quality:.2f}  {fitted.note}  {seconds:.1f} s"
            print(f"{cell.name} mask {mask} {source.image_size} px {model}: {told}", flush=True)


@cache
def commit() -> str:
    """The commit that is checked out, with a ``+`` if files differ from it; empty outside git."""
    told = subprocess.run(["git", "describe", "--always", "--dirty=+"], capture_output=True, text=True)
    return told.stdout.strip()
