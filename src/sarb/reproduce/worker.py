"""What runs a cell, in a process of :mod:`sarb.jobs`."""

from __future__ import annotations

import traceback
from typing import Any

from sarb.errors import SarbError
from sarb.reproduce.cells import Cell, Plan, run_cell


def answer(task: dict[str, Any]) -> dict[str, Any]:
    """Run the cell of a task; an error is also returned as an answer."""
    cell = Cell(**task["cell"])
    plan = Plan(**task["plan"])
    try:
        return {"line": run_cell(plan, cell, task["data"])}
    except Exception as error:
        folder = plan.folder(cell)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "error.txt").write_text(traceback.format_exc(), encoding="utf-8")
        own = isinstance(error, SarbError)
        return {
            "error": str(error) if own else f"{type(error).__name__}: {error} (see {folder / 'error.txt'})"
        }
