"""Batches: from images on disk, or from the cached activations of a frozen trunk."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.data import DataLoader, Sampler
from torch.utils.data import Dataset as TorchDataset

from sarb.batches.prefetch import Ahead, cores
from sarb.data.images import MOST_UNREADABLE, decode
from sarb.errors import ImageError

Key = tuple[int, int]  # (epoch, image index): together with the seed, this determines the augmentation


@dataclass(frozen=True)
class Batch:
    """One step's worth of data.

    Attributes:
        images: (B, 3, S, S), or the frozen trunk's activations (B, c, h, w) when ``frozen``.
        labels: (B, C) in {-1, 0, +1}.
        index: (B,) position of each image in the data set, for methods that store something per image.
        views: more views of the same images, for methods that ask for them.
        frozen: whether ``images`` come from a feature cache.
        failures: (index, reason) of images that could not be read and were left out.
    """

    images: Tensor
    labels: Tensor
    index: Tensor
    views: tuple[Tensor, ...] = ()
    frozen: bool = False
    failures: tuple[tuple[int, str], ...] = ()

    def to(self, device: torch.device, dtype: torch.dtype | None = None) -> Batch:
        """Move all tensors to a device, and images to a dtype."""
        return replace(
            self,
            images=self.images.to(device, dtype, non_blocking=True),
            labels=self.labels.to(device, non_blocking=True),
            index=self.index.to(device, non_blocking=True),
            views=tuple(view.to(device, dtype, non_blocking=True) for view in self.views),
        )


def check_readable(reasons: Sequence[str], total: int) -> None:
    """Raise if more than ``MOST_UNREADABLE`` of ``total`` images could not be read, for one reason each."""
    if reasons and len(reasons) / total > MOST_UNREADABLE:
        raise ImageError(
            f"at least {len(reasons):,} of {total:,} images cannot be read; more than {MOST_UNREADABLE:.0%} "
            "is too many ('sarb data check SRC' lists them all):\n  " + "\n  ".join(reasons[:5])
        )


class Source(Protocol):
    """Anything that returns a whole batch for a list of (epoch, index) keys."""

    def __getitem__(self, keys: Sequence[Key]) -> Batch:
        """Return the batch of these images."""

    def __len__(self) -> int:
        """Return the number of images."""


class Pictures(TorchDataset[Batch]):
    """Batches decoded from files.

    Args:
        sources: N files, or anything else that :func:`sarb.data.images.decode` accepts.
        labels: (N, C) in {-1, 0, +1}.
        transforms: one per view, called as ``transform(image, rng)``; the generator depends only on seed,
            epoch and index.
        seed: seed of the augmentation.
    """

    def __init__(
        self,
        sources: Sequence[Any],
        labels: NDArray[np.int8],
        transforms: Sequence[Callable[..., NDArray[np.float32]]],
        seed: int = 0,
    ) -> None:
        self.sources = sources
        self.labels = labels
        self.transforms = tuple(transforms)
        self.seed = seed
        # Decoded once, large enough for every view; a transform without ``least`` needs the whole image.
        sides = [getattr(transform, "least", None) for transform in transforms]
        self._least: int | None = None if None in sides else max(filter(None, sides))

    def __len__(self) -> int:
        return len(self.sources)

    def views(self, key: Key) -> list[NDArray[np.float32]] | str:
        """Return the views of one image, or why it cannot be read."""
        epoch, index = key
        random = np.random.default_rng([self.seed, epoch, index])
        try:
            image = decode(self.sources[index], self._least)
            return [transform(image, random) for transform in self.transforms]
        except ImageError as error:
            return str(error)

    def join(self, keys: Sequence[Key], views: Sequence[list[NDArray[np.float32]] | str]) -> Batch:
        """Join views into a batch; unreadable images are left out and listed."""
        readable: list[tuple[int, list[NDArray[np.float32]]]] = []
        failures: list[tuple[int, str]] = []
        for (_, index), images in zip(keys, views, strict=True):
            if isinstance(images, str):
                failures.append((index, images))
            else:
                readable.append((index, images))
        stacked = [
            torch.from_numpy(np.stack(view)) for view in zip(*(images for _, images in readable), strict=True)
        ]
        first, *others = stacked or [torch.zeros(0, 3, 1, 1)]
        rows = np.array([index for index, _ in readable], dtype=np.int64)
        return Batch(
            first,
            torch.from_numpy(self.labels[rows]),
            torch.from_numpy(rows),
            tuple(others),
            failures=tuple(failures),
        )

    def __getitem__(self, keys: Sequence[Key]) -> Batch:
        """Return the batch of these images; unreadable ones are left out and listed."""
        return self.join(keys, [self.views(key) for key in keys])

    def threads(self) -> int:
        """Return how many threads may read: one, unless all sources are paths, since others may be shared."""
        only_paths = all(issubclass(source_type, str | Path) for source_type in set(map(type, self.sources)))
        return cores() if only_paths else 1


class CachedMaps(TorchDataset[Batch]):
    """Batches from cached activations (N, c, h, w); one view per image, optionally mirrored at random.

    Args:
        activations: of all images of a data set, in fp16.
        labels: (n, C) of the images used here.
        rows: (n,) their rows in ``activations``; the first n by default.
        flip_seed: mirrors half of the maps at random, others in each epoch; None mirrors none.
        unreadable: row of ``activations`` -> why it is empty.
    """

    def __init__(
        self,
        activations: NDArray[np.float16],
        labels: NDArray[np.int8],
        rows: NDArray[np.int64] | None = None,
        flip_seed: int | None = None,
        unreadable: Mapping[int, str] | None = None,
    ) -> None:
        self.views = [np.asarray(activations)]
        self.labels = labels
        self.flip_seed = flip_seed
        self.unreadable = unreadable or {}
        self.rows = np.arange(len(labels)) if rows is None else rows

    def __len__(self) -> int:
        return len(self.labels)

    def _chosen(self, epoch: int, index: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return which view each image shows in an epoch."""
        return np.zeros_like(index)

    def _mirrored(self, epoch: int, index: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return which images are mirrored in an epoch."""
        if self.flip_seed is None:
            return np.zeros(len(index), bool)
        return np.random.default_rng([self.flip_seed, epoch, 1]).random(len(self))[index] < 0.5

    def __getitem__(self, keys: Sequence[Key]) -> Batch:
        """Return the batch of these images, as float32; unreadable ones are left out and listed."""
        epoch = keys[0][0]
        reasons = {position: self.unreadable.get(int(self.rows[position])) for _, position in keys}
        failures = tuple((position, reason) for position, reason in reasons.items() if reason is not None)
        index = np.array([position for _, position in keys if reasons[position] is None], dtype=np.int64)
        chosen = self._chosen(epoch, index)
        mirrored = self._mirrored(epoch, index)
        maps = np.empty((len(index), *self.views[0].shape[1:]), np.float16)
        for target, view, row, mirror in zip(maps, chosen, self.rows[index], mirrored, strict=True):
            target[...] = self.views[view][row, ..., ::-1] if mirror else self.views[view][row]
        # Torch only for the conversion, where it is much faster: every torch operation waits for all its
        # threads.
        images = torch.from_numpy(maps).float()
        labels = torch.from_numpy(self.labels[index])
        return Batch(images, labels, torch.from_numpy(index), frozen=True, failures=failures)


class CachedViews(CachedMaps):
    """Batches from V cached augmented views, each (n, c, h, w); in V epochs an image shows each view once.

    Image i shows view π_i(e mod V) in epoch e, where the seed determines the random permutation π_i.

    Args:
        views: activations of the images used here, one array per view.
        labels: (n, C) of the images.
        seed: seed of the permutations.
        unreadable: row -> why a view of this image is empty; the image is left out of all views.
    """

    def __init__(
        self,
        views: Sequence[NDArray[np.float16]],
        labels: NDArray[np.int8],
        seed: int,
        unreadable: Mapping[int, str] | None = None,
    ) -> None:
        super().__init__(views[0], labels, unreadable=unreadable)
        self.views = [np.asarray(view) for view in views]
        # Four numbers, the last not 0: neither the order of images (seed, epoch) nor a crop (seed, view,
        # index) can share this generator.
        draws = np.random.default_rng([seed, 0, 0, 1]).random((len(labels), len(views)))
        self.order: NDArray[np.int64] = draws.argsort(axis=1)

    def _chosen(self, epoch: int, index: NDArray[np.int64]) -> NDArray[np.int64]:
        return self.order[:, epoch % len(self.views)][index]


class Batches(Sampler[list[Key]]):
    """Lists of keys for one epoch, in order or shuffled; no image is dropped.

    Of each list of ``batch_size`` images, process ``rank`` of ``world`` gets a run of ⌈b/W⌉ or ⌊b/W⌋ images. The lists
    of all processes, one after the other, are those of a single one. Only if a last list has fewer images than there
    are processes, its first image stands in for those that are missing, because every process needs an image in
    every step; see :meth:`stands_in`.

    ``start`` leaves out the first lists, those of steps that are done, and ``stop`` those from there on.
    """

    def __init__(
        self,
        size: int,
        batch_size: int,
        epoch: int = 0,
        shuffle_seed: int | None = None,
        rank: int = 0,
        world: int = 1,
        start: int = 0,
        stop: int | None = None,
    ) -> None:
        self.size = size
        self.batch_size = batch_size
        self.epoch = epoch
        self.shuffle_seed = shuffle_seed
        self.rank = rank
        self.world = world
        self.start = start
        every = -(-size // batch_size)
        self.stop = every if stop is None else min(stop, every)

    def __len__(self) -> int:
        return max(0, self.stop - self.start)

    def share(self, rank: int, world: int) -> Batches:
        """The whole lists that one of several processes takes over: those of all, in a row, are the lists here."""
        first, last = (self.start + len(self) * each // world for each in (rank, rank + 1))
        whole = (self.size, self.batch_size, self.epoch, self.shuffle_seed)
        return Batches(*whole, start=first, stop=last)

    def stands_in(self, number: int) -> bool:
        """Whether this process has an image of another one in a list, because there are too few; it must not count."""
        return self.rank >= min(self.batch_size, self.size - number * self.batch_size)

    def __iter__(self) -> Iterator[list[Key]]:
        if self.shuffle_seed is None:
            order = np.arange(self.size)
        else:
            order = np.random.default_rng([self.shuffle_seed, self.epoch]).permutation(self.size)
        for number in range(self.start, self.stop):
            chunk = order[number * self.batch_size : (number + 1) * self.batch_size]
            if len(chunk) < self.world:
                chunk = np.concatenate([chunk, np.repeat(chunk[:1], self.world - len(chunk))])
            own = np.array_split(chunk, self.world)[self.rank]
            yield [(self.epoch, int(index)) for index in own]


class Loader(Protocol):
    """Batches in order, with a length."""

    def __iter__(self) -> Iterator[Batch]:
        """Iterate over the batches."""

    def __len__(self) -> int:
        """Return the number of batches."""


def make_loader(source: Source, batches: Batches, workers: int = 0) -> Loader:
    """Return the batches of a source; images are decoded ahead by threads, or by ``workers`` processes.

    The batches are the same either way. Worker processes use one thread each (set by torch), so they do not
    compete for cores. Cached activations are read in this process: copying them between processes would cost
    more than it saves.
    """
    if isinstance(source, Pictures) and not workers:
        return Ahead(source.views, source.join, batches, source.threads())
    return DataLoader(
        source,  # type: ignore[arg-type]
        sampler=batches,
        batch_size=None,
        num_workers=0 if isinstance(source, CachedMaps) else workers,
        pin_memory=torch.cuda.is_available(),
        # Its own generator: a DataLoader would draw from the global one, and then the run would depend on
        # whether a cache had to be built first.
        generator=torch.Generator(),
    )
