"""Where a run's batches come from: which images train and which validate, from files or the feature cache."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from sarb.batches.cache_files import Features, cache_note
from sarb.batches.features import View, cached_views, check_elsewhere
from sarb.batches.loader import Batch, CachedMaps, CachedViews, Pictures, Source, check_readable
from sarb.data.dataset import Dataset
from sarb.data.images import TrainTransform
from sarb.data.strong import StrongTransform
from sarb.errors import ConfigError, setting
from sarb.labels import LabelMatrix
from sarb.methods.base import Method
from sarb.model import Model
from sarb.networks.backbones.base import Backbone
from sarb.progress import Progress
from sarb.settings import Settings


@dataclass(frozen=True)
class Split:
    """Images to train on and images to validate on, as data sets and as rows of the whole."""

    whole: Dataset
    train: Dataset
    valid: Dataset
    rows: NDArray[np.int64]
    held: NDArray[np.int64]

    @classmethod
    def of(cls, whole: Dataset, valid: float | Dataset | None, seed: int) -> Split:
        """Hold out a fraction of the images; labels hidden before are hidden from validation as well."""
        everything = np.arange(len(whole))
        if isinstance(valid, Dataset):
            return cls(whole, whole, valid, everything, everything[:0])
        if valid is not None and not 0 <= valid < 1:
            raise ConfigError(
                [f"valid must be a fraction of the training images, at least 0 and below 1, got {valid}"]
            )
        order = np.random.RandomState(seed).permutation(len(whole))
        count = max(1, round(valid * len(whole))) if valid else 0
        rows = np.sort(order[count:])
        held = np.sort(order[:count])
        return cls(whole, whole.take(rows), whole.take(held), rows, held)


class Skipped:
    """The images a run could not read: left out, counted and listed; more than 1 % stops the run.

    Args:
        split: which images train and which validate; held-out images count towards the set they come from.
        talk: reports each image once.
    """

    def __init__(self, split: Split, talk: Progress) -> None:
        self.split = split
        self.talk = talk
        self.reasons: dict[tuple[str, str], str] = {}  # (part, file name) -> reason

    def add(self, part: str, failures: Sequence[tuple[int, str]]) -> None:
        """Add (index, reason) of unreadable images in ``"train"`` or ``"valid"``."""
        if not failures:
            return
        names = {"train": self.split.train, "valid": self.split.valid}[part].labels.paths
        self.merge({"file_name": names[index], "reason": reason, "split": part} for index, reason in failures)

    def merge(self, rows: Iterable[dict[str, str]]) -> None:
        """Add what another process found, or this run before it was interrupted."""
        for row in rows:
            key = row["split"], row["file_name"]
            if key not in self.reasons:
                self.reasons[key] = row["reason"]
                self.talk.say(f"skipped: {row['reason']}")
        if len(self.split.held):
            check_readable(self._reasons_of("train", "valid"), len(self.split.whole))
        else:
            check_readable(self._reasons_of("train"), len(self.split.train))
            check_readable(self._reasons_of("valid"), len(self.split.valid))

    def _reasons_of(self, *parts: str) -> list[str]:
        return [reason for (part, _), reason in self.reasons.items() if part in parts]

    def rows(self) -> list[dict[str, str]]:
        """Return the rows of ``errors.csv``, in an order that does not depend on when they were found."""
        return [
            {"file_name": name, "reason": reason, "split": part}
            for (part, name), reason in sorted(self.reasons.items())
        ]

    def readable(self, part: str, batches: Iterable[Batch]) -> Iterator[Batch]:
        """Yield the batches that are not empty, and add what is missing from them."""
        for batch in batches:
            self.add(part, batch.failures)
            if len(batch.index):
                yield batch

    def figures(self) -> dict[str, int]:
        """Return numbers for ``log.csv``: known labels of readable images, and images skipped so far."""
        from accelerate.utils import gather_object

        self.merge(gather_object(self.rows()))  # each process has read its share of the images
        return {"known": int(np.count_nonzero(self.used().values)), "skipped": len(self.reasons)}

    def used(self) -> LabelMatrix:
        """Return the training labels of the readable images."""
        labels = self.split.train.labels
        return labels.take(np.array([("train", path) not in self.reasons for path in labels.paths], bool))


@dataclass(frozen=True)
class Sources:
    """Batches for training (augmented), for a plain pass over the training images, and for validation.

    Attributes:
        cached: whether they come from the feature cache.
        views: cached augmented views of each training image; with 0, training uses the plain view.
        size: bytes of the cache that this run reads.
    """

    train: Source
    plain: Source
    valid: Source
    cached: bool = False
    views: int = 0
    size: int = 0

    def record(self) -> dict[str, Any]:
        """Return what ``config.json`` says about the cache."""
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
        strong = StrongTransform(settings.image_size, backbone.mean, backbone.std)
        views = [{"train": augment, "plain": plain, "strong": strong}[name] for name in method.views]
        return cls(
            Pictures(split.train.paths, split.train.labels.values, views, settings.seed),
            Pictures(split.train.paths, split.train.labels.values, [plain]),
            Pictures(split.valid.paths, split.valid.labels.values, [plain]),
        )

    @classmethod
    def _cached(
        cls, split: Split, model: Model, settings: Settings, device: torch.device, talk: Progress
    ) -> Sources:
        """Cache the plain view of all images and the augmented views of the training images."""
        backbone = model.network.backbone
        augment = TrainTransform(settings.image_size, backbone.mean, backbone.std)
        # The plain view of the whole set, so that another split can use the same cache.
        plain_sets = [split.whole]
        separate_valid = bool(len(split.valid) and not len(split.held))
        if separate_valid:
            plain_sets.append(split.valid)
        wanted = [View(dataset, model.transform) for dataset in plain_sets]
        wanted += [
            View(split.train, augment, number, settings.seed) for number in range(settings.cache_views)
        ]
        stored = cached_views(backbone, wanted, device=device, workers=settings.workers, progress=talk)
        whole = stored[0]
        augmented = stored[len(plain_sets) :]
        size = sum(features.activations.nbytes for features in stored)
        talk.detail(f"training on {cache_note(settings.cache_views, size)}")

        plain = _maps(whole, split.train, split.rows)
        valid = _maps(stored[1], split.valid) if separate_valid else _maps(whole, split.valid, split.held)
        train: Source = plain
        if augmented:
            train = _views(augmented, split.train, settings.seed)
        elif settings.flip:
            train = _maps(whole, split.train, split.rows, settings.seed)
        return cls(train, plain, valid, cached=True, views=len(augmented), size=size)


def _maps(
    stored: Features, dataset: Dataset, rows: NDArray[np.int64] | None = None, flip: int | None = None
) -> CachedMaps:
    return CachedMaps(stored.activations, dataset.labels.values, rows, flip, stored.unreadable)


def _views(stored: Sequence[Features], dataset: Dataset, seed: int) -> CachedViews:
    unreadable = {row: reason for features in stored for row, reason in features.unreadable.items()}
    return CachedViews([features.activations for features in stored], dataset.labels.values, seed, unreadable)


def use_cache(settings: Settings, method: Method, device: torch.device, backbone: Backbone) -> bool:
    """Return whether to use the cache: if asked, or on a CPU if possible; raise if asked but impossible."""
    views = settings.cache_views
    if views and settings.cache is False:
        raise ConfigError(
            [
                f"{setting('cache_views', views)} needs the feature cache, which {setting('cache', False)} turns "
                f"off: drop one of the two. Without the cache, {setting('augment')} draws new crops and flips in "
                "every epoch"
            ]
        )
    reason = _no_cache_reason(settings, method, backbone)
    if views and reason:
        raise ConfigError(
            [
                f"{setting('cache_views', views)}: {reason}. Remove it; {setting('augment')} draws new crops in "
                "every epoch"
            ]
        )
    if settings.cache and reason:
        raise ConfigError([f"the feature cache cannot be used: {reason}"])
    used = (
        not reason and settings.cache is not False and bool(settings.cache or views or device.type == "cpu")
    )
    check_elsewhere(
        used, reason or ("it is turned off" if settings.cache is False else "training is on a GPU")
    )
    return used


def _no_cache_reason(settings: Settings, method: Method, backbone: Backbone) -> str:
    """Return why the cache cannot be used; "" if it can."""
    if not method.cacheable or method.views != ("train",):
        return f"method '{settings.method}' mixes pixels or needs several views of an image"
    if settings.cache_views and backbone.train_stages == len(backbone.stage_names):
        return "every stage of the backbone is trained, so nothing is frozen (see backbone.train_stages)"
    if settings.augment and not settings.cache_views:
        return (
            "per-epoch augmentation bypasses it "
            f"({setting('augment', False)} turns it off, {setting('cache_views', 4)} trains on cached augmented "
            "views)"
        )
    return ""
