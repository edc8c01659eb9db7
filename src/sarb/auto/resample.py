"""mAP of resampled images, all resamples at once: for intervals, and for paired differences of two models."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.floating]
Labels = NDArray[np.int8]
Counts = NDArray[np.int32]


def draw(images: int, resamples: int, seed: int = 0) -> Counts:
    """How often each of B resamples has each image, (N, B + 1); the first column is the images themselves."""
    random = np.random.RandomState(seed)
    drawn = [np.bincount(random.randint(images, size=images), minlength=images) for _ in range(resamples)]
    return np.stack([np.ones(images, np.int32), *drawn], axis=1).astype(np.int32)


def resampled_map(scores: Floats, labels: Labels, counts: Counts) -> NDArray[np.float64]:
    """Plain mAP in percent of B resamples, (B,); nan for one without a known positive.

    Args:
        scores: (N, C).
        labels: (N, C) in {-1, 0, +1}; entries with 0 are ignored.
        counts: (N, B) how often each resample has each photo.
    """
    precisions = [_resampled_precision(*pair, counts) for pair in zip(scores.T, labels.T, strict=True)]
    found = [each for each in precisions if each is not None]
    if not found:
        return np.full(counts.shape[1], np.nan)
    whole = np.stack(found)
    # a resample without any positive at all is nan, silently
    some = np.maximum(np.isfinite(whole).sum(0), 1)
    return np.where(np.isfinite(whole).any(0), 100 * np.nansum(whole, 0) / some, np.nan)


def _resampled_precision(score: Floats, label: Labels, counts: Counts) -> NDArray[np.float64] | None:
    """AP of one category in each resample, nan where it has no positive; None if there is none at all."""
    order = np.flatnonzero(label)
    order = order[np.argsort(-score[order], kind="stable")]
    present = np.flatnonzero(label[order] > 0)
    if not len(present):
        return None
    ranked = counts[order]
    seen = np.cumsum(ranked, axis=0, dtype=np.int32)
    weight = ranked[present]
    hits = np.cumsum(weight, axis=0, dtype=np.int32)
    # entries with equal scores count together: each takes the counts at the last of its equals
    last = np.searchsorted(-score[order], -score[order][present], side="right") - 1
    last_hit = np.searchsorted(present, last, side="right") - 1
    precision = hits[last_hit] / np.maximum(seen[last], 1)
    with np.errstate(invalid="ignore"):
        out: NDArray[np.float64] = (weight * precision).sum(0) / weight.sum(0)
    return out
