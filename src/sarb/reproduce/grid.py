"""Run cells in separate processes, a few at a time; the names here are those of :mod:`sarb.jobs`."""

from __future__ import annotations

from sarb.jobs.local import CELLS, Worker
from sarb.jobs.pool import Answer, Runner, run_grid, time_left

__all__ = ["CELLS", "Answer", "Runner", "Worker", "run_grid", "time_left"]
