"""A process on this machine that runs one task after another."""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sarb.jobs.pool import Answer, Start

if TYPE_CHECKING:
    from sarb.jobs.engines import Engine, Work

#: what BLAS and OpenMP read once, when they are loaded
THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
#: the function that answers the tasks of ``sarb reproduce``
CELLS = "sarb.reproduce.worker:answer"


class Worker:
    """A process that imports torch once and then runs one task after another.

    Args:
        threads: threads per task.
        log: file for messages of the process and its libraries.
        call: ``module:function`` that answers a task.
    """

    def __init__(self, threads: int, log: Path, call: str = CELLS) -> None:
        self.threads = threads
        self.log = log
        self.call = call
        self.process: subprocess.Popen[str] | None = None

    def run(self, task: dict[str, Any]) -> Answer:
        """Send a task and wait for the answer; if the process dies, that is an error answer."""
        if self.process is None:
            self.process = self._start()
        process = self.process
        assert process.stdin is not None and process.stdout is not None
        try:
            process.stdin.write(json.dumps(task) + "\n")
            process.stdin.flush()
            line = process.stdout.readline()
        except (OSError, ValueError):  # ended, or closed by stop()
            line = ""
        if line.endswith("\n"):
            return dict(json.loads(line))
        code = process.wait()
        self.process = None  # the next task starts a new one
        return {
            "error": f"the process ended with code {code} (see {self.log}); out of memory?",
            "died": True,
        }

    def _start(self) -> subprocess.Popen[str]:
        environment = {**os.environ, **dict.fromkeys(THREAD_VARIABLES, str(self.threads))}
        self.log.parent.mkdir(parents=True, exist_ok=True)
        with self.log.open("a", encoding="utf-8") as log:
            return subprocess.Popen(
                [sys.executable, "-m", "sarb.jobs.worker", self.call, str(self.threads)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                encoding="utf-8",
                env=environment,
            )

    def rest(self) -> None:
        """Keep the process: it takes no processor while it waits, and has imported torch."""

    def stop(self) -> None:
        """Kill the process; the last finished epoch of its task is kept on disk."""
        process = self.process
        if process is not None:
            process.kill()
            process.wait()


@contextmanager
def opened(engine: Engine, work: Work) -> Iterator[Start]:
    """Start processes here; nothing has to be prepared."""
    yield functools.partial(Worker, work.threads, work.log, work.call)
