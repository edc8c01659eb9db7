"""Run cells in separate processes, a few at a time; a failed cell does not stop the others."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

from sarb.progress import Progress

Answer = dict[str, Any]


class Runner(Protocol):
    """Runs one task after another."""

    def run(self, task: dict[str, Any]) -> Answer:
        """Return ``{"line": …}`` or ``{"error": …}``."""

    def stop(self) -> None:
        """Stop it, even in the middle of a task."""


class Worker:
    """A process that imports torch once and then runs one cell after another.

    Args:
        threads: threads per cell.
        log: file for messages of the process and its libraries.
    """

    def __init__(self, threads: int, log: Path) -> None:
        self.threads = threads
        self.log = log
        self.process: subprocess.Popen[str] | None = None

    def run(self, task: dict[str, Any]) -> Answer:
        """Send a task and wait for the answer; if the process dies, that is an error answer."""
        if self.process is None:
            self.process = self._start()
        assert self.process.stdin is not None and self.process.stdout is not None
        try:
            self.process.stdin.write(json.dumps(task) + "\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        except (OSError, ValueError):  # ended, or closed by stop()
            line = ""
        if line.endswith("\n"):
            return dict(json.loads(line))
        code = self.process.wait()
        self.process = None  # the next task starts a new one
        return {"error": f"the process ended with code {code} (see {self.log}); out of memory?"}

    def _start(self) -> subprocess.Popen[str]:
        # BLAS and OpenMP read these only once, when they are loaded
        names = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
        environment = {**os.environ, **dict.fromkeys(names, str(self.threads))}
        self.log.parent.mkdir(parents=True, exist_ok=True)
        with self.log.open("a", encoding="utf-8") as log:
            return subprocess.Popen(
                [sys.executable, "-m", "sarb.reproduce.worker"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                encoding="utf-8",
                env=environment,
            )

    def stop(self) -> None:
        """Kill the process; the last finished epoch of its cell is kept on disk."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()


def run_grid(
    tasks: Sequence[tuple[str, dict[str, Any]]],
    start: Callable[[], Runner],
    done: Callable[[int, Answer], str],
    *,
    jobs: int = 1,
    talk: Progress | None = None,
) -> None:
    """Run all tasks.

    Args:
        tasks: (name, task) pairs.
        start: creates a runner.
        done: called in this thread with the number and answer of each finished task; returns a message.
        jobs: number of tasks to run at once.
        talk: reports progress and the time left.
    """
    talk = talk or Progress(enabled=False)
    waiting: queue.SimpleQueue[int] = queue.SimpleQueue()
    answers: queue.SimpleQueue[tuple[int, Answer]] = queue.SimpleQueue()
    for number in range(len(tasks)):
        waiting.put(number)
    runners = [start() for _ in range(min(jobs, len(tasks)))]
    over = threading.Event()

    def work(runner: Runner) -> None:
        while not over.is_set():
            try:
                number = waiting.get_nowait()
            except queue.Empty:
                return
            answers.put((number, _run(runner, tasks[number][1])))

    threads = [threading.Thread(target=work, args=(runner,), daemon=True) for runner in runners]
    began = time.perf_counter()
    try:
        for thread in threads:
            thread.start()
        with talk.bar("cells", len(tasks)) as advance:
            for count in range(1, len(tasks) + 1):
                number, result = _next(answers)
                said = done(number, result)
                left = time_left(time.perf_counter() - began, count, len(tasks))
                talk.say(f"[{count}/{len(tasks)}] {tasks[number][0]}: {said}{left}")
                advance(1)
    finally:
        over.set()
        for runner in runners:
            runner.stop()


def _run(runner: Runner, task: dict[str, Any]) -> Answer:
    """Always return an answer: the grid waits for one per task."""
    try:
        return runner.run(task)
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"}


def _next(answers: queue.SimpleQueue[tuple[int, Answer]]) -> tuple[int, Answer]:
    """Wait for an answer with short timeouts, so that Ctrl-C works on every platform."""
    while True:
        try:
            return answers.get(timeout=0.5)
        except queue.Empty:
            continue


def time_left(seconds: float, done: int, total: int) -> str:
    """``"; about 3 min left"``, from the mean time per cell so far; empty after the last."""
    if done >= total:
        return ""
    left = seconds / done * (total - done)
    if left < 90:
        return f"; about {left:.0f} s left"
    return f"; about {left / 60:.0f} min left" if left < 5400 else f"; about {left / 3600:.1f} h left"
