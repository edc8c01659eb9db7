"""``resamples.csv``: mAP of each cell on the test photos and on each bootstrap resample of them.

It keeps what the ranking needs, so that a field can be continued elsewhere without the run folders and their scores.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sarb.errors import DataError
from sarb.files import write_csv
from sarb.metrics.bootstrap import spread
from sarb.reproduce.field.lines import job_of
from sarb.reproduce.field.protocol import Job
from sarb.runs.folder import RunFolder

COLUMNS = ("setting", "row", "known", "seed", "options", "mAP")
#: resamples of the test photos
RESAMPLES = 500


class Resamples:
    """The rows of the file.

    Args:
        path: the file; it may not exist yet.
        number: resamples.
    """

    def __init__(self, path: Path, number: int = RESAMPLES) -> None:
        self.path = path
        self.number = number
        self.found: dict[tuple[Job, str], NDArray[np.float64]] = {}
        csv.field_size_limit(1 << 20)
        if not path.is_file():
            return
        with path.open(encoding="utf-8", newline="") as file:
            for number_of_line, line in enumerate(csv.DictReader(file), 2):
                try:
                    values = np.array(line["mAP"].split(), np.float64)
                    self.found[job_of(line), line["options"]] = values
                except (KeyError, TypeError, ValueError, AttributeError) as error:
                    raise DataError(
                        f"{path}: line {number_of_line} has no list of mAP ({error!r}); remove the line"
                    ) from error

    def of(self, job: Job, options: Sequence[str], folder: Path) -> NDArray[np.float64] | None:
        """Return mAP (1 + B,) of a cell, from the file or from the scores in its run folder; None without either."""
        key = job, " ".join(options)
        kept = self.found.get(key)
        if kept is not None and len(kept) == 1 + self.number:
            return kept
        run = RunFolder(folder)
        if run.scores is None or run.test is None:
            return None
        self.found[key] = spread(run.scores.logits, run.test, self.number)
        return self.found[key]

    def write(self) -> None:
        """Write the file."""
        rows = [
            (job.setting, job.row, job.known, job.seed, options, " ".join(f"{value:.4f}" for value in values))
            for (job, options), values in self.found.items()
        ]
        write_csv(self.path, COLUMNS, rows)
