"""The process that runs tasks: reads one JSON task per line, writes one JSON answer per line.

Started by :mod:`sarb.jobs.local` as ``python -m sarb.jobs.worker MODULE:FUNCTION THREADS``. It exits when its input
ends, so no task keeps running after the grid was killed.
"""

from __future__ import annotations

import importlib
import json
import os
import queue
import signal
import sys
import threading
from collections.abc import Callable
from typing import Any


def function_of(call: str, threads: int) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """Import ``module:function`` and limit torch to so many threads."""
    import torch

    torch.set_num_threads(threads)
    module, _, name = call.partition(":")
    found: Callable[[dict[str, Any]], dict[str, Any]] = getattr(importlib.import_module(module), name)
    return found


def main() -> None:
    """Answer tasks until the input ends."""
    channel = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # output of libraries must not be mistaken for an answer
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the grid, which then ends our input
    tasks: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(tasks,), daemon=True).start()
    answer = function_of(sys.argv[1], int(sys.argv[2]))
    while True:
        channel.write(json.dumps(answer(tasks.get())) + "\n")
        channel.flush()


def _listen(tasks: queue.SimpleQueue[dict[str, Any]]) -> None:
    for line in sys.stdin:
        tasks.put(json.loads(line))
    os._exit(0)  # files are written atomically, so a task may stop at any point


if __name__ == "__main__":
    main()
