"""Where the batches of a run come from: which images train, which validate, from files or from the feature cache."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from sarb.data.dataset import Dataset
from sarb.data.images import TrainTransform
from sarb.errors import ConfigError
from sarb.features import cached_features
from sarb.loader import CachedMaps, Pictures, Source
from sarb.methods.base import Method
from sarb.model import Model
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
        """Split off a share of the images; labels were hidden before, so validation labels stay hidden too."""
        everything = np.arange(len(whole))
        if isinstance(valid, Dataset):
            return cls(whole, whole, valid, everything, everything[:0])
        if valid is not None and not 0 <= valid < 1:
            raise ConfigError([f"valid is a share of the training images below 1, got {valid}"])
        order = np.random.RandomState(seed).permutation(len(whole))
        count = max(1, round(valid * len(whole))) if valid else 0
        rows, held = np.sort(order[count:]), np.sort(order[:count])
        return cls(whole, whole.take(rows), whole.take(held), rows, held)


@dataclass(frozen=True)
class Sources:
    """Batches for training (augmented), for a plain pass over the training images, and for validation."""

    train: Source
    plain: Source
    valid: Source
    cached: bool

    @classmethod
    def of(
        cls, split: Split, model: Model, method: Method, settings: Settings, device: torch.device, talk: Progress
    ) -> Sources:
        """Take the feature cache where it can serve, else the files."""
        if use_cache(settings, method, device):
            return cls._cached(split, model, settings, device, talk)
        backbone, plain = model.network.backbone, model.transform
        augment = TrainTransform(settings.image_size, backbone.mean, backbone.std) if settings.augment else plain
        views = [{"train": augment, "plain": plain}[name] for name in method.views]
        return cls(
            Pictures(split.train.paths, split.train.labels.values, views, settings.seed),
            Pictures(split.train.paths, split.train.labels.values, [plain]),
            Pictures(split.valid.paths, split.valid.labels.values, [plain]),
            False,
        )

    @classmethod
    def _cached(cls, split: Split, model: Model, settings: Settings, device: torch.device, talk: Progress) -> Sources:
        def activations(dataset: Dataset) -> NDArray[np.float16]:
            return cached_features(
                model.network.backbone, dataset, model.transform, device=device, workers=settings.workers, progress=talk
            )

        stored = activations(split.whole)  # of the whole set, so that another split needs no other cache
        plain = CachedMaps(stored, split.train.labels.values, split.rows)
        train = plain
        if settings.flip:
            train = CachedMaps(stored, split.train.labels.values, split.rows, flip_seed=settings.seed)
        if len(split.held) or not len(split.valid):
            valid = CachedMaps(stored, split.valid.labels.values, split.held)
        else:
            valid = CachedMaps(activations(split.valid), split.valid.labels.values)
        return cls(train, plain, valid, True)


def use_cache(settings: Settings, method: Method, device: torch.device) -> bool:
    """Cache when asked, or on a CPU when it is possible; refuse where it cannot serve."""
    reason = ""
    if settings.augment:
        reason = "augmentation is on (--no-augment turns it off)"
    elif not method.cacheable or method.views != ("train",):
        reason = f"method '{settings.method}' mixes pixels or needs several views of an image"
    if settings.cache and reason:
        raise ConfigError([f"the feature cache cannot be used: {reason}"])
    return not reason and settings.cache is not False and (settings.cache is True or device.type == "cpu")
