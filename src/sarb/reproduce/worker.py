"""The process that runs cells: reads one JSON task per line, writes one JSON answer per line.

Started by :mod:`sarb.reproduce.grid` as ``python -m sarb.reproduce.worker``. It exits when its input ends, so
no cell keeps running after the grid was killed.
"""

from __future__ import annotations

import functools
import json
import os
import queue
import signal
import sys
import threading
import traceback
from typing import Any

import torch

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


def main() -> None:
    """Answer tasks until the input ends."""
    channel = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # output of libraries must not be mistaken for an answer
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the grid, which then ends our input
    tasks: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(tasks,), daemon=True).start()
    while True:
        task = tasks.get()
        torch.set_num_threads(task["plan"]["threads"])
        channel.write(json.dumps(answer(task)) + "\n")
        channel.flush()


def _listen(tasks: queue.SimpleQueue[dict[str, Any]]) -> None:
    for line in sys.stdin:
        tasks.put(json.loads(line))
    os._exit(0)  # files are written atomically, so a cell may stop at any point


if __name__ == "__main__":
    main()
