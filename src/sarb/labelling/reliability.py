"""How good are the probabilities? Calibration error, Brier score and the data of a reliability plot.

Pure functions of probabilities (N, C) and labels (N, C) in {-1, 0, +1}; unknown entries are left out.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sarb.errors import DataError
from sarb.labels import PRESENT, UNKNOWN, LabelMatrix

Floats = NDArray[np.float64]

BINS = 15


def equal_mass_bins(values: Floats, bins: int = BINS, together: bool = False) -> NDArray[np.int64]:
    """Number 0 … bins−1 of each value's bin, in order of the values, equally many in each.

    Args:
        values: (M,).
        bins: how many.
        together: put equal values into one bin, which is then larger. Otherwise a seeded draw splits ties,
            because their order in the file may carry information.
    """
    if together:
        rank = np.searchsorted(np.sort(values), values, side="left")
    else:
        rank = np.empty(len(values), np.int64)
        rank[np.lexsort((np.random.RandomState(0).random_sample(len(values)), values))] = np.arange(
            len(values)
        )
    return np.asarray(rank * bins // max(1, len(values)), np.int64)


def calibration_error(
    probabilities: ArrayLike, labels: LabelMatrix | ArrayLike, bins: int = BINS, together: bool = False
) -> Floats:
    """Class-wise, equal-mass expected calibration error, (C,), nan for a category without a known label.

    ECE_c = Σ_b (n_b / n_c) · |mean probability of bin b − share of present entries in it|, over the known
    entries of c. Sampling noise adds to it, more so in small bins; compare only errors
    with the same bins.
    """
    result = []
    for p, present in _columns(probabilities, labels):
        number = equal_mass_bins(p, bins, together)
        gap = np.abs(np.bincount(number, p - present, minlength=bins)).sum()
        result.append(gap / len(p) if len(p) else np.nan)
    return np.array(result)


def brier_score(probabilities: ArrayLike, labels: LabelMatrix | ArrayLike) -> Floats:
    """Mean squared distance of probability and truth, (C,), nan for a category without a known label."""
    columns = _columns(probabilities, labels)
    return np.array([np.mean((p - present) ** 2) if len(p) else np.nan for p, present in columns])


def base_rates(labels: LabelMatrix) -> Floats:
    """Share of present among the known entries of each category (C,); the overall share where none is known."""
    known = labels.positives + labels.negatives
    everywhere = labels.positives.sum() / max(1, known.sum())
    return np.asarray(np.where(known > 0, labels.positives / np.maximum(known, 1), everywhere), np.float64)


def reliability_table(
    probabilities: ArrayLike, labels: LabelMatrix | ArrayLike, bins: int = BINS
) -> list[tuple[float, float, int]]:
    """Rows (mean probability, share present, number of entries) of equal-mass bins over all categories.

    Most entries are near 0, so half of the bins cover the range above the median probability of the present
    entries.
    """
    p, present = _pooled(probabilities, labels)
    if not len(p):
        return []
    cut = np.median(p[present > 0]) if present.any() else np.inf
    rows = []
    for part in (p < cut, p >= cut):
        number = equal_mass_bins(p[part], bins)
        for each in np.unique(number):
            inside = number == each
            rows.append(
                (
                    float(p[part][inside].mean()),
                    float(present[part][inside].mean()),
                    int(np.count_nonzero(inside)),
                )
            )
    return rows


def _checked(probabilities: ArrayLike, labels: LabelMatrix | ArrayLike) -> tuple[Floats, NDArray[np.int8]]:
    p = np.asarray(probabilities, np.float64)
    values = labels.values if isinstance(labels, LabelMatrix) else np.asarray(labels)
    if p.shape != values.shape or p.ndim != 2:
        raise DataError(
            f"probabilities have shape {p.shape}, labels {values.shape}; both must be (images, categories)"
        )
    return p, values


def _columns(probabilities: ArrayLike, labels: LabelMatrix | ArrayLike) -> list[tuple[Floats, Floats]]:
    """Per category the probabilities of its known entries, and 1.0 where they are present."""
    p, values = _checked(probabilities, labels)
    return [
        (p[known, column], (values[known, column] == PRESENT).astype(np.float64))
        for column, known in enumerate((values != UNKNOWN).T)
    ]


def _pooled(probabilities: ArrayLike, labels: LabelMatrix | ArrayLike) -> tuple[Floats, Floats]:
    p, values = _checked(probabilities, labels)
    known = values != UNKNOWN
    return p[known], (values[known] == PRESENT).astype(np.float64)
