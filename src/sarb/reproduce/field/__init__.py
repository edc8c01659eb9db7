"""``sarb reproduce field``: every method for partial labels under one protocol, with as many trials for each.

protocol      rows, settings, trials and cells
run           which trainings are finished or missing, and how they run
work          one training, in a process of the grid
cost          time of the cores and memory of a training
lines         ``trials.csv`` and ``results.csv``
resamples     ``resamples.csv``: mAP of each cell on bootstrap resamples of the test photos
ranking       mean ranks and differences, with intervals by bootstrap over the test photos
published     numbers of the literature, with what differs in their protocol
tables        the tables
figures       the figures
page          ``README.md``, which shows all of them
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from sarb.jobs.engines import Engine
from sarb.progress import Progress
from sarb.reproduce.cells import Plan
from sarb.reproduce.field.page import write_page
from sarb.reproduce.field.protocol import FIELD_ROWS, SETTINGS, Job
from sarb.reproduce.field.run import NUMBER, SEEDS, SHARES, Field

__all__ = ["FIELD_ROWS", "SETTINGS", "Field", "reproduce_field"]


def reproduce_field(
    plan: Plan,
    *,
    rows: Sequence[str] | None = None,
    settings: Sequence[str] = SETTINGS,
    shares: Sequence[float] = SHARES,
    seeds: Sequence[int] = SEEDS,
    trials: int = NUMBER,
    jobs: int = 1,
    run: bool = True,
    command: str = "",
    progress: bool = True,
    engine: Engine | None = None,
) -> tuple[Path, list[tuple[Job, str]]]:
    """Run what is missing, write tables, figures and page; return the page, and what failed."""
    field = Field(plan, rows or FIELD_ROWS, settings, shares, seeds, trials)
    if run:
        field.run(jobs, Progress(progress), engine)
    for job, error in field.failed:
        print(f"sarb: failed: {job}: {error}", file=sys.stderr)
    return write_page(field, command), field.failed
