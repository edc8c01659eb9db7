"""Two processes of this machine: what it costs to sum gradients or to gather prototypes with gloo.

The clock counts here, not the time of a core, because a process mostly waits for the other one.
"""

from __future__ import annotations

import multiprocessing
import tempfile
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

from benchmarks.capacity_model import Sizes
from benchmarks.harness import Work

#: processes
COUNT = 2
#: numbers that all repetitions of a point together send, and the bounds of how many there are
TOTAL, FEWEST, MOST = 100_000_000, 10, 100
#: repetitions of a step of training
STEPS = 8
#: seconds that one process waits for the other
PATIENCE = 300


def exchange(kind: str) -> Callable[[Sizes], dict[str, float]]:
    """Best time on the clock of what two processes do together, see :data:`KINDS`."""

    def measure(at: Sizes) -> dict[str, float]:
        with tempfile.TemporaryDirectory() as folder:
            store = Path(folder) / "store"
            other = multiprocessing.get_context("fork").Process(target=_best, args=(kind, 1, store, at))
            other.start()
            try:
                seconds = _best(kind, 0, store, at)
            finally:
                other.join(PATIENCE)
        if other.exitcode:
            raise RuntimeError(f"the other process of {kind} ended with {other.exitcode}")
        return {"seconds": seconds}

    return measure


def _best(kind: str, rank: int, store: Path, at: Sizes) -> float:
    """Join, do the work together several times, and return the best time."""
    import torch
    from torch import distributed

    torch.set_num_threads(1)
    rendezvous = f"file://{store}"
    patience = timedelta(seconds=PATIENCE)
    distributed.init_process_group("gloo", rendezvous, patience, world_size=COUNT, rank=rank)
    try:
        work, repeats = KINDS[kind](at)
        work()
        times = []
        for _ in range(repeats):
            distributed.barrier()
            started = time.perf_counter()
            work()
            times.append(time.perf_counter() - started)
        distributed.barrier()
        return min(times)
    finally:
        distributed.destroy_process_group()


def _repeats(numbers: int) -> int:
    return min(MOST, max(FEWEST, TOTAL // max(1, numbers)))


def _all_reduce(at: Sizes) -> tuple[Work, int]:
    """Sum N numbers of all processes."""
    import torch
    from torch import distributed

    values = torch.zeros(at.N)
    return lambda: distributed.all_reduce(values), _repeats(at.N)


def _all_gather(at: Sizes) -> tuple[Work, int]:
    """Give every process the N numbers of every other one."""
    import torch
    from torch import distributed

    values = torch.zeros(at.N)
    into = [torch.zeros(at.N) for _ in range(COUNT)]
    return lambda: distributed.all_gather(into, values), _repeats(at.N)


def _training(at: Sizes) -> tuple[Work, int]:
    """A step with B images in each process, and the sum of all gradients as one tensor."""
    import torch
    from torch import distributed

    from benchmarks.capacity_work import head

    method, batch = head(at)
    network: Any = method.network
    learned = [value for name, value in network.named_parameters() if not name.startswith("backbone.")]

    def step() -> None:
        torch.manual_seed(1)
        sum(method(batch).values(), torch.zeros(())).backward()
        gradients = torch.cat(
            [
                torch.zeros_like(each).flatten() if each.grad is None else each.grad.flatten()
                for each in learned
            ]
        )
        distributed.all_reduce(gradients)
        for tensor in (*method.parameters(), batch.images):
            tensor.grad = None

    return step, STEPS


#: name -> sizes -> the work of each process, and how often
KINDS: dict[str, Callable[[Sizes], tuple[Work, int]]] = {
    "all-reduce": _all_reduce,
    "all-gather": _all_gather,
    "training": _training,
}
