"""Is one model better than another on these photos? A paired bootstrap of the difference of their mAP."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sarb.auto.resample import draw, resampled_map

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


def compare(
    ours: Sequence[Floats],
    theirs: Sequence[Floats],
    labels: Labels,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Difference:
    """Mean over masks of mAP(ours) − mAP(theirs); one matrix of scores (N, C) per mask, photos resampled."""
    counts = draw(len(labels), resamples, seed)
    differences = [
        resampled_map(a, labels, counts) - resampled_map(b, labels, counts)
        for a, b in zip(ours, theirs, strict=True)
    ]
    pooled = np.mean(differences, axis=0)
    low, high = np.nanpercentile(pooled[1:], [2.5, 97.5])
    return Difference(float(pooled[0]), float(low), float(high))
