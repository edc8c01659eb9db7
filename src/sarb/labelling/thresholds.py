"""The threshold of each category, chosen from counts of held-out known labels.

All functions see the known labels as ``counts`` (2, C, L): how many present (0) and absent (1) entries of
each category have a calibrated probability in [l/L, (l+1)/L). A threshold is l/L: the entries of level l and
above are present.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sarb.errors import check_share
from sarb.labels import ABSENT, PRESENT, LabelMatrix

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]

LEVELS = 200
#: the threshold of a probability that nothing else is known about
HALF = 0.5
#: weight of the shared curve, in held-out positives (F1) or in entries above the threshold (precision)
F1_WEIGHT = 10.0
PRECISION_WEIGHT = 100.0
#: weight of the mean probability of the entries above a threshold, in held-out labels
EXPECTED_WEIGHT = 100.0
#: standard deviations to subtract from the shared precision
CAUTION = 1.0
#: threshold of a category that never reaches the precision
NEVER = np.inf


def level_counts(probabilities: Floats, labels: LabelMatrix, levels: int = LEVELS) -> Counts:
    """Count known entries (2, C, L) by level; ``probabilities`` (N, C)."""
    level = np.minimum((probabilities * levels).astype(np.int64), levels - 1)
    categories = labels.shape[1]
    place = np.arange(categories) * levels + level
    counts = [
        np.bincount(place[labels.values == code], minlength=categories * levels).reshape(categories, levels)
        for code in (PRESENT, ABSENT)
    ]
    return np.stack(counts)


def _above(counts: Counts | Floats) -> Floats:
    """Entries at each level or above, (2, C, L)."""
    return np.cumsum(counts[..., ::-1], axis=-1)[..., ::-1].astype(np.float64)


def _f1(counts: Counts, weight: float) -> Floats:
    """F1 (C, L) at each level, with the curve of all categories added with ``weight`` positives."""
    above = _above(counts)
    positives = above[0, :, :1]
    total = max(1.0, float(positives.sum()))
    found, wrong = (above[kind] + weight * above[kind].sum(0) / total for kind in (0, 1))
    return np.asarray(2 * found / np.maximum(positives + weight + found + wrong, 1e-9), np.float64)


def best_f1(counts: Counts, weight: float = F1_WEIGHT, near: float = 0.0) -> Floats:
    """Threshold of the best F1 of every category (C,), shrunk to the shared curve.

    F1_c(t) = 2 TP / (P + TP + FP) with TP, FP, P of the category plus ``weight`` times the same of all
    categories per positive. A category without held-out labels gets the shared threshold; one with many gets its own.
    With few labels many thresholds are equally good; of these it is the one that is nearest to ``near``.
    """
    f1 = _f1(counts, weight)
    levels = np.arange(counts.shape[2]) / counts.shape[2]
    best = f1 >= f1.max(axis=1, keepdims=True) - 1e-12
    return np.asarray(levels[np.argmin(np.where(best, abs(levels - near), np.inf), axis=1)], np.float64)


def implied_threshold(counts: Counts) -> float:
    """The threshold that calibrated probabilities imply: half of the best F1 of all categories together.

    If probabilities are right, another label at t changes F1 = 2 TP / (P + TP + FP) for the better where t > F1 / 2. So
    the best threshold is at most 0.5.
    """
    together = _f1(counts.sum(1, keepdims=True), 0.0)
    return float(together.max(initial=0.0) / 2) or HALF


def steady(counts: Counts, weight: float = F1_WEIGHT) -> Floats:
    """Threshold of every category (C,) as far from the implied one as its held-out labels can justify.

    t_c = (n_c · own_c + w · implied) / (n_c + w), where own_c is that of :func:`best_f1` and n_c counts the held-out
    labels of the rarer kind, present or absent: the others say little about where to divide the two.
    """
    implied = implied_threshold(counts)
    rarer = counts.sum(2).min(0)
    return np.asarray(
        (rarer * best_f1(counts, weight, implied) + weight * implied) / (rarer + weight), np.float64
    )


def precision_above(counts: Counts, weight: float = PRECISION_WEIGHT, caution: float = CAUTION) -> Floats:
    """Precision (C, L) of what is at each level or above, for every category.

    precision_c(t) = (TP_c + w · (q(t) − caution · s(t))) / (TP_c + FP_c + w). q(t) is the precision of all
    categories together at the same calibrated probability, and s(t) its standard deviation. With few entries q
    is mostly noise, so their mean probability counts as ``EXPECTED_WEIGHT`` labels: q = (TP + W · mean p)
    / (TP + FP + W).
    """
    above = _above(counts)
    found, wrong = above.sum(1)
    levels = (np.arange(counts.shape[2]) + 0.5) / counts.shape[2]
    total = _above((counts.sum((0, 1)) * levels)[None])[0]
    number = found + wrong
    mean = np.where(number > 0, total / np.maximum(number, 1), levels)
    shared = (found + EXPECTED_WEIGHT * mean) / (number + EXPECTED_WEIGHT)
    shared = shared - caution * np.sqrt(shared * (1 - shared) / (number + EXPECTED_WEIGHT + 1))
    return np.asarray((above[0] + weight * np.maximum(shared, 0)) / (above.sum(0) + weight), np.float64)


def for_precision(
    counts: Counts, target: float, weight: float = PRECISION_WEIGHT, caution: float = CAUTION
) -> Floats:
    """Lowest threshold (C,) whose :func:`precision_above` reaches ``target``; ``NEVER`` if none does."""
    check_share("min_precision", target)
    reached = precision_above(counts, weight, caution) >= target
    return np.where(reached.any(1), np.argmax(reached, axis=1) / counts.shape[2], NEVER)


def expected_for_precision(probabilities: Floats, target: float) -> Floats:
    """The same (C,) without held-out labels: from the mean probability above the threshold.

    Args:
        probabilities: (N, C); entries not to be counted are nan.
        target: share.
    """
    check_share("min_precision", target)
    ranked = -np.sort(-np.where(np.isnan(probabilities), -1.0, probabilities), axis=0)
    mean = np.cumsum(np.maximum(ranked, 0), axis=0) / np.arange(1, len(ranked) + 1)[:, None]
    # of equal probabilities, all join or none
    last = np.ones(ranked.shape, bool)
    last[:-1] = ranked[:-1] != ranked[1:]
    fits = (mean >= target) & (ranked >= 0) & last
    place = np.arange(1, len(ranked) + 1)[:, None]
    size = np.where(fits, place, 0).max(0, initial=0)
    lowest = (
        np.take_along_axis(ranked, np.maximum(size - 1, 0)[None], axis=0)[0] if len(ranked) else np.zeros(0)
    )
    return np.where(size > 0, lowest, NEVER) if len(ranked) else np.full(probabilities.shape[1], NEVER)
