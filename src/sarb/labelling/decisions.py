"""Thresholds that are no worse than 0.5, as far as held-out known labels can tell. Needs no torch."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sarb.labelling.thresholds import HALF, level_counts, steady
from sarb.labels import ABSENT, PRESENT, LabelMatrix

Floats = NDArray[np.float64]

#: a threshold closer than this to 0 or 1 is worth a warning
EXTREME = 0.1


class Decisions(NamedTuple):
    """Thresholds (C,), and OF1 in percent on held-out labels at 0.5 and at thresholds that did not see them."""

    thresholds: Floats
    half: float
    chosen: float


def decide(probabilities: Floats, labels: LabelMatrix, part: NDArray[np.int64]) -> Decisions:
    """Choose a threshold per category, or 0.5 for all if that is no worse.

    Each part of the images is decided by the thresholds of the others, so no label judges a threshold it has chosen.

    Args:
        probabilities: (N, C) calibrated by fits that have not seen the image.
        labels: (N, C); unknown entries are left out.
        part: (N,) number of the part of each image.
    """
    at = np.full(probabilities.shape, HALF)
    for number in np.unique(part):
        rest = part != number
        at[~rest] = steady(level_counts(probabilities[rest], labels.take(rest)))
    half = overall_f1(probabilities >= HALF, labels)
    chosen = overall_f1(probabilities >= at, labels)
    if chosen <= half:
        return Decisions(np.full(labels.shape[1], HALF), half, chosen)
    return Decisions(steady(level_counts(probabilities, labels)), half, chosen)


def overall_f1(said: NDArray[np.bool_], labels: LabelMatrix) -> float:
    """OF1 in percent over the known entries; 0 if nothing is present and nothing is said to be."""
    present, absent = labels.values == PRESENT, labels.values == ABSENT
    right = np.count_nonzero(said & present)
    total = np.count_nonzero(said & (present | absent)) + np.count_nonzero(present)
    return 200 * right / total if total else 0.0


def extreme(thresholds: Floats, probabilities: Floats, labels: LabelMatrix) -> list[str]:
    """A line for each category whose threshold is near 0 or 1, or marks all photos although one is known to lack it."""
    marked = (probabilities >= thresholds).sum(0)
    images = len(probabilities)
    lines = []
    for name, at, count, absent in zip(labels.categories, thresholds, marked, labels.negatives, strict=True):
        if not EXTREME <= at <= 1 - EXTREME or (images and count == images and absent):
            lines.append(f"{name}: {at:.2f} marks {count:,} of {images:,} photos")
    return lines
