"""Where a run's batches come from: training and validation images, from files or the feature cache."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from sarb.batches.cache_files import Features, cache_note
from sarb.batches.features import View, cached_views
from sarb.batches.loader import Batch, CachedMaps, CachedViews, Pictures, Source, check_readable
from sarb.data.dataset import Dataset
from sarb.data.images import TrainTransform
from sarb.errors import ConfigError
from sarb.labels import LabelMatrix
from sarb.methods.base import Method
from sarb.model import Model
from sarb.networks.backbones.base import Backbone
from sarb.progress import Progress
from sarb.settings import Settings


@dataclass(frozen=True)
class Split:
    """Training and validation images, as data sets and as rows of the whole."""

    whole: Dataset
    train: Dataset
    valid: Dataset
    rows: NDArray[np.int64]
    held: NDArray[np.int64]

    @classmethod
    def of(cls, whole: Dataset, valid: float | Dataset | None, seed: int) -> Split:
        """Split off a share of the images; labels are already hidden, also those of validation images."""
        everything = np.arange(len(whole))
        if isinstance(valid, Dataset):
            return cls(whole, whole, valid, everything, everything[:0])
        if valid is not None and not 0 <= valid < 1:
            raise ConfigError([f"valid is a share of the training images below 1, got {valid}"])
        order = np.random.RandomState(seed).permutation(len(whole))
        count = max(1, round(valid * len(whole))) if valid else 0
        rows = np.sort(order[count:])
        held = np.sort(order[:count])
        return cls(whole, whole.take(rows), whole.take(held), rows, held)


class Skipped:
    """Images a run could not read: left out, counted and listed; more than 1 % of a data set is an error.

    Args:
        split: training and validation images. Validation images split off from the training images count
            together with them.
        talk: reports each image once.
    """

    def __init__(self, split: Split, talk: Progress) -> None:
        self.split = split
        self.talk = talk
        self.found: dict[tuple[str, str], str] = {}  # (part, file name) -> reason

    def add(self, part: str, failures: Sequence[tuple[int, str]]) -> None:
        """Add (index, reason) of images of the part ``"train"`` or ``"valid"``."""
        if not failures:
            return
        names = {"train": self.split.train, "valid": self.split.valid}[part].labels.paths
        self.merge({"file_name": names[index], "reason": reason, "split": part} for index, reason in failures)

    def merge(self, rows: Iterable[dict[str, str]]) -> None:
        """Add images found by another process, or before the run was interrupted."""
        for row in rows:
            key = row["split"], row["file_name"]
            if key not in self.found:
                self.found[key] = row["reason"]
                self.talk.say(f"skipped: {row['reason']}")
        groups = [({"train"}, self.split.train), ({"valid"}, self.split.valid)]
        for parts, dataset in [({"train", "valid"}, self.split.whole)] if len(self.split.held) else groups:
            check_readable(
                [reason for (part, _), reason in self.found.items() if part in parts], len(dataset)
            )

    def rows(self) -> list[dict[str, str]]:
        """Rows of ``errors.csv``, sorted."""
        return [
            {"file_name": name, "reason": reason, "split": part}
            for (part, name), reason in sorted(self.found.items())
        ]

    def readable(self, part: str, batches: Iterable[Batch]) -> Iterator[Batch]:
        """Add the unreadable images of batches, and skip batches that are empty."""
        for batch in batches:
            self.add(part, batch.failures)
            if len(batch.index):
                yield batch

    def figures(self) -> dict[str, int]:
        """Numbers for ``log.csv``: known labels of readable images, and images skipped so far."""
        from accelerate.utils import gather_object

        self.merge(gather_object(self.rows()))  # each process reads a part of the images
        return {"known": int(np.count_nonzero(self.used().values)), "skipped": len(self.found)}

    def used(self) -> LabelMatrix:
        """The training labels without those of unreadable images."""
        labels = self.split.train.labels
        return labels.take(np.array([("train", path) not in self.found for path in labels.paths], bool))


@dataclass(frozen=True)
class Sources:
    """Batches for training (augmented), for a plain pass over the training images, and for validation.

    ``cached``: whether they come from the feature cache. ``views``: augmented views per training image in the
    cache (0: training uses the plain view). ``size``: bytes of all cache files that this run reads.
    """

    train: Source
    plain: Source
    valid: Source
    cached: bool = False
    views: int = 0
    size: int = 0

    def record(self) -> dict[str, Any]:
        """What ``config.json`` says about the cache."""
        return {"cached": self.cached, "cached_views": self.views, "cached_bytes": self.size}

    @classmethod
    def of(
        cls,
        split: Split,
        model: Model,
        method: Method,
        settings: Settings,
        device: torch.device,
        talk: Progress,
    ) -> Sources:
        """Use the feature cache if possible, else the files."""
        backbone = model.network.backbone
        plain = model.transform
        if use_cache(settings, method, device, backbone):
            return cls._cached(split, model, settings, device, talk)
        augment = (
            TrainTransform(settings.image_size, backbone.mean, backbone.std) if settings.augment else plain
        )
        views = [{"train": augment, "plain": plain}[name] for name in method.views]
        return cls(
            Pictures(split.train.paths, split.train.labels.values, views, settings.seed),
            Pictures(split.train.paths, split.train.labels.values, [plain]),
            Pictures(split.valid.paths, split.valid.labels.values, [plain]),
        )

    @classmethod
    def _cached(
        cls, split: Split, model: Model, settings: Settings, device: torch.device, talk: Progress
    ) -> Sources:
        """The plain view of all images, and the augmented views of the training images."""
        backbone = model.network.backbone
        own = bool(len(split.valid) and not len(split.held))
        augment = TrainTransform(settings.image_size, backbone.mean, backbone.std)
        # The plain view of the whole set, so that another split can use the same cache.
        wanted = [
            View(dataset, model.transform) for dataset in [split.whole, *([split.valid] if own else [])]
        ]
        wanted += [
            View(split.train, augment, number, settings.seed) for number in range(settings.cache_views)
        ]
        found = cached_views(backbone, wanted, device=device, workers=settings.workers, progress=talk)
        stored = found[0]
        size = sum(features.activations.nbytes for features in found)
        talk.once(f"training on {cache_note(settings.cache_views, size)}")

        plain = _maps(stored, split.train, split.rows)
        train = found[1 + own :]
        valid = _maps(found[1], split.valid) if own else _maps(stored, split.valid, split.held)
        if train:
            return cls(_views(train, split.train, settings.seed), plain, valid, True, len(train), size)
        mirrored = _maps(stored, split.train, split.rows, settings.seed) if settings.flip else plain
        return cls(mirrored, plain, valid, True, 0, size)


def _maps(
    stored: Features, dataset: Dataset, rows: NDArray[np.int64] | None = None, flip: int | None = None
) -> CachedMaps:
    return CachedMaps(stored.activations, dataset.labels.values, rows, flip, stored.unreadable)


def _views(stored: Sequence[Features], dataset: Dataset, seed: int) -> CachedViews:
    unreadable = {row: reason for features in stored for row, reason in features.unreadable.items()}
    return CachedViews([features.activations for features in stored], dataset.labels.values, seed, unreadable)


def use_cache(settings: Settings, method: Method, device: torch.device, backbone: Backbone) -> bool:
    """Use the cache if requested, or on a CPU if possible; raise if it is requested but impossible."""
    views = settings.cache_views
    reason = ""
    if views and settings.cache is False:
        raise ConfigError(
            [
                f"cache_views={views} needs the feature cache, which cache=False (--no-cache) turns off: "
                "drop one of them. Without the cache, --augment makes new crops and flips each epoch"
            ]
        )
    if not method.cacheable or method.views != ("train",):
        reason = f"method '{settings.method}' mixes pixels or needs several views of an image"
    elif views and backbone.train_stages == len(backbone.stage_names):
        reason = "every stage of the backbone is trained, so nothing is frozen (see backbone.train_stages)"
    elif settings.augment and not views:
        reason = (
            "augmentation is on (--no-augment turns it off, --cache-views 4 trains on cached augmented views)"
        )
    if views and reason:
        raise ConfigError(
            [f"--cache-views {views}: {reason}. Drop it; --augment makes crops and flips on the fly"]
        )
    if settings.cache and reason:
        raise ConfigError([f"the feature cache cannot be used: {reason}"])
    return (
        not reason and settings.cache is not False and bool(settings.cache or views or device.type == "cpu")
    )
