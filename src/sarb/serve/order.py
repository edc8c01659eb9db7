"""Which unknown labels to ask first, and why."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sarb.labelling.calibration import Calibration
from sarb.labelling.suggestion import suggest
from sarb.labels import LabelMatrix
from sarb.scores import Scores

#: how many questions are ranked by their worth; whoever has answered them should train again before the rest
BUDGET = 5000


def order(
    scores: Scores,
    labels: LabelMatrix,
    calibration: Calibration,
    readable: NDArray[np.bool_] | None = None,
    budget: int = BUDGET,
) -> tuple[NDArray[np.int64], dict[int, str]]:
    """Return the unknown entries as flat places row · C + column, the most valuable first, and place ->
    reason.

    The first ``budget`` are those of :func:`sarb.suggest`, with its reasons; the rest follows by uncertainty
    |p − 0.5|, ties in the order of the table.

    Args:
        scores: (N, C).
        labels: (N, C), the same images and categories.
        calibration: of the probabilities.
        readable: (N,) False for images without a picture to show; they are not asked.
        budget: how many to rank by worth.
    """
    unknown = ~labels.known if readable is None else ~labels.known & readable[:, None]
    places = np.flatnonzero(unknown)
    probabilities = calibration(scores)
    uncertain = places[np.argsort(np.abs(probabilities.ravel()[places] - 0.5), kind="stable")]
    asked = suggest(scores, labels, budget, calibration=calibration)
    first = asked.row * labels.shape[1] + asked.column
    reasons = {int(place): ask.reason for place, ask in zip(first, asked.questions, strict=True)}
    first = first[unknown.ravel()[first]]
    return np.concatenate([first, uncertain[~np.isin(uncertain, first)]]), reasons
