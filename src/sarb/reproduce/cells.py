"""A cell of a grid: one row of the paper at one known share and seed, and the line it leaves in
``results.csv``.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import numpy as np

from sarb.errors import ConfigError, did_you_mean
from sarb.rows import ROWS
from sarb.runs.folder import RunFolder
from sarb.settings import HARMLESS, resolve
from sarb.workflows.training import merge_options, train_session

METRICS = ("mAP", "mAP_interpolated", "OP", "OR", "OF1", "CP", "CR", "CF1")
#: settings that do not change the numbers, and the seed, which is part of the cell
OUTSIDE = HARMLESS | {"seed"}


@dataclass(frozen=True)
class Cell:
    """Row × known share × seed."""

    row: str
    known: float
    seed: int

    def __str__(self) -> str:
        return f"{self.row}, {100 * self.known:g} % known, seed {self.seed}"


@dataclass(frozen=True)
class Plan:
    """What all cells of a grid share.

    Attributes:
        assignments: as for ``sarb train --set``; ``"Ours*:lr=0.002"`` is for rows whose name fits the
            pattern.
        given: settings with a flag of their own: epochs, backbone, words …
        threads: of each cell, however many cells run at once; their number changes the rounding of sums.
    """

    source: str
    out: str
    data_options: dict[str, Any] = field(default_factory=dict)
    recipe: str | None = None
    assignments: tuple[str, ...] = ()
    given: dict[str, Any] = field(default_factory=dict)
    valid: float | None = None
    threads: int = 1
    keep_models: bool = False
    reports: bool = False

    def assignments_of(self, row: str) -> list[str]:
        """The assignments for one row."""
        chosen = []
        for text in self.assignments:
            pattern, colon, rest = text.partition(":")
            if not colon or "=" in pattern:  # the colon belongs to a value
                chosen.append(text)
            elif fnmatchcase(row, pattern.strip()):
                chosen.append(rest.strip())
        return chosen

    def check(self, rows: list[str]) -> None:
        """Raise with everything that is wrong with the settings of these rows."""
        problems = []
        for text in self.assignments:
            pattern, colon, _ = text.partition(":")
            if colon and "=" not in pattern and not any(fnmatchcase(row, pattern.strip()) for row in ROWS):
                problems.append(
                    f"--set {text}: no row fits '{pattern.strip()}'.{did_you_mean(pattern, ROWS)}"
                )
            if text.rpartition(":")[2].strip().startswith("data."):
                problems.append(f"--set {text}: options of the data are given as -o key=value here")
        for row in rows:
            try:
                self.setup(row)
            except ConfigError as error:
                problems += [f"row '{row}': {problem}" for problem in error.problems]
        if problems:
            raise ConfigError(list(dict.fromkeys(problems)))

    def setup(self, row: str) -> str:
        """Hash of all settings of a row besides known share, seed and data: other settings, another hash."""
        options, _, problems = merge_options(row, self.assignments_of(row), self.given)
        if problems:
            raise ConfigError(problems)
        settings = {
            key: value
            for key, value in resolve(self.recipe, **options).as_dict().items()
            if key not in OUTSIDE
        }
        content = {"settings": settings, "valid": self.valid, "threads": self.threads}
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:12]

    def folder(self, cell: Cell) -> Path:
        """The cell's run folder; other settings never meet in the same one."""
        name = re.sub(r"[^a-z0-9.]+", "-", cell.row.lower()).strip("-")
        return (
            Path(self.out)
            / "runs"
            / f"{name}-{100 * cell.known:g}-seed{cell.seed}-{self.setup(cell.row)[:6]}"
        )

    def as_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        return dataclasses.asdict(self)


def fingerprint(data: Any) -> str:
    """Hash of names and labels of all splits; copies of a data set elsewhere have the same."""
    parts = [
        part.labels.fingerprint() for part in (data.train, data.test, *([data.valid] if data.valid else []))
    ]
    return hashlib.sha256("".join(parts).encode()).hexdigest()[:12]


def run_cell(plan: Plan, cell: Cell, data: str) -> dict[str, Any]:
    """Train and test a cell, or the rest of it; return its line for ``results.csv``."""
    folder = plan.folder(cell)
    train_session(
        source=plan.source,
        recipe=plan.recipe,
        data_options=plan.data_options,
        row=cell.row,
        known=cell.known,
        mask_seed=cell.seed,
        seed=cell.seed,
        out=folder,
        valid=plan.valid,
        resume=True,
        assignments=plan.assignments_of(cell.row),
        given=plan.given,
        quiet=True,
        page=plan.reports,  # drawing the report of a small run takes longer than the run
    )
    line = {"data": data, "setup": plan.setup(cell.row), **read_run(folder, cell)}
    RunFolder(folder).finish_cell(line, plan.keep_models)
    return line


def finished(folder: Path, data: str) -> dict[str, Any] | None:
    """The line of a cell that ended without reaching ``results.csv``, else None."""
    line = RunFolder(folder).finished_cell()
    return line if line is not None and line["data"] == data else None


def read_run(folder: Path, cell: Cell) -> dict[str, Any]:
    """What ``results.csv`` says about a run folder."""
    run = RunFolder(folder)
    config = run.config
    metrics = run.metrics
    settings = config["settings"]
    log = run.log_rows()
    last: Mapping[str, str] = log[-1] if log else {}
    completed = [float(value) for name, value in last.items() if name.startswith("completed_") and value]
    mean, change = steadiness(run.step_losses())
    return {
        "dataset": config["data"]["name"],
        "row": cell.row,
        **{name: settings[name] for name in ("network", "method", "backbone")},
        "known": cell.known,
        "seed": cell.seed,
        **{name: _rounded(metrics[name]) for name in METRICS},
        "valid_mAP": _rounded(last.get("valid_mAP") or None),
        "best_mAP": _rounded(metrics.get("best", {}).get("mAP")),
        "loss_mean": _rounded(mean),
        "loss_change": _rounded(change),
        "completed": int(sum(completed)),
        "known_labels": last.get("known", ""),
        "skipped": sum(metrics["skipped"].values()),
        "epochs": settings["epochs"],
        "threads": config["threads"],
        "seconds": round(sum(float(row["seconds"]) for row in log), 1),
        "command": f"OMP_NUM_THREADS={config['threads']} {config['data']['command']}",
    }


def steadiness(losses: list[float]) -> tuple[float | None, float | None]:
    """Mean loss and the standard deviation of its change from step to step, None below three steps.

    Both over the second half of the training: where blending begins the loss gets new terms, and that jump
    would outweigh all others.
    """
    half = losses[len(losses) // 2 :]
    return (float(np.mean(half)), float(np.std(np.diff(half)))) if len(half) > 2 else (None, None)


def _rounded(value: Any) -> Any:
    return "" if value is None else round(float(value), 4)
