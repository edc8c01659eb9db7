"""The same work by Ray Data: an actor per worker loads the model once and does chunks by number.

Only the number of a chunk goes to a worker, and only a line about its part comes back, so the memory of the driver
does not grow with the images. Ray starts a lost actor again and gives its chunk to another one.
"""

from __future__ import annotations

import logging
import os
import socket
import warnings
from collections.abc import Iterable, Iterator
from typing import Any

from sarb.bulk.job import Job
from sarb.bulk.kinds import worker_of
from sarb.bulk.parts import Part
from sarb.errors import SarbError

#: times that a chunk is done again after its worker was lost
RETRIES = 5
#: chunks at once in Ray's plan; a plan for millions of them would take memory
ROUND = 2000
#: seconds in which a cluster must answer
PATIENCE = 10


class Actor:
    """A worker as Ray Data calls it."""

    def __init__(self, job: dict[str, Any]) -> None:
        self.worker = worker_of(Job(**job))

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        """Do the chunks of a batch."""
        return {"part": [self.worker.do(int(number)).to_json() for number in batch["number"]]}


def on_ray(job: Job, numbers: Iterable[int], workers: int, address: str | None) -> Iterator[Part]:
    """Do chunks on a Ray cluster; parts come in the order in which they are finished."""
    ray = need_ray()
    connect(ray, address)
    everything = list(numbers)
    workers = workers or max(1, int(ray.cluster_resources().get("CPU", 1)) // job.threads)
    there = ray.util.client.ray.is_connected()  # ray://
    for start in range(0, len(everything), ROUND):
        numbers_now = everything[start : start + ROUND]
        try:
            yield from (_round_there if there else _round)(ray, job, numbers_now, workers)
        except ray.exceptions.RayError as error:
            reason = " ".join(str(error).split())[:500]
            raise SarbError(f"Ray gave up: {reason}. The same command goes on where it stopped") from error


def need_ray() -> Any:
    """Import Ray Data; if it is missing, say how to install it."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")  # it remarks on how Ray Data itself starts actors
    try:
        import ray
        import ray.data
    except ImportError:
        raise SarbError("engine ray needs Ray: pip install 'sarb[ray]'") from None
    return ray


def connect(ray: Any, address: str | None) -> None:
    """Use the cluster at an address, or $RAY_ADDRESS, or one that was joined before; else start one here."""
    if ray.is_initialized():
        return
    # without an address Ray would join any cluster that it finds on this computer
    place = address or os.environ.get("RAY_ADDRESS") or "local"
    options = {"include_dashboard": False} if place == "local" else {}
    try:
        _knock(place)
        ray.init(address=place, log_to_driver=False, configure_logging=False, **options)
    except (OSError, ValueError, RuntimeError, ImportError) as error:
        reason = " ".join(str(error).split())[:300]
        raise SarbError(f"{place}: no Ray cluster can be joined there ({reason})") from None


def _knock(place: str) -> None:
    """Raise an OSError at once if nothing listens at HOST:PORT; Ray itself would try for minutes."""
    host, _, port = place.removeprefix("ray://").rpartition(":")
    if host and port.isdecimal() and "://" not in host:
        socket.create_connection((host.strip("[]"), int(port)), timeout=PATIENCE).close()


def _round(ray: Any, job: Job, numbers: list[int], workers: int) -> Iterator[Part]:
    import pyarrow

    # a block per chunk, made here: tasks that read them would need processors that the actors hold
    blocks = [pyarrow.table({"number": [number]}) for number in numbers]
    quiet(ray)
    with warnings.catch_warnings():
        # it wants these options under names of their own, which retries do not have yet
        warnings.simplefilter("ignore", DeprecationWarning)
        work = ray.data.from_arrow(blocks).map_batches(
            Actor,
            batch_size=1,
            fn_constructor_args=(job.to_dict(),),
            compute=ray.data.ActorPoolStrategy(size=min(workers, len(numbers))),
            num_cpus=job.threads,
            ray_remote_args_fn=lambda: {"max_task_retries": RETRIES},
        )
    for row in work.iter_rows():
        yield Part.from_json(row["part"])


class Driver:
    """A round inside the cluster, asked for one part after the other: Ray Data cannot be driven through ray://."""

    def __init__(self, job: dict[str, Any], numbers: list[int], workers: int) -> None:
        self._parts = _round(need_ray(), Job(**job), numbers, workers)

    def next(self) -> str:
        """The next part as a line, "" after the last one."""
        part = next(self._parts, None)
        return "" if part is None else part.to_json()


def _round_there(ray: Any, job: Job, numbers: list[int], workers: int) -> Iterator[Part]:
    driver = ray.remote(num_cpus=0)(Driver).remote(job.to_dict(), numbers, workers)
    while line := ray.get(driver.next.remote()):
        yield Part.from_json(line)


def quiet(ray: Any) -> None:
    """Keep Ray Data's own bars and notes away from ours."""
    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    logging.getLogger("ray.data").setLevel(logging.ERROR)
