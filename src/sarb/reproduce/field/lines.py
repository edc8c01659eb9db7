"""``trials.csv`` and ``results.csv`` of the field: one line per finished training."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sarb.errors import DataError
from sarb.files import write_csv
from sarb.reproduce.cells import METRICS
from sarb.reproduce.field.protocol import Job

TRIALS = (
    *(
        "setting",
        "row",
        "known",
        "seed",
        "trial",
        "options",
        "valid_mAP",
        "seconds",
        "cpu_seconds",
        "peak_mb",
    ),
    *("data", "setup"),
)
CELLS = (
    *("dataset", "setting", "row", "network", "method", "backbone", "known", "seed"),
    *METRICS,
    *("completed", "known_labels", "skipped", "epochs", "threads", "seconds", "cpu_seconds", "peak_mb"),
    *("options", "data", "setup", "command"),
)


class Lines:
    """The lines of one of the two files.

    Args:
        path: the file; it may not exist yet.
        columns: ``TRIALS`` or ``CELLS``.
    """

    def __init__(self, path: Path, columns: Sequence[str]) -> None:
        self.path = path
        self.columns = columns
        self.lines: dict[Job, dict[str, str]] = {}
        if not path.is_file():
            return
        with path.open(encoding="utf-8", newline="") as file:
            for number, line in enumerate(csv.DictReader(file), 2):
                try:
                    self.lines[job_of(line)] = line
                except (KeyError, TypeError, ValueError) as error:
                    raise DataError(
                        f"{path}: line {number} is not a training of the field ({error!r})"
                    ) from error

    def check(self, data: str, setups: Mapping[str, str]) -> None:
        """Raise if lines come from other data, or if a row was run with other settings."""
        for job, line in self.lines.items():
            if line["data"] != data:
                raise DataError(f"{self.path}: has results for other data. Choose another --out")
            if job.row in setups and line["setup"] != setups[job.row]:
                raise DataError(
                    f"{self.path}: has '{job}' with other settings, which must not be mixed with these. "
                    "Choose another --out, or remove that line"
                )

    def has(self, job: Job, options: Sequence[str]) -> bool:
        """Whether this training is finished, with these options."""
        return job in self.lines and self.lines[job]["options"] == " ".join(options)

    def add(self, line: Mapping[str, Any]) -> None:
        """Add a finished training and rewrite the file."""
        texts = {name: str(line.get(name, "")) for name in self.columns}
        self.lines[job_of(texts)] = texts
        write_csv(self.path, self.columns, self.lines.values())


def job_of(line: Mapping[str, str]) -> Job:
    """The training that a line describes."""
    trial = int(line["trial"]) if "trial" in line else None
    return Job(line["row"], line["setting"], float(line["known"]), int(line["seed"]), trial)
