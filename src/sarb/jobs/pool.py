"""Hand tasks to runners, a few at a time; a failed task does not stop the others, a lost one is tried again."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, Protocol

from sarb.progress import Progress

Answer = dict[str, Any]
Start = Callable[[], "Runner"]

#: how often a task is begun whose runner dies; it is resumable, so each time it goes on where it was
TRIES = 3


class Runner(Protocol):
    """Runs one task after another."""

    def run(self, task: dict[str, Any]) -> Answer:
        """Return ``{"line": …}`` or ``{"error": …}``, the latter with ``"died": True`` if it is worth another try.

        An error is ``"lost": True`` if the task itself has not failed.
        """

    def rest(self) -> None:
        """No task is waiting: give back what another runner may be waiting for. The next task may still come."""

    def stop(self) -> None:
        """Stop it, even in the middle of a task."""


class Pool:
    """Runners, each with a thread that feeds it. A context manager: leaving it stops them all.

    Args:
        start: creates a runner.
        jobs: most tasks at once.
        lost: called with the number of a task that is tried again, and why.
    """

    def __init__(self, start: Start, jobs: int, lost: Callable[[int, str], None] = lambda *_: None) -> None:
        self._start = start
        self._jobs = jobs
        self._lost = lost
        self._runners: list[Runner] = []
        self._waiting: queue.SimpleQueue[tuple[int, dict[str, Any]]] = queue.SimpleQueue()
        self._answers: queue.SimpleQueue[tuple[int, Answer]] = queue.SimpleQueue()
        self._over = threading.Event()

    def submit(self, number: int, task: dict[str, Any]) -> None:
        """Queue a task; the first ones start a runner each."""
        self._waiting.put((number, task))
        if len(self._runners) < self._jobs:
            self._runners.append(self._start())
            threading.Thread(target=self._work, args=(self._runners[-1],), daemon=True).start()

    def next(self) -> tuple[int, Answer]:
        """Wait for the next answer with short timeouts, so that Ctrl-C works on every platform."""
        while True:
            try:
                return self._answers.get(timeout=0.5)
            except queue.Empty:
                continue

    def _work(self, runner: Runner) -> None:
        while not self._over.is_set():
            try:
                number, task = self._waiting.get(timeout=0.5)
            except queue.Empty:
                runner.rest()
                continue
            self._answers.put((number, self._answer(runner, number, task)))

    def _answer(self, runner: Runner, number: int, task: dict[str, Any]) -> Answer:
        """The answer of the first try that does not die; always one, because the grid waits for it."""
        for left in range(TRIES - 1, -1, -1):
            try:
                answer = runner.run(task)
            except Exception as error:
                return {"error": f"{type(error).__name__}: {error}"}
            if not answer.pop("died", False) or self._over.is_set():
                break
            if left:
                self._lost(number, f"{answer['error']}; tried again, {left} of {TRIES} tries left")
            else:
                answer |= {"error": f"{answer['error']}; given up after {TRIES} tries", "lost": True}
        return answer

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._over.set()
        for runner in self._runners:
            runner.stop()


def run_grid(
    tasks: Sequence[tuple[str, dict[str, Any]]],
    start: Start,
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
    began = time.perf_counter()

    def lost(number: int, reason: str) -> None:
        talk.say(f"{tasks[number][0]}: {reason}")

    with Pool(start, jobs, lost) as pool, talk.bar("cells", len(tasks)) as advance:
        for number, (_, task) in enumerate(tasks):
            pool.submit(number, task)
        for count in range(1, len(tasks) + 1):
            number, result = pool.next()
            said = done(number, result)
            left = time_left(time.perf_counter() - began, count, len(tasks))
            talk.say(f"[{count}/{len(tasks)}] {tasks[number][0]}: {said}{left}")
            advance(1)


def time_left(seconds: float, done: int, total: int) -> str:
    """``"; about 3 min left"``, from the mean time per cell so far; empty after the last."""
    if done >= total:
        return ""
    left = seconds / done * (total - done)
    if left < 90:
        return f"; about {left:.0f} s left"
    return f"; about {left / 60:.0f} min left" if left < 5400 else f"; about {left / 3600:.1f} h left"
