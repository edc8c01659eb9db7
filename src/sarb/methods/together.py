"""What the processes of one training share: memories, counts, the images of a step, a pass over all images.

Outside a training in several processes, every function returns what it was given.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor, distributed

from sarb.batches.loader import Batch
from sarb.errors import SarbError
from sarb.labels import Targets

#: for another process, in a barrier or a sum
LONGEST_WAIT = timedelta(hours=12)


def meet() -> bool:
    """Join the other processes of torchrun, if there are any; return whether this is the first."""
    if int(os.environ.get("WORLD_SIZE") or 1) > 1 and {"RANK", "MASTER_ADDR"} <= os.environ.keys():
        from accelerate import PartialState

        PartialState(cpu=not torch.accelerator.is_available(), timeout=LONGEST_WAIT)
    return place()[0] == 0


def place() -> tuple[int, int]:
    """Number of this process, and how many there are."""
    if not (distributed.is_available() and distributed.is_initialized()):
        return 0, 1
    return distributed.get_rank(), distributed.get_world_size()


#: what the libraries behind torch.distributed say when the other end has gone
LOST = ("closed by peer", "reset by peer", "gloo", "nccl", "tcpstore")


@contextmanager
def connected() -> Iterator[None]:
    """Turn the error of a lost process into one that says what has happened and what to do."""
    try:
        yield
    except RuntimeError as error:
        rank, world = place()
        text = str(error)
        if world == 1 or not any(sign in text.lower() for sign in LOST):
            raise
        raise SarbError(
            f"process {rank} of {world} lost another process, which has stopped or cannot be reached any more: see the "
            f"messages of the others. The last checkpoint is saved; the same command with --resume continues, also "
            f"with another number of processes ({text.splitlines()[0]})"
        ) from error


def objects_of_all(own: Any) -> list[Any]:
    """What each process gives, in the order of the processes."""
    gathered: list[Any] = [own] * place()[1]
    if len(gathered) == 1:
        return gathered
    distributed.all_gather_object(gathered, own)
    return gathered


def from_all(*parts: Tensor) -> list[Tensor]:
    """Join tensors (n, …) of all processes, in the order of the processes; n may differ between them.

    Every process must call it at the same point. In a single process, the tensors come back as they are.
    Buffers need this: before each step, those of the first process replace those of all others.
    """
    if place()[1] == 1:
        return list(parts)
    own = slice(0) if stands_in() else slice(None)
    gathered = objects_of_all([part[own].detach().cpu() for part in parts])
    return [
        torch.cat(pieces).to(part.device)
        for part, pieces in zip(parts, zip(*gathered, strict=True), strict=True)
    ]


def over_all(
    loader: Callable[[], Iterable[Batch]], read: Callable[[Batch], tuple[Tensor, ...]]
) -> list[Tensor]:
    """Join what ``read`` finds in all training images, in their order; each process reads its share of them.

    Args:
        loader: as given to :meth:`sarb.methods.Method.begin_epoch`, a :class:`sarb.training.spread.PlainPass`. A plain
            function gives all images to every process.
        read: batch -> tensors (n, …).
    """
    share = getattr(loader, "share", None)
    found = [read(batch) for batch in (loader if share is None else share)()]
    own = [torch.cat(parts) for parts in zip(*found, strict=True)]
    if share is None or place()[1] == 1:
        return own
    gathered = objects_of_all([part.detach().cpu() for part in own])
    # with fewer batches than processes, some have read nothing
    pieces = zip(*(parts for parts in gathered if parts), strict=True)
    return [torch.cat(each).to(loader.device) for each in pieces]  # type: ignore[attr-defined]


@dataclass(frozen=True)
class Step:
    """One part of an optimiser step: what the images of this process have to do with all others of the step.

    Attributes:
        sizes: images of each process in this part; 0 for a process whose image only stands in, see :meth:`stands_in`.
        rank: number of this process.
        parts: processes × accumulated parts; the gradient is the mean over them.
        ratios: what is counted, ``"known"`` labels or ``"images"`` -> number in all parts / number in this one.
        across: whether partners and pairs are looked for among the images of all processes.
    """

    sizes: tuple[int, ...]
    rank: int
    parts: int
    ratios: dict[str, float]
    across: bool

    @property
    def stands_in(self) -> bool:
        """Whether there are fewer images than processes, and this one only takes part with an image of another."""
        return self.sizes[self.rank] == 0

    @property
    def rows(self) -> slice:
        """Where the images of this process are among those of all."""
        if self.stands_in:
            return slice(0, 1)
        start = sum(self.sizes[: self.rank])
        return slice(start, start + self.sizes[self.rank])


_step: ContextVar[Step | None] = ContextVar("step", default=None)


def stands_in() -> bool:
    """Whether the image of this process must not count, see :meth:`Step.stands_in`."""
    step = _step.get()
    return step is not None and step.stands_in


def counted(chosen: Tensor) -> int:
    """How many entries of a mask this process has chosen, for a sum over the processes."""
    return 0 if stands_in() else int(chosen.sum())


@contextmanager
def during(step: Step | None) -> Iterator[None]:
    """Let the functions below work for this step."""
    token = _step.set(step)
    try:
        yield
    finally:
        _step.reset(token)


_generator: ContextVar[torch.Generator | None] = ContextVar("generator", default=None)


@contextmanager
def drawing(generator: torch.Generator | None) -> Iterator[None]:
    """Let :func:`common_generator` return this generator."""
    token = _generator.set(generator)
    try:
        yield
    finally:
        _generator.reset(token)


def common_generator() -> torch.Generator | None:
    """The CPU generator for what all processes must draw alike; None is torch's global one."""
    return _generator.get()


