"""What runs a cell, in a process of :mod:`sarb.jobs`."""

from __future__ import annotations

import functools
import traceback
from typing import Any

from sarb.errors import SarbError
from sarb.reproduce.cells import Cell, Plan, run_cell
from sarb.reproduce.field.protocol import Job
from sarb.reproduce.field.work import folder_of, run_job


def answer(task: dict[str, Any]) -> dict[str, Any]:
    """Run the training of a task; an error is also returned as an answer."""
    plan = Plan(**task["plan"])
    if task.get("field"):
        job = Job(**task["job"])
        folder = folder_of(plan, job, task["options"])
        work = functools.partial(run_job, plan, job, task["options"], task["data"])
    else:
        cell = Cell(**task["cell"])
        folder = plan.folder(cell)
        work = functools.partial(run_cell, plan, cell, task["data"])
    try:
        return {"line": work()}
    except Exception as error:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "error.txt").write_text(traceback.format_exc(), encoding="utf-8")
        own = isinstance(error, SarbError)
        return {
            "error": str(error) if own else f"{type(error).__name__}: {error} (see {folder / 'error.txt'})"
        }
