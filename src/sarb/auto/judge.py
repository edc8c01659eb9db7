"""The judge: which of several settings explains the known entries best, out of fold.

The scores of a setting are first brought to the right scale, a s_c + b_c with one a > 0 for all categories,
because adding evidence makes scores larger without making them wrong. Then the log loss l_ic of each known
entry counts with weight 1 / (H_c C), where H_c is the loss of always predicting the rate of c: every category
counts the same, as in mAP, and a mean loss of 1 is that of knowing nothing but the rates.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sarb.auto.parts import Floats, Parts
from sarb.auto.solver import log_loss, sigmoid
from sarb.metrics import average_precision
from sarb.metrics.bootstrap import spread

#: resamples of the images
RESAMPLES = 1000
#: resamples of the images for an interval of mAP, which takes longer than one of the loss
MAP_RESAMPLES = 200
#: with more known entries there is no interval of mAP
MOST_ENTRIES = 1_000_000
#: known positives that the shared curve counts for when a category chooses its own weight
SHRINKAGE = 20.0


class Gain(NamedTuple):
    """The fall of the mean loss with its 95 % interval, by bootstrap over images."""

    mean: float
    low: float
    high: float

    @property
    def error(self) -> float:
        """The standard error that the interval stands for."""
        return (self.high - self.low) / (2 * 1.96)


@dataclass(frozen=True)
class Judge:
    """Out-of-fold losses of the known entries.

    Args:
        parts: the labels (N, C) and their parts.
        weights: (N, C) weight of each entry; 0 for unknown ones and for categories with one kind of label.
    """

    parts: Parts
    weights: Floats

    @classmethod
    def of(cls, parts: Parts) -> Judge:
        """Weigh the entries."""
        known = parts.known.sum(0)
        positives = (parts.values > 0).sum(0)
        both = (positives > 0) & (positives < known)
        rate = np.where(both, positives / np.maximum(known, 1), 0.5)
        entropy = -known * (rate * np.log(rate) + (1 - rate) * np.log1p(-rate))
        share = np.where(both, 1 / np.where(both, entropy, 1) / max(int(both.sum()), 1), 0.0)
        return cls(parts, np.where(parts.known, share, 0.0))

    def temper(self, scores: Floats) -> tuple[float, Floats]:
        """Fit the scale a and the shifts b (C,) of out-of-fold scores (N, C); 1 and 0 where a would not be > 0.

        The shift of a category is drawn to the mean one: with penalty ½ (b_c − mean b)² beside its loss.
        """
        nothing = (1.0, np.zeros(scores.shape[1]))
        rows, columns = np.nonzero(self.weights)
        if not len(rows):
            return nothing
        share = self.weights.max(0)
        slope, shifts = _scale_and_shifts(
            scores[rows, columns], self.parts.values[rows, columns] > 0, columns, share / share.mean()
        )
        return (slope, shifts) if slope > 1e-3 else nothing

    def losses(self, scores: Floats) -> Floats:
        """Losses (N, C) of tempered out-of-fold scores, in nats, 0 for entries that do not count."""
        slope, shift = self.temper(scores)
        tempered = log_loss(slope * scores + shift, (self.parts.values > 0).astype(np.float64))
        return np.where(self.weights > 0, tempered, 0.0)

    def loss(self, scores: Floats) -> float:
        """Mean loss: 1 for knowing the rates only, 0 for knowing everything."""
        return float((self.weights * self.losses(scores)).sum())

    def mean_ap(self, scores: Floats) -> float:
        """Plain mAP over the known entries, in percent; nan without a known positive."""
        each = average_precision(scores, self.parts.values)
        return float(100 * np.nanmean(each)) if np.isfinite(each).any() else float("nan")

    def spread(self, scores: Floats) -> Floats:
        """Return mAP (1 + B,) in percent over the known entries, then over each of B resamples of the images.

        Two sets of scores get the same resamples, so the difference of their spreads is a paired one. With
        more than ``MOST_ENTRIES`` known entries there are no resamples.
        """
        few = np.count_nonzero(self.parts.known) <= MOST_ENTRIES
        return spread(scores, self.parts.values, MAP_RESAMPLES if few else 0)

    def gain(self, before: Floats, after: Floats, seed: int = 0) -> Gain:
        """How much the mean loss falls from one set of out-of-fold scores (N, C) to another."""
        fall = (self.weights * (self.losses(before) - self.losses(after))).sum(1)
        random = np.random.RandomState(seed)
        count = len(fall)
        totals = [float(fall[random.randint(count, size=count)].sum()) for _ in range(RESAMPLES)]
        low, high = np.percentile(totals, (2.5, 97.5))
        return Gain(float(fall.sum()), float(low), float(high))

    def choose(self, grid: Floats, weights: NDArray[np.float64], shrinkage: float = SHRINKAGE) -> Floats:
        """Choose one of G weights for each category and model: (F + 1, C).

        With L_cg the mean loss of category c under weight g and n_c its known positives, c takes the g with
        the least n_c L_cg + shrinkage · mean over categories of L_g: its own loss, and the shared one as if
        it came from that many positives. A category without known labels takes the shared choice. Model f
        chooses without the entries of part f.

        Args:
            grid: (G, N, C) out-of-fold scores under each weight.
            weights: (G,) the weights; of equally good ones the first is taken.
            shrinkage: positives that the shared loss counts for.
        """
        losses = np.stack([self.weights * self.losses(scores) for scores in grid])
        positives = (self.parts.values > 0).sum(0)
        counted = max(int((self.weights > 0).any(0).sum()), 1)
        result = np.empty((len(self.parts.models), grid.shape[2]))
        for model in self.parts.models:
            own = (losses * (self.parts.numbers != model)).sum(1)
            shared = own.sum(1, keepdims=True)
            result[model] = weights[(positives * counted * own + shrinkage * shared).argmin(0)]
        return result


def _scale_and_shifts(
    scores: Floats, present: NDArray[np.bool_], columns: NDArray[np.int64], share: Floats
) -> tuple[float, Floats]:
    """Newton's method for a and b: one equation for a, one for each b_c, solved by eliminating the b_c.

    Args:
        scores: (n,) of known entries.
        present: (n,) their labels.
        columns: (n,) their categories.
        share: (C,) weight of an entry of each category.
    """
    count = len(share)
    targets = present.astype(np.float64)
    slope = 1.0
    shifts = np.zeros(count)

    def value(slope: float, shifts: Floats) -> float:
        losses = log_loss(slope * scores + shifts[columns], targets)
        pull = 0.5 * (share * (shifts - _mean(shifts, share)) ** 2).sum()
        return float((share[columns] * losses).sum() + pull)

    now = value(slope, shifts)
    for _ in range(30):
        chance = sigmoid(slope * scores + shifts[columns])
        error = chance - targets
        spread = chance * (1 - chance)
        each = [
            np.bincount(columns, part, count) for part in (error, error * scores, spread, spread * scores)
        ]
        square = (share[columns] * spread * scores**2).sum()
        pull = shifts - _mean(shifts, share)
        inner = (each[0] + pull, each[3], each[2] + 1)
        top = (share * (each[1] - inner[1] * inner[0] / inner[2])).sum()
        step = top / (square - (share * inner[1] ** 2 / inner[2]).sum() + 1e-9)
        move = (inner[0] - inner[1] * step) / inner[2]
        length = 1.0
        while length > 1e-4 and value(slope - length * step, shifts - length * move) > now:
            length /= 2
        if length <= 1e-4:
            break
        slope -= length * step
        shifts = shifts - length * move
        before = now
        now = value(slope, shifts)
        if before - now < 1e-7 * abs(before):
            break
    return float(slope), np.where(share > 0, shifts, _mean(shifts, share))


def _mean(shifts: Floats, share: Floats) -> float:
    """Mean over the categories that count."""
    return float(shifts[share > 0].mean())
