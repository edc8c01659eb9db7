"""The program of a local worker process: reads a job, then numbers of chunks, and writes a line per part.

Started by :mod:`sarb.bulk.processes` as ``python -m sarb.bulk.worker``. It exits when its input ends, so none goes on
after the process that started it was killed.
"""

from __future__ import annotations

import json
import os
import queue
import signal
import sys
import threading

from sarb.bulk.job import Job
from sarb.bulk.kinds import worker_of


def main() -> None:
    """Do chunks until the input ends."""
    channel = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # output of libraries must not be mistaken for an answer
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches our parent, which then ends our input
    lines: queue.SimpleQueue[str] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(lines,), daemon=True).start()
    worker = worker_of(Job(**json.loads(lines.get())))
    while True:
        channel.write(worker.do(int(lines.get())).to_json() + "\n")
        channel.flush()


def _listen(lines: queue.SimpleQueue[str]) -> None:
    for line in sys.stdin:
        lines.put(line)
    os._exit(0)  # parts are written whole or not at all, so a chunk may stop at any point


if __name__ == "__main__":
    main()
