"""Local worker processes: each does one chunk at a time; the chunk of a process that was killed is done again.

A thread per process hands out numbers and waits for the answer, so a lost process costs its chunk and nothing else.
"""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import suppress

from sarb.bulk.job import Job
from sarb.bulk.kinds import worker_of
from sarb.bulk.parts import Part
from sarb.errors import SarbError, named

#: processes that may be lost with the same chunk, one after the other, before the work stops
TRIES = 3


def in_this_process(job: Job, numbers: Iterable[int]) -> Iterator[Part]:
    """Do chunks here, with the threads of the job; the number of threads is as before afterwards."""
    import torch

    threads = torch.get_num_threads()
    worker = worker_of(job)
    try:
        yield from map(worker.do, numbers)
    finally:
        torch.set_num_threads(threads)


def in_processes(job: Job, numbers: Iterable[int], workers: int) -> Iterator[Part]:
    """Do chunks in worker processes; parts come in the order in which they are finished."""
    waiting = iter(numbers)
    lock = threading.Lock()
    answers: queue.Queue[Part | BaseException | None] = queue.Queue(maxsize=2 * workers)
    stop = threading.Event()
    processes = [Process(job) for _ in range(workers)]

    def next_number() -> int | None:
        with lock:
            return None if stop.is_set() else next(waiting, None)

    def serve(process: Process) -> None:
        try:
            while (number := next_number()) is not None:
                answers.put(process.do(number))
        except BaseException as error:
            answers.put(error)
        finally:
            process.close()
            answers.put(None)

    for process in processes:
        threading.Thread(target=serve, args=(process,), daemon=True).start()
    running = workers
    try:
        while running:
            answer = answers.get()
            if isinstance(answer, BaseException):
                raise answer
            running -= answer is None
            if answer is not None:
                yield answer
    finally:
        stop.set()
        if running:
            for process in processes:
                process.stop()
        while running:  # a thread that waits for room among the answers would never end its process
            running -= answers.get() is None


class Process:
    """A worker process, started again if it is lost."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self._process: subprocess.Popen[str] | None = None
        self._stopped = False

    def do(self, number: int) -> Part:
        """Return the part of a chunk."""
        code = None
        for _ in range(TRIES):
            if self._stopped:
                raise SarbError("stopped")
            line = ""
            with suppress(BrokenPipeError):
                process = self._running()
                _say(process, str(number))
                line = process.stdout.readline() if process.stdout else ""
            if line.endswith("\n"):
                return Part.from_json(line)
            if self._process is not None:
                code = self._process.wait()
            self._process = None
        memory = f"too little memory? A smaller {named('part_size')} or fewer {named('workers')} need less"
        raise SarbError(
            f"{TRIES} worker processes were lost with part {number}, the last one with exit code {code}: "
            + ("its error is above" if code == 1 else memory)
        )

    def stop(self) -> None:
        """Kill the process in the middle of a chunk."""
        self._stopped = True
        if self._process is not None:
            self._process.kill()

    def close(self) -> None:
        """End the process."""
        if self._process is not None and self._process.stdin is not None:
            with suppress(BrokenPipeError):
                self._process.stdin.close()
            self._process.wait()

    def _running(self) -> subprocess.Popen[str]:
        if self._process is None:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "sarb.bulk.worker"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                encoding="utf-8",
                env={**os.environ, "OMP_NUM_THREADS": str(self.job.threads)},
                process_group=0,  # Ctrl-C is for us; a worker ends when its input does
            )
            _say(self._process, json.dumps(self.job.to_dict()))
        return self._process


def _say(process: subprocess.Popen[str], line: str) -> None:
    assert process.stdin is not None
    process.stdin.write(line + "\n")
    process.stdin.flush()
