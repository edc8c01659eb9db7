"""``suggest``: which labels to ask for next, as a pure function of (Scores, LabelMatrix). Needs no torch."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sarb.errors import ConfigError
from sarb.labelling.calibration import Calibration, check_fit
from sarb.labelling.formats import table
from sarb.labelling.outlook import Outlook, learning_slope, outlook
from sarb.labelling.reliability import base_rates
from sarb.labels import UNKNOWN, LabelMatrix
from sarb.scores import Scores

Floats = NDArray[np.float64]

#: smoothing of the co-occurrence graph towards the base rates, in images
SMOOTHING = 5.0
#: an answer is called open if its probability is in this range
OPEN = (0.25, 0.75)
#: the default budget: this share of the unknown labels, but at least and at most so many
ROUND = (0.01, 50, 2000)


class Question(NamedTuple):
    """Is this label present in this image?"""

    file_name: str
    label: str
    score: float
    reason: str


@dataclass(frozen=True, eq=False)
class Suggestions:
    """Questions, the most valuable first.

    Attributes:
        questions: what to ask.
        row: (B,) rows of the label matrix they are about.
        column: (B,) its columns.
        outlook: what to expect of the answers.
    """

    questions: list[Question]
    row: NDArray[np.int64]
    column: NDArray[np.int64]
    outlook: Outlook

    def __len__(self) -> int:
        return len(self.questions)

    def __str__(self) -> str:
        return f"{len(self):,} questions\n{self.outlook}"

    def to_csv(self, path: str | Path | None = None) -> str:
        """Return ``file_name,label,score,reason`` as CSV text, and write it to ``path`` if given."""
        rows = ((ask.file_name, ask.label, f"{ask.score:.6g}", ask.reason) for ask in self.questions)
        return table(Question._fields, rows, path)


def suggest(
    scores: Scores,
    labels: LabelMatrix,
    budget: int | None = None,
    *,
    calibration: Calibration | None = None,
    out_of_fold: Scores | None = None,
    parts: int = 5,
    finds: float = 0.0,
    uncertainty: float = 1.0,
    cooccurrence: float = 0.0,
    rarity: float = 5.0,
    diversity: float = 0.1,
) -> Suggestions:
    """Rank unknown labels by the expected value of an answer.

    The value of an entry is w = finds · p + uncertainty · H(p) + cooccurrence · g, where p is the calibrated
    probability, H its entropy in bits and g what the answer "present" would tell about the image's other unknown
    labels. Returns diminish: within a category, questions in order of w are worth w / (1 + n / rarity), where n
    counts the known labels of its rarer kind (mostly "present") plus those expected from the questions before. So
    the budget goes to categories that lack them until they have caught up. Within an image, the k-th further
    question is worth 1 / (1 + diversity · k) of that.

    Args:
        scores: of the same images and categories as ``labels``.
        labels: in {-1, 0, +1}; only unknown entries are asked.
        budget: maximum number of questions; None is 1 % of the unknown entries, at least 50 and at most 2,000.
        calibration: as in :func:`sarb.complete`.
        out_of_fold: as in :func:`sarb.complete`; with them, the outlook measures what more labels bring.
        parts: of the known labels, for the out-of-fold scores.
        finds: weight of finding a positive.
        uncertainty: weight of the entropy.
        cooccurrence: weight of what the answer tells about other labels of the image.
        rarity: number of known labels of the rarer kind at which another one is worth half; infinite turns
            this off.
        diversity: discount per earlier question about the same image; 0 for none.

    Returns:
        The questions, and in ``outlook`` how much more than random questions they are expected to gain.
    """
    check_fit(scores, labels)
    budget = usual_budget(labels) if budget is None else budget
    factors = {
        "budget": budget,
        "finds": finds,
        "uncertainty": uncertainty,
        "cooccurrence": cooccurrence,
        "diversity": diversity,
    }
    wrong = [f"{name} must be at least 0, got {value}" for name, value in factors.items() if not value >= 0]
    wrong += [f"rarity must be above 0, got {rarity}"] if not rarity > 0 else []
    if wrong:
        raise ConfigError(wrong)
    calibration = calibration or Calibration.identity(scores.categories)
    p = calibration(scores)
    gain = told(labels) if cooccurrence else np.zeros(labels.shape)
    worth = finds * p + uncertainty * entropy(p) + cooccurrence * gain
    row, column = np.nonzero(labels.values == UNKNOWN)
    worth = _diminished(worth[row, column], p, labels, row, column, rarity, diversity)
    order = np.argsort(-worth, kind="stable")[: int(budget)]
    row = row[order]
    column = column[order]
    reasons = _reasons(p, gain, labels, row, column)
    questions = [
        Question(labels.paths[i], labels.categories[j], float(score), reason)
        for i, j, score, reason in zip(row, column, worth[order], reasons, strict=True)
    ]
    slope = None
    if out_of_fold is not None:
        check_fit(out_of_fold, labels)
        slope = learning_slope(p, calibration(out_of_fold), ~labels.known, parts)
    return Suggestions(questions, row, column, outlook(p, labels, row, column, slope))


def usual_budget(labels: LabelMatrix) -> int:
    """How many questions to ask if nobody says: 1 % of the unknown entries, at least 50 and at most 2,000."""
    share, least, most = ROUND
    unknown = int(np.count_nonzero(labels.values == UNKNOWN))
    return min(unknown, max(least, min(most, round(share * unknown))))


def _diminished(
    worth: Floats,
    p: Floats,
    labels: LabelMatrix,
    row: NDArray[np.int64],
    column: NDArray[np.int64],
    rarity: float,
    diversity: float,
) -> Floats:
    """Values (n,) of unknown entries, less for further questions about the same category or image."""
    common = p.mean(0) > 0.5  # "absent" is the rarer kind
    count = np.where(common, labels.negatives, labels.positives)
    expected = np.where(common, 1 - p, p)[row, column]
    worth = worth / (1 + (count[column] + _before(column, worth, expected)) / rarity)
    return np.asarray(worth / (1 + diversity * _before(row, worth, np.ones(len(row)))))


def entropy(p: Floats) -> Floats:
    """−p log₂ p − (1−p) log₂ (1−p), 0 at p = 0 and 1."""
    sure = np.clip(p, 1e-12, 1 - 1e-12)
    return np.asarray(-(sure * np.log2(sure) + (1 - sure) * np.log2(1 - sure)))


def told(labels: LabelMatrix) -> Floats:
    """What "c is present" tells about the other unknown labels of an image, (N, C) in [0, 1].

    told_ic = Σ_j |P(j | c) − π_j| over the labels j ≠ c that are unknown in image i, divided by the largest
    such sum.
    """
    change = np.abs(labels.cooccurrence(smoothing=SMOOTHING) - base_rates(labels))
    change[labels.positives == 0] = 0  # nothing is known about what goes with it
    np.fill_diagonal(change, 0)
    total = (labels.values == UNKNOWN).astype(np.float32) @ change.T.astype(np.float32)
    return np.asarray(total / max(float(total.max(initial=0)), 1e-12), np.float64)


def _before(group: NDArray[np.int64], value: Floats, amount: Floats) -> Floats:
    """Sum (n,) of the ``amount`` of those entries of the same group that have a higher value."""
    order = np.lexsort((-value, group))
    running = np.cumsum(amount[order]) - amount[order]
    start = np.flatnonzero(np.diff(group[order], prepend=-1))
    size = np.diff(np.append(start, len(order)))
    result = np.empty(len(order))
    result[order] = running - np.repeat(running[start], size)
    return result


def _reasons(
    p: Floats, gain: Floats, labels: LabelMatrix, row: NDArray[np.int64], column: NDArray[np.int64]
) -> list[str]:
    """Say in words why each entry is asked."""
    positives = labels.positives
    rates = base_rates(labels)
    graph = labels.cooccurrence(smoothing=SMOOTHING) - rates
    np.fill_diagonal(graph, 0)
    partner = np.argmax(graph, axis=1)
    reasons = []
    for i, j in zip(row, column, strict=True):
        known = int(positives[j])
        chance = float(p[i, j])
        other = partner[j]
        name = labels.categories[j]
        few = f"{known} known positive{'s' * (known != 1)} of {name}"
        open_ = "open" if OPEN[0] <= chance <= OPEN[1] else "likely" if chance > OPEN[1] else "possible"
        usual = f", {chance / rates[j]:.1f} times the usual" if rates[j] > 0 else ""
        reason = f"{open_}: probability {chance:.2f}{usual}; {few}"
        if known and gain[i, j] > 0.5 and graph[j, other] > 0 and labels.values[i, other] == UNKNOWN:
            reason += f"; would tell about {labels.categories[other]}"
        reasons.append(reason)
    return reasons
