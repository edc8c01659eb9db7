"""Batches: from images on disk, or from the cached activations of a frozen trunk."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.data import DataLoader, Sampler
from torch.utils.data import Dataset as TorchDataset

from sarb.data.images import MOST_UNREADABLE, decode
from sarb.errors import ImageError

Key = tuple[int, int]  # (epoch, image index): with the seed, all that an augmentation depends on


@dataclass(frozen=True)
class Batch:
    """One step's worth of data.

    Attributes:
        images: (B, 3, S, S), or the frozen trunk's activations (B, c, h, w) when ``frozen``.
        labels: (B, C) in {-1, 0, +1}.
        index: (B,) position of each image in the data set, for methods that remember something per image.
        views: further views of the same images, for methods that ask for them.
        frozen: whether ``images`` come from a feature cache.
        failures: (index, reason) of images that could not be read and are missing from the batch.
    """

    images: Tensor
    labels: Tensor
    index: Tensor
    views: tuple[Tensor, ...] = ()
    frozen: bool = False
    failures: tuple[tuple[int, str], ...] = ()

    def to(self, device: torch.device) -> Batch:
        """Move all tensors."""
        return replace(
            self,
            images=self.images.to(device, non_blocking=True),
            labels=self.labels.to(device, non_blocking=True),
            index=self.index.to(device, non_blocking=True),
            views=tuple(view.to(device, non_blocking=True) for view in self.views),
        )


def check_readable(reasons: Sequence[str], total: int) -> None:
    """Raise when more than ``MOST_UNREADABLE`` of ``total`` images could not be read; ``reasons`` has one line each."""
    if reasons and len(reasons) / total > MOST_UNREADABLE:
        raise ImageError(
            f"at least {len(reasons):,} of {total:,} images cannot be read, and more than {MOST_UNREADABLE:.0%} stop a "
            "run ('sarb data check SRC' lists them all):\n  " + "\n  ".join(reasons[:5])
        )


class Source(Protocol):
    """Anything that gives whole batches by (epoch, index) keys."""

    def __getitem__(self, keys: Sequence[Key]) -> Batch:
        """Return the batch of these images."""

    def __len__(self) -> int:
        """Return the number of images."""


class Pictures(TorchDataset[Batch]):
    """Batches decoded from files.

    Args:
        sources: N files (or anything else that :func:`sarb.data.images.decode` takes).
        labels: (N, C) in {-1, 0, +1}.
        transforms: one per view, called as ``transform(image, rng)``; the generator follows from seed, epoch, index.
        seed: of the augmentation.
    """

    def __init__(
        self,
        sources: Sequence[Any],
        labels: NDArray[np.int8],
        transforms: Sequence[Callable[..., NDArray[np.float32]]],
        seed: int = 0,
    ) -> None:
        self.sources, self.labels, self.transforms, self.seed = sources, labels, tuple(transforms), seed

    def __len__(self) -> int:
        return len(self.sources)

    def _views(self, epoch: int, index: int) -> list[NDArray[np.float32]]:
        image = decode(self.sources[index])
        random = np.random.default_rng([self.seed, epoch, index])
        return [transform(image, random) for transform in self.transforms]

    def __getitem__(self, keys: Sequence[Key]) -> Batch:
        """Return the batch of these images; unreadable ones are left out and listed."""
        views: list[list[NDArray[np.float32]]] = []
        index, failures = [], []
        for epoch, position in keys:
            try:
                views.append(self._views(epoch, position))
                index.append(position)
            except ImageError as error:
                failures.append((position, str(error)))
        stacked = tuple(torch.from_numpy(np.stack(view)) for view in zip(*views, strict=True)) or (
            torch.zeros(0, 3, 1, 1),
        )
        labels = torch.from_numpy(self.labels[index])
        return Batch(stacked[0], labels, torch.tensor(index, dtype=torch.long), stacked[1:], failures=tuple(failures))


class CachedMaps(TorchDataset[Batch]):
    """Batches from cached activations (N, c, h, w); one view per image, mirrored at random on request.

    Args:
        activations: of all images of a data set.
        labels: (n, C) of the images used here.
        rows: (n,) their rows in ``activations``; all of them when left out.
        flip_seed: mirror every second map at random, by seed, epoch and index; None never does.
        unreadable: row of ``activations`` -> why it holds nothing.
    """

    def __init__(
        self,
        activations: NDArray[np.float16],
        labels: NDArray[np.int8],
        rows: NDArray[np.int64] | None = None,
        flip_seed: int | None = None,
        unreadable: Mapping[int, str] | None = None,
    ) -> None:
        self.activations, self.labels, self.flip_seed = activations, labels, flip_seed
        self.unreadable = unreadable or {}
        self.rows = np.arange(len(labels)) if rows is None else rows

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, keys: Sequence[Key]) -> Batch:
        """Return the batch of these images, as float32; unreadable ones are left out and listed."""
        reasons = {position: self.unreadable.get(int(self.rows[position])) for _, position in keys}
        index = np.array([position for _, position in keys if reasons[position] is None], dtype=np.int64)
        failures = tuple((position, reason) for position, reason in reasons.items() if reason is not None)
        activations = torch.from_numpy(self.activations[self.rows[index]])
        if self.flip_seed is not None:
            epoch = keys[0][0]
            mirrored = np.random.default_rng([self.flip_seed, epoch, 1]).random(len(self))[index] < 0.5
            chosen = torch.from_numpy(mirrored)
            activations[chosen] = activations[chosen].flip(-1)  # half of the images, in half precision
        activations = activations.float()
        labels = torch.from_numpy(self.labels[index])
        return Batch(activations, labels, torch.from_numpy(index), frozen=True, failures=failures)


class Batches(Sampler[list[Key]]):
    """Lists of keys: one epoch in seeded random order (or in order), shared out over processes; none is dropped."""

    def __init__(
        self, size: int, batch_size: int, epoch: int = 0, shuffle_seed: int | None = None, rank: int = 0, world: int = 1
    ) -> None:
        self.size, self.batch_size, self.epoch = size, batch_size, epoch
        self.shuffle_seed, self.rank, self.world = shuffle_seed, rank, world

    def __len__(self) -> int:
        return -(-self.size // (self.batch_size * self.world))

    def __iter__(self) -> Iterator[list[Key]]:
        if self.shuffle_seed is None:
            order = np.arange(self.size)
        else:
            order = np.random.default_rng([self.shuffle_seed, self.epoch]).permutation(self.size)
        step = self.batch_size * self.world
        for start in range(0, self.size, step):
            # every process needs its share in every step: a short last step wraps round to the start of the order
            chunk = order[start : start + step]
            if self.world > 1:
                chunk = np.resize(np.concatenate([chunk, order]), -(-len(chunk) // self.world) * self.world)
            yield [(self.epoch, int(index)) for index in chunk[self.rank :: self.world]]


def make_loader(source: Source, batches: Batches, workers: int = 0) -> DataLoader[Batch]:
    """A DataLoader whose every item is a whole batch."""
    # A generator of its own: a DataLoader draws from the global one otherwise, and whether a cache had to be built
    # would change the run.
    options: dict[str, Any] = {
        "num_workers": workers, "pin_memory": torch.cuda.is_available(), "generator": torch.Generator(),
    }  # fmt: skip
    if workers and isinstance(source, CachedMaps):
        options["num_workers"] = 0  # a gather from a memory map gains nothing from being sent between processes
    return DataLoader(source, sampler=batches, batch_size=None, **options)  # type: ignore[arg-type]
