"""How a training is spread over processes, and a step over accumulated parts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

import numpy as np
import torch
from torch import Tensor, distributed

from sarb.batches.loader import Batch
from sarb.errors import ConfigError, SarbError, setting
from sarb.methods.together import Step, add_counts, objects_of_all
from sarb.settings import Settings


class Spread:
    """The processes of one training.

    Args:
        accelerator: of Accelerate, which has joined them.
        settings: of the run.
    """

    def __init__(self, accelerator: Any, settings: Settings) -> None:
        self.rank: int = accelerator.process_index
        self.world: int = accelerator.num_processes
        self.device: torch.device = accelerator.device
        self.across = settings.across_ranks and self.world > 1
        self.generator: torch.Generator | None = torch.Generator() if self.across else None
        self._seed = settings.seed
        self._before: dict[str, float] = {}
        if settings.batch_size < self.world:
            more = setting("batch_size", self.world)
            problem = (
                f"a batch of {settings.batch_size} images cannot be split over {self.world} processes: {more}"
            )
            raise ConfigError([problem])

    def begin_epoch(self, epoch: int) -> None:
        """Seed the generators from (seed, epoch, process), and the common one like that of a single process."""
        own, common = (
            int(np.random.SeedSequence([self._seed, epoch, rank]).generate_state(1)[0])
            for rank in (self.rank, 0)
        )
        torch.manual_seed(own)
        if self.generator is not None:
            self.generator.manual_seed(common)
        self._before = {}

    def continue_epoch(self, figures: Mapping[str, float]) -> None:
        """Take up an epoch that a single process began.

        The first process has its generator, and its counts: the others start to count now.
        """
        if self.generator is not None:
            self.generator.set_state(torch.get_rng_state())
        if self.rank:
            torch.manual_seed(torch.initial_seed() + self.rank)
            self._before = dict(figures)

    def steps(self, parts: Sequence[Batch], stand_in: Sequence[bool] | None = None) -> list[Step | None]:
        """What the losses of each part have to know; None for a part that some process could not read at all.

        A process without images would leave the others waiting: all leave out the part. ``stand_in`` says in which
        parts this process has an image that does not count, see :meth:`sarb.batches.loader.Batches.stands_in`.
        """
        if self.world == 1 and len(parts) == 1:
            return [_alone(parts[0])]
        own = [[len(part.index), int(part.labels.count_nonzero()), 1] for part in parts]
        for figures, only_there in zip(own, stand_in or [False] * len(parts), strict=True):
            figures[2] -= only_there
        counts = self._gathered(torch.tensor(own, device=self.device))
        read = (counts[..., 0] > 0).all(0)
        counts = counts * read[:, None] * counts[..., 2:]
        known, images = counts[..., 1].sum(0), counts[..., 0].sum(0)
        made: list[Step | None] = []
        for number in range(len(parts)):
            step = Step(
                sizes=tuple(counts[:, number, 0].tolist()),
                rank=self.rank,
                parts=self.world * int(read.sum()),
                ratios={"known": _ratio(known, number), "images": _ratio(images, number)},
                across=self.across,
            )
            made.append(step if read[number] else None)
        return made

    def _gathered(self, value: Tensor) -> Tensor:
        """Values of all processes, (W, …), on the CPU."""
        if self.world == 1:
            return value[None].cpu()
        everyone = [torch.empty_like(value) for _ in range(self.world)]
        distributed.all_gather(everyone, value)
        return torch.stack(everyone).cpu()

    @torch.no_grad()
    def align(self, module: torch.nn.Module) -> None:
        """Give all processes the buffers of the first one: batch norms that are not synchronised have differed."""
        if self.world > 1:
            for buffer in module.buffers():
                distributed.broadcast(buffer, 0)

    def means(self, terms: Mapping[str, Tensor]) -> dict[str, float]:
        """The mean of each loss term over the processes."""
        if self.world == 1:
            return {name: value.item() for name, value in terms.items()}
        joined = torch.stack([value.detach().double() for value in terms.values()])
        return dict(zip(terms, self._gathered(joined).mean(0).tolist(), strict=True))

    def figures(self, figures: Mapping[str, float]) -> dict[str, float]:
        """A method's figures of the epoch, with what the processes counted added up."""
        counted = {name: value - self._before.get(name, 0) for name, value in figures.items()}
        if self.rank == 0 or not self._before:
            counted = dict(figures)
        return counted if self.world == 1 else add_counts(counted)

    def agree(self, what: str, seen: bool) -> bool:
        """Return ``seen`` if it is the same in all processes: all must see the same run folder."""
        everyone = objects_of_all(seen)
        if len(set(everyone)) == 1:
            return seen
        have = ", ".join(str(rank) for rank, each in enumerate(everyone) if each)
        lack = ", ".join(str(rank) for rank, each in enumerate(everyone) if not each)
        raise SarbError(
            f"{what}: process {have} of {self.world} sees it, process {lack} does not; all machines must see the same "
            "run folder, on a shared file system"
        )


def _alone(part: Batch) -> Step | None:
    return Step((len(part.index),), 0, 1, {"known": 1.0, "images": 1.0}, False) if len(part.index) else None


def _ratio(counts: Tensor, number: int) -> float:
    """How many there are in all parts, for each in this one."""
    here = float(counts[number])
    return float(counts.sum()) / here if here else 1.0


class PlainPass:
    """All training images in order, without augmentation: ``loader()`` of a method.

    Args:
        batches: (process, processes) -> the share of that process.
        spread: the processes.
    """

    def __init__(self, batches: Callable[[int, int], Iterable[Batch]], spread: Spread) -> None:
        self._batches = batches
        self._spread = spread
        self.device = spread.device

    def __call__(self) -> Iterable[Batch]:
        """All images."""
        return self._batches(0, 1)

    def share(self) -> Iterable[Batch]:
        """Those of this process."""
        return self._batches(self._spread.rank, self._spread.world)


def grouped(batches: Iterable[Batch], size: int) -> Iterator[list[Batch]]:
    """Lists of ``size`` batches; the last may be shorter."""
    rest = iter(batches)
    while group := list(islice(rest, size)):
        yield group
