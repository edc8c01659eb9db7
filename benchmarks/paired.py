"""Is one model better than another on these photos? A paired bootstrap of the difference of their mAP."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

RESAMPLES = 1000

Floats = NDArray[np.floating]
Labels = NDArray[np.int8]


class Difference(NamedTuple):
    """Difference of two mAP in percent, with its 95 % interval over the photos."""

    mean: float
    low: float
    high: float

    @property
    def texts(self) -> dict[str, str]:
        """As columns of a table."""
        return {"gain": f"{self.mean:+.2f}", "low": f"{self.low:+.2f}", "high": f"{self.high:+.2f}"}


def resampled_map(scores: Floats, labels: Labels, counts: NDArray[np.int32]) -> NDArray[np.float64]:
    """Plain mAP in percent of B resamples, (B,).

    Args:
        scores: (N, C).
        labels: (N, C) in {-1, 0, +1}; entries with 0 are ignored.
        counts: (N, B) how often each resample has each photo.
    """
    precisions = [_resampled_precision(*pair, counts) for pair in zip(scores.T, labels.T, strict=True)]
    return 100 * np.nanmean(np.stack([each for each in precisions if each is not None]), axis=0)


def _resampled_precision(
    score: Floats, label: Labels, counts: NDArray[np.int32]
) -> NDArray[np.float64] | None:
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


def compare(
    ours: Sequence[Floats],
    theirs: Sequence[Floats],
    labels: Labels,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Difference:
    """Mean over masks of mAP(ours) − mAP(theirs); one matrix of scores (N, C) per mask, photos resampled."""
    total = len(labels)
    random = np.random.RandomState(seed)
    drawn = [np.bincount(random.randint(total, size=total), minlength=total) for _ in range(resamples)]
    counts = np.stack([np.ones(total, np.int32), *drawn], axis=1).astype(np.int32)
    differences = [
        resampled_map(a, labels, counts) - resampled_map(b, labels, counts)
        for a, b in zip(ours, theirs, strict=True)
    ]
    pooled = np.mean(differences, axis=0)
    low, high = np.nanpercentile(pooled[1:], [2.5, 97.5])
    return Difference(float(pooled[0]), float(low), float(high))
