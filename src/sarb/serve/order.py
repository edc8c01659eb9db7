"""Which unknown labels to ask about first, and why."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sarb.labelling.calibration import Calibration
from sarb.labelling.suggestion import suggest
from sarb.labels import LabelMatrix
from sarb.scores import Scores

#: how many questions to rank by value; after that many answers it is time to train again
BUDGET = 5000


def order(
    scores: Scores,
    labels: LabelMatrix,
    calibration: Calibration,
    readable: NDArray[np.bool_] | None = None,
    budget: int = BUDGET,
) -> tuple[NDArray[np.int64], dict[int, str]]:
    """Return the unknown entries (flat indices row · C + column), most valuable first, and their reasons.

    The first ``budget`` come from :func:`sarb.suggest`, with its reasons; the rest follow in order of
    uncertainty |p − 0.5|, ties in table order.

    Args:
        scores: (N, C).
        labels: (N, C), the same images and categories.
        calibration: for the probabilities.
        readable: (N,) False for images that cannot be shown; they are not asked about.
        budget: how many to rank by value.
    """
    unknown = ~labels.known if readable is None else ~labels.known & readable[:, None]
    entries = np.flatnonzero(unknown)
    probabilities = calibration(scores)
    uncertain = entries[np.argsort(np.abs(probabilities.ravel()[entries] - 0.5), kind="stable")]
    asked = suggest(scores, labels, budget, calibration=calibration)
    first = asked.row * labels.shape[1] + asked.column
    reasons = {int(entry): ask.reason for entry, ask in zip(first, asked.questions, strict=True)}
    first = first[unknown.ravel()[first]]
    return np.concatenate([first, uncertain[~np.isin(uncertain, first)]]), reasons


def shuffled(labels: LabelMatrix, readable: NDArray[np.bool_], seed: int = 0) -> NDArray[np.int64]:
    """Return the unknown entries of readable images (N,) in random order.

    For the audit of test photos: the model must not choose which of its mistakes are looked at.
    """
    entries = np.flatnonzero(~labels.known & readable[:, None])
    return np.random.RandomState(seed).permutation(entries)
