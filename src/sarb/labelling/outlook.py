"""What to expect of the answers to some questions, compared with as many random ones. Needs no torch."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sarb.labels import UNKNOWN, LabelMatrix

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

#: mAP for each doubling of what the labels tell, if a run has no out-of-fold scores to measure it
PER_DOUBLING = 4.0
#: real slope ÷ slope that a model ascribes to itself
HONESTY = 0.63
#: the real gain is mostly between the predicted one divided and multiplied by this; without and with a measured slope
FACTORS = (3.0, 2.0)
#: a smaller gain cannot be told from none
LEAST = 0.5


@dataclass(frozen=True)
class Outlook:
    """What B answers are expected to bring.

    Attributes:
        asked: number of questions B.
        present: how many of them will be answered "present".
        present_random: the same for B random questions.
        doublings: by how many doublings these answers tell more than random ones, mean over categories.
        slope: mAP in percent for each doubling; None if it is not measured.
    """

    asked: int
    present: float
    present_random: float
    doublings: float
    slope: float | None = None

    @property
    def gain(self) -> float:
        """Expected mAP after these answers − expected mAP after as many random ones, in percent."""
        return self.doublings * (PER_DOUBLING if self.slope is None else self.slope)

    @property
    def interval(self) -> tuple[float, float]:
        """Where the real gain mostly is (docs/suggest.md); it widens if the slope is not measured."""
        factor = FACTORS[self.slope is not None]
        return self.gain / factor, self.gain * factor

    def __str__(self) -> str:
        found = (
            f'about {self.present:,.0f} of the answers will be "present" '
            f"({self.present_random:,.0f} with random questions)"
        )
        if self.gain < LEAST:
            return f"{found}\nexpected: hardly more mAP than with random questions ({self.gain:+.1f})"
        low, high = self.interval
        return (
            f"{found}\nexpected: about {self.gain:+.1f} mAP over random questions ({low:+.1f} to {high:+.1f})"
        )


def outlook(
    p: Floats,
    labels: LabelMatrix,
    row: NDArray[np.int64],
    column: NDArray[np.int64],
    slope: float | None = None,
) -> Outlook:
    """Predict what the answers to these questions bring.

    A label of probability p tells v = 4 p (1 − p): 1 if it is open, 0 if it is sure. In category c the known
    labels tell J, the B questions Q and the same number of random ones R; known labels count as much as the
    mean unknown one. With a mean over the categories,

        doublings = mean log₂ (1 + J + Q) / (1 + J + R).

    Args:
        p: (N, C) calibrated probabilities.
        labels: (N, C) known and unknown labels.
        row: (B,) images that are asked about.
        column: (B,) the category of each question.
        slope: from :func:`learning_slope`.
    """
    categories = labels.shape[1]
    unknown = labels.values == UNKNOWN
    count = unknown.sum(0)
    share = len(row) / max(1, int(count.sum()))
    tells = 4 * p * (1 - p)
    total = np.where(unknown, tells, 0.0).sum(0)
    known = (len(labels) - count) * total / np.maximum(count, 1)
    asked = np.bincount(column, tells[row, column], categories)
    return Outlook(
        asked=len(row),
        present=float(p[row, column].sum()),
        present_random=float(share * p[unknown].sum()),
        doublings=float(np.mean(np.log2((1 + known + asked) / (1 + known + share * total)))),
        slope=slope,
    )


def learning_slope(p: Floats, held: Floats, unknown: Mask, parts: int) -> float:
    """By how much mAP (in percent) grows if the number of labels doubles.

    The final model has learned from all known labels, the out-of-fold models from F − 1 of F parts. On unknown
    labels, which neither has seen, take p as the truth: what the out-of-fold ranking loses is what the last part
    has brought, log₂ F / (F − 1) of a doubling. A model takes its own ranking for better than it is, so
    :data:`HONESTY` corrects the result.

    Args:
        p: (N, C) probabilities by the final model.
        held: (N, C) by the out-of-fold models.
        unknown: (N, C) where a label is unknown.
        parts: F.
    """
    losses = [
        _expected_precision(own[rows], own[rows]) - _expected_precision(own[rows], other[rows])
        for own, other, rows in zip(p.T, held.T, unknown.T, strict=True)
        if rows.any()
    ]
    part = np.log2(parts / (parts - 1))
    return float(100 * HONESTY * np.mean(losses) / part) if losses else 0.0


def _expected_precision(p: Floats, scores: Floats) -> float:
    """Average precision of a ranking by ``scores`` (n,) if each entry is present with probability p (n,)."""
    ranked = p[np.argsort(-scores, kind="stable")]
    before = np.cumsum(ranked) - ranked
    precision = (1 + before) / np.arange(1, len(ranked) + 1)
    return float((ranked * precision).sum() / max(ranked.sum(), 1e-12))
