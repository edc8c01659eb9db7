"""Which engine does the chunks of a job: processes of this computer, a Ray cluster, or the ranks of torchrun."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sarb.batches.prefetch import cores
from sarb.bulk import ranks
from sarb.bulk.job import Job
from sarb.bulk.parts import Part
from sarb.bulk.processes import in_processes, in_this_process
from sarb.bulk.ray_engine import need_ray, on_ray
from sarb.errors import ConfigError, check_choice, named

ENGINES = ("local", "ray")


def check_engine(engine: str, address: str | None, workers: int) -> None:
    """Raise for an engine that cannot be used, before any work is done."""
    check_choice("engine", engine, ENGINES)
    if engine == "ray":
        need_ray()
        if ranks.world() > 1:
            raise ConfigError(["engine ray starts its own workers; run it without torchrun"])
    elif address is not None:
        raise ConfigError([f"{named('address')} is for the engine ray, not {engine}"])
    if ranks.world() > 1 and workers > 1:
        raise ConfigError([f"under torchrun each process is a worker; leave out {named('workers')}"])


def do(job: Job, parts: int, engine: str, address: str | None, workers: int) -> Iterator[Part]:
    """Do all chunks, or this rank's share of them."""
    if ranks.world() > 1:
        return in_this_process(job, range(ranks.rank(), parts, ranks.world()))
    if engine == "ray":
        return on_ray(job, range(parts), workers, address)
    workers = min(workers or max(1, cores() // job.threads), parts)
    if workers <= 1:
        return in_this_process(job, range(parts))
    return in_processes(job, range(parts), workers)


def again(job: Job, numbers: Iterable[int]) -> Iterator[Part]:
    """Look at the parts of all ranks, and do what is missing."""
    return in_this_process(job, numbers)
