"""Runs on a Ray cluster: an actor per job, and in it the same process as on this computer.

The process keeps Ray's own threads and memory out of the run, so that numbers are those of ``--engine local``. Tasks
and answers travel as JSON text. Results come back to the command, and only the command writes ``results.csv``.
"""

from __future__ import annotations

import importlib
import json
import math
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sarb.errors import ConfigError, SarbError
from sarb.jobs.local import Worker
from sarb.jobs.place import Place, marked
from sarb.jobs.pool import Answer, Start

if TYPE_CHECKING:
    from sarb.jobs.engines import Engine, Work

#: bytes for objects that travel between processes; ours are a few lines of text
OBJECT_STORE = 100 * 2**20


class Remote:
    """Lives in a process of Ray on some node, and owns the process that computes."""

    def __init__(self, threads: int, log: str, call: str, place: dict[str, Any]) -> None:
        self.problem = Place(**place).enter()
        self.worker = Worker(threads, Path(log), call)

    def run(self, text: str) -> str:
        """JSON task -> JSON answer."""
        return json.dumps(
            {"error": self.problem, "lost": True} if self.problem else self.worker.run(json.loads(text))
        )


class RayRunner:
    """Runs tasks in an actor; if its node or process dies, the next task gets a new one.

    Args:
        work: what is to be run.
        place: where the command was started.
        gpus: GPUs of each actor, maybe a part of one.
    """

    def __init__(self, work: Work, place: Place, gpus: float) -> None:
        self.work = work
        self.place = place
        self.gpus = gpus
        self.actor: Any = None
        self.stopped = threading.Event()

    def run(self, task: dict[str, Any]) -> Answer:
        """Send a task and wait; an actor that dies is an error answer."""
        ray = _ray()
        if self.actor is None and not self.stopped.is_set():
            self.actor = self._start()
        try:
            return dict(json.loads(ray.get(self.actor.run.remote(json.dumps(task)))))
        except ray.exceptions.RayError as error:
            self.actor = None
            reason = " ".join(str(error).split())[:300]
            return {"error": f"the Ray actor ended ({type(error).__name__}: {reason})", "died": True}

    def _start(self) -> Any:
        made = (
            _ray()
            .remote(Remote)
            .options(num_cpus=self.work.threads, num_gpus=self.gpus, max_restarts=0, max_task_retries=0)
        )
        work = self.work
        return made.remote(work.threads, str(work.log.absolute()), work.call, self.place.as_dict())

    def rest(self) -> None:
        """End the actor: with more jobs than the cluster has room for, another one waits for its processors."""
        actor, self.actor = self.actor, None
        _end(actor)

    def stop(self) -> None:
        """Kill the actor; the process in it ends with its input."""
        self.stopped.set()
        _end(self.actor)


def _end(actor: Any) -> None:
    ray = _ray()
    if actor is not None and ray.is_initialized():
        ray.kill(actor)


def _ray() -> Any:
    """The package, imported on first use."""
    return importlib.import_module("ray")


def share_of_gpus(available: float, jobs: int) -> float:
    """How much of a GPU each job gets: a whole one if there are enough, else an equal part.

    >>> share_of_gpus(0, 4), share_of_gpus(8, 4), share_of_gpus(2, 4)
    (0.0, 1.0, 0.5)
    """
    return 0.0 if available < 1 else 1.0 / math.ceil(jobs / available)


@contextmanager
def opened(engine: Engine, work: Work) -> Iterator[Start]:
    """Join the cluster, or start one here with a processor per thread; leave it at the end."""
    ray = _ray()
    own = not ray.is_initialized()
    if own:
        _join(engine.address, work)
    try:
        _check_room(work)
        gpus = share_of_gpus(ray.cluster_resources().get("GPU", 0), work.jobs)
        with marked(work.folder) as place:
            yield lambda: RayRunner(work, place, gpus)
    finally:
        if own:
            ray.shutdown()


def _check_room(work: Work) -> None:
    """An actor lives on one node; if none is large enough, it would wait for ever."""
    sizes = [node["Resources"].get("CPU", 0) for node in _ray().nodes() if node["Alive"]]
    most = max(sizes, default=0)
    if most < work.threads:
        where = "the Ray cluster" if len(sizes) == 1 else "the largest node of the Ray cluster"
        raise ConfigError(
            [f"{where} has {most:g} processors, but each run is to have {work.threads} threads"]
        )


def _join(address: str | None, work: Work) -> None:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    ray = _ray()
    # Ray replaces the handler in which a command says what it has saved
    here = threading.current_thread() is threading.main_thread()
    handler = signal.getsignal(signal.SIGTERM) if here else None
    options: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
    if address is None:
        options |= {
            "num_cpus": work.jobs * work.threads,
            "include_dashboard": False,
            "object_store_memory": OBJECT_STORE,
        }
    try:
        ray.init(address=address or "local", **options)
    except (ConnectionError, ValueError, RuntimeError) as error:
        where = f"the Ray cluster at {address}" if address else "a Ray cluster on this computer"
        raise SarbError(f"{where} cannot be used: {' '.join(str(error).split())[:300]}") from error
    finally:
        if here:
            signal.signal(signal.SIGTERM, handler)
