"""The feature cache: the frozen trunk's activations of each image, computed once.

It has the plain view (the evaluation transform) and, on request, V augmented views of each image. There is
one memory-mapped fp16 file per view. Its key depends on the image files, the frozen weights, the transform
and, for an augmented view, seed and number. The size is announced first, and the cache refuses to fill the
disk. Finished files are kept when the computation is interrupted. Unreadable images have no activations; the
record beside the array gives the reason (:mod:`sarb.batches.cache_files`). On the CPU a faster engine than
PyTorch may compute them, equal within a stated tolerance (:mod:`sarb.batches.engines`).
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from sarb.batches.cache_files import (
    Features,
    new_array,
    only_builder,
    open_features,
    parts_of,
    put_in_place,
    unfinished_of,
)
from sarb.batches.engines import Engine, choose_engine
from sarb.batches.loader import Batches, Pictures, check_readable, make_loader
from sarb.data.dataset import Dataset
from sarb.errors import ConfigError, SarbError, named, setting
from sarb.files import cache_dir
from sarb.networks.backbones.base import Backbone
from sarb.networks.backbones.fold import folded
from sarb.progress import Progress

#: share of the free disk space that the cache may use
DISK_SHARE = 0.5


@dataclass(frozen=True)
class View:
    """One view of the images of a data set.

    Args:
        dataset: N images.
        transform: image -> (3, S, S); a random one uses the generator of (seed, number, image index).
        number: which of the augmented views; None for the plain one.
        seed: seed of the augmentation.
    """

    dataset: Dataset
    transform: Any
    number: int | None = None
    seed: int = 0

    def file(self, backbone: Backbone) -> Path:
        """The cache file of this view under these weights."""
        parts = [
            self.dataset.fingerprint(),
            backbone.frozen_fingerprint(),
            json.dumps(self.transform.config(), sort_keys=True),
            *([] if self.number is None else [f"seed {self.seed} view {self.number}"]),
        ]
        key = hashlib.sha256("\n".join(parts).encode()).hexdigest()[:20]
        return cache_dir() / "features" / f"{key}.npy"


class Computed(NamedTuple):
    """A finished array that has not its final name yet, row -> reason of unreadable images, and who computed it."""

    array: Path
    unreadable: dict[int, str]
    engine: str


#: computes a file of the cache: called with the file, the backbone, the view, the shape of the array, and the progress
Compute = Callable[[Path, Backbone, View, tuple[int, ...], Progress], Computed]

_elsewhere: ContextVar[Compute | None] = ContextVar("elsewhere", default=None)


@contextmanager
def computed_by(elsewhere: Compute) -> Iterator[None]:
    """While this lasts, missing files are computed by other processes; see :func:`sarb.bulk.features_by`."""
    token = _elsewhere.set(elsewhere)
    try:
        yield
    finally:
        _elsewhere.reset(token)


def check_elsewhere(used: bool, reason: str) -> None:
    """Raise if other processes shall compute the feature cache, and it is not used."""
    if _elsewhere.get() is not None and not used:
        raise ConfigError([f"{named('engine')} computes the feature cache, which is not used here: {reason}"])


@dataclass(frozen=True)
class _Builder:
    """How activations are computed."""

    engine: Engine
    device: torch.device
    batch_size: int
    workers: int
    progress: Progress


def cached_features(
    backbone: Backbone,
    dataset: Dataset,
    transform: Any,
    *,
    device: torch.device | None = None,
    batch_size: int = 32,
    workers: int = 0,
    progress: Progress | None = None,
) -> Features:
    """Return the activations of the plain view, computed if necessary; too many unreadable images stop it."""
    return cached_views(
        backbone,
        [View(dataset, transform)],
        device=device,
        batch_size=batch_size,
        workers=workers,
        progress=progress,
    )[0]


def cached_views(
    backbone: Backbone,
    views: Sequence[View],
    *,
    device: torch.device | None = None,
    batch_size: int = 32,
    workers: int = 0,
    progress: Progress | None = None,
) -> list[Features]:
    """Return the activations of several views in order; the disk space for missing ones is checked first."""
    how = _Builder(
        Engine("PyTorch", backbone.frozen),
        device or torch.device("cpu"),
        batch_size,
        workers,
        progress or Progress(enabled=False),
    )
    files = [view.file(backbone) for view in views]
    wanted = dict(zip(files, views, strict=True))
    features_of = {
        file: open_features(file, len(view.dataset), how.progress.say) for file, view in wanted.items()
    }
    missing = {file: view for file, view in wanted.items() if features_of[file] is None}
    if not missing:
        how.progress.once("features: from the feature cache")
    else:
        backbone.to(how.device).eval()
        shapes = {file: _shape(how, view) for file, view in missing.items()}
        _check_disk(missing, shapes, how.progress)
        compute = _elsewhere.get()
        if compute is None:
            how = replace(how, engine=_engine(how, folded(backbone), list(missing.values())))
            compute = partial(_compute, how)
        features_of |= {
            file: _build(compute, file, view, backbone, shapes[file], how.progress)
            for file, view in missing.items()
        }
    return [features for file in files if (features := features_of[file]) is not None]


def _engine(how: _Builder, backbone: Backbone, views: Sequence[View]) -> Engine:
    """The engine for all views, measured on the first images of the first one."""
    first = views[0]

    def sample() -> torch.Tensor:
        keys = [(first.number or 0, index) for index in range(min(how.batch_size, len(first.dataset)))]
        return _pictures(first)[keys].images.to(how.device)

    return choose_engine(backbone, sample, sum(len(view.dataset) for view in views), how.progress.detail)


def _pictures(view: View) -> Pictures:
    return Pictures(view.dataset.paths, view.dataset.labels.values, [view.transform], view.seed)


def _shape(how: _Builder, view: View) -> tuple[int, ...]:
    sample = torch.zeros(1, 3, view.transform.size, view.transform.size, device=how.device)
    return len(view.dataset), *activations(how.engine, sample).shape[1:]


def _check_disk(
    missing: Mapping[Path, View], shapes: Mapping[Path, tuple[int, ...]], progress: Progress
) -> None:
    """Announce the size of all missing files; raise an error if the disk is too small."""
    folder = next(iter(missing)).parent
    folder.mkdir(parents=True, exist_ok=True)
    size = sum(2 * int(np.prod(shape)) for shape in shapes.values())
    free = shutil.disk_usage(folder).free
    augmented = [view for view in missing.values() if view.number is not None]
    parts = [f"{len(view.dataset):,} images" for view in missing.values() if view.number is None]
    plural = "s" if len(augmented) > 1 else ""
    parts += [
        f"{len(augmented)} augmented view{plural} of {len(view.dataset):,} images" for view in augmented[:1]
    ]
    what = " and ".join(parts)
    progress.say(f"features: {size / 1e6:,.0f} MB for {what} in {folder} ({free / 1e9:,.1f} GB free)")
    if size > DISK_SHARE * free:
        fewer = f"Use fewer views ({named('cache_views')}), set" if augmented else "Set"
        raise SarbError(
            f"{folder}: the cache needs {size / 1e6:,.1f} MB for {what}, but only {free / 1e6:,.1f} MB are "
            f"free and it may use {DISK_SHARE:.0%} of that. {fewer} SARB_CACHE to a larger disk, or train "
            f"with {setting('cache', False)}"
        )


def _build(
    compute: Compute, file: Path, view: View, backbone: Backbone, shape: tuple[int, ...], progress: Progress
) -> Features:
    """Compute a file, unless another process did so while this one waited."""
    with only_builder(file, progress.say):
        finished = open_features(file, shape[0], lambda line: None)
        if finished is not None:
            return finished
        found = compute(file, backbone, view, shape, progress)
        put_in_place(found.array, file, found.unreadable, found.engine)
        shutil.rmtree(parts_of(file), ignore_errors=True)
        return Features(np.load(file, mmap_mode="r"), found.unreadable)


def title(view: View) -> str:
    """What a progress bar calls the computation of a view."""
    return "features" if view.number is None else f"features of view {view.number + 1}"


def _compute(
    how: _Builder, file: Path, backbone: Backbone, view: View, shape: tuple[int, ...], progress: Progress
) -> Computed:
    """Write the activations of all images here; see :data:`Compute`."""
    dataset = view.dataset
    unreadable = dict[int, str]()
    batches = Batches(len(dataset), how.batch_size, epoch=view.number or 0)
    partial_file = unfinished_of(file)
    array = new_array(partial_file, shape)
    with progress.bar(title(view), len(dataset)) as advance:
        for batch in make_loader(_pictures(view), batches, how.workers):
            unreadable.update(batch.failures)
            check_readable(list(unreadable.values()), len(dataset))
            if len(batch.index):
                array[batch.index.numpy()] = (
                    activations(how.engine, batch.images.to(how.device)).cpu().numpy()
                )
            advance(len(batch.index) + len(batch.failures))
    # Not zeros: should the record ever be lost, no run must mistake them for an image.
    array[list(unreadable)] = np.nan
    array.flush()
    return Computed(partial_file, unreadable, how.engine.name)


@torch.inference_mode()
def activations(engine: Engine, images: torch.Tensor) -> torch.Tensor:
    """Images -> activations in fp16, clipped to its range."""
    limit = torch.finfo(torch.float16).max
    return engine.run(images).clamp(-limit, limit).half()
