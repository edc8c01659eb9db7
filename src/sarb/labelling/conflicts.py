"""Known labels that look wrong: a ranking by how little the model believes them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sarb.labels import PRESENT, LabelMatrix

Floats = NDArray[np.float64]

#: weight of the mean belief over all categories in the mean belief of one, in entries
WEIGHT = 10.0


class Conflict(NamedTuple):
    """A given label that the model contradicts.

    ``belief`` is the calibrated probability of the given label, divided by the average that the model gives
    to such labels of this category: 1 is average, 0.1 is a tenth of it.
    """

    file_name: str
    label: str
    given: int
    calibrated: float
    belief: float


class Ranking(NamedTuple):
    """Known entries, the most doubtful first; all (n,)."""

    row: NDArray[np.int64]
    column: NDArray[np.int64]
    belief: Floats


def rank_labels(calibrated: Floats, labels: LabelMatrix) -> Ranking:
    """Rank all known labels (n) by belief, lowest first.

    belief = s / t_cy, with s the calibrated probability of the given label y (p if present, 1 − p if absent)
    and t_cy the mean of s over the known labels y of category c, shrunk to the mean over all categories: the
    class thresholds of confident learning. Without t, a category that is hard to
    recognise would fill the top of the list with its true positives.

    Args:
        calibrated: (N, C), by a model that has not seen these labels; a model believes what it was trained
            on.
        labels: (N, C).
    """
    row, column = np.nonzero(labels.known)
    present = labels.values[row, column] == PRESENT
    belief = np.where(present, calibrated[row, column], 1 - calibrated[row, column])
    usual = np.ones(len(row))
    for chosen in (present, ~present):
        if chosen.any():
            size = labels.shape[1]
            total, number = (
                np.bincount(column[chosen], w, size) for w in (belief[chosen], np.ones(chosen.sum()))
            )
            mean = (total + WEIGHT * belief[chosen].mean()) / (number + WEIGHT)
            usual[chosen] = mean[column[chosen]]
    belief = belief / np.maximum(usual, 1e-12)
    order = np.argsort(belief, kind="stable")
    return Ranking(row[order], column[order], belief[order])


def find_conflicts(calibrated: Floats, labels: LabelMatrix, thresholds: Floats) -> list[Conflict]:
    """The known labels that the decision at ``thresholds`` (C,) contradicts, the most doubtful first."""
    row, column, belief = rank_labels(calibrated, labels)
    given = labels.values[row, column]
    denied = np.flatnonzero((given == PRESENT) != (calibrated[row, column] >= thresholds[column]))
    return [
        Conflict(
            labels.paths[row[place]],
            labels.categories[column[place]],
            int(given[place]),
            float(calibrated[row[place], column[place]]),
            float(belief[place]),
        )
        for place in denied
    ]