def mean_share(count: Tensor, of: Literal["known", "images"] = "known") -> Tensor:
    """The denominator with which a sum over the images of this process becomes its share of a global mean.

    The gradient of a step is the mean over its P parts (processes × accumulated parts), so with N the count of all,
    Σ_p S_p / N = (1/P) Σ_p S_p / (N/P): this returns N/P. Of the processes, N is exact. The counts of accumulated
    parts that are still to come are taken to be in proportion to their known labels, or their images: that is exact
    for known labels, and for images. For an image that stands in, it is infinite: the share is 0.
    """
    step = _step.get()
    if step is None:
        return count
    total = summed(count.detach().double() * (not step.stands_in)) * step.ratios[of] / step.parts
    if step.stands_in:
        total = torch.full_like(total, torch.inf)
    return total.to(count.dtype if count.is_floating_point() else torch.get_default_dtype())


def sum_share(total: Tensor) -> Tensor:
    """A sum over the images of this process, so that the mean over all parts is the sum over all images."""
    step = _step.get()
    return total if step is None else total * (0 if step.stands_in else step.parts)


class Pool(NamedTuple):
    """Where an image finds partners: the images of this process, or with ``across_ranks`` of all.

    Attributes:
        reps: (P, C, D); gradients flow back to the process that they come from.
        targets: (P, C).
        rows: which of them are the images of this process.
        generator: draws the same in all processes that share the pool; None is the global one.
    """

    reps: Tensor
    targets: Targets
    rows: slice
    generator: torch.Generator | None

    def keep(self, loss: Tensor) -> Tensor:
        """The same loss, which now depends on the pool in every process: all must take part in its gradient."""
        return loss + self.reps[:0].sum()


def pool(reps: Tensor, targets: Targets) -> Pool:
    """The pool of representations (B, C, D) and targets (B, C) of this process."""
    step = _step.get()
    if step is None or not step.across:
        return Pool(reps, targets, slice(0, len(reps)), None)
    # an image that cannot be read is missing from the sizes and from the representations alike
    value, weight = (_Joined.apply(part, step) for part in targets)  # type: ignore[no-untyped-call]
    joined = _Joined.apply(reps, step)  # type: ignore[no-untyped-call]
    return Pool(joined, Targets(value, weight), step.rows, common_generator())


_groups: dict[int, Any] = {}


def group() -> Any:
    """A process group for what happens inside a step.

    DistributedDataParallel sends gradients while others are computed. In a group of their own, the sums of a batch
    norm and the gradients of a pool cannot be taken for them.
    """
    world = distributed.group.WORLD
    if id(world) not in _groups:
        _groups.clear()
        _groups[id(world)] = distributed.new_group()
    return _groups[id(world)]


def summed(value: Tensor) -> Tensor:
    """Sum over the processes, of any shape; differentiable."""
    if place()[1] == 1:
        return value
    out: Tensor = _Summed.apply(value)  # type: ignore[no-untyped-call]
    return out


class _Summed(torch.autograd.Function):
    @staticmethod
    def forward(context: Any, value: Tensor) -> Tensor:
        total = value.contiguous().clone()
        distributed.all_reduce(total, group=group())
        return total

    @staticmethod
    def backward(context: Any, *gradients: Tensor) -> Tensor:
        total = gradients[0].contiguous().clone()
        distributed.all_reduce(total, group=group())
        return total


class _Joined(torch.autograd.Function):
    """Rows (n, …) of all processes, one after the other; each process gets back the sum of its rows' gradients."""

    @staticmethod
    def forward(context: Any, own: Tensor, step: Step) -> Tensor:
        context.step = step
        padded = own.new_zeros(max(step.sizes), *own.shape[1:])
        padded[: len(own)] = own.detach()
        everyone = [torch.empty_like(padded) for _ in step.sizes]
        distributed.all_gather(everyone, padded, group=group())
        return torch.cat([rows[:size] for rows, size in zip(everyone, step.sizes, strict=True)])

    @staticmethod
    def backward(context: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        total = gradients[0].contiguous().clone()
        distributed.all_reduce(total, group=group())
        return total[context.step.rows] * (not context.step.stands_in), None


def add_counts(figures: dict[str, float], prefixes: Sequence[str] = ("completed_",)) -> dict[str, float]:
    """Numbers for the log: what each process counted, added up; all else is the same in all processes."""
    everyone = objects_of_all(figures)
    return {
        name: sum(each[name] for each in everyone) if name.startswith(tuple(prefixes)) else value
        for name, value in figures.items()
    }
