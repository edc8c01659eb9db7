"""The judge: which of several settings explains the known entries best, out of fold.

The scores of a setting are first brought to the right scale, a s + b with one a > 0 and one b for all entries,
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
from sarb.auto.solver import log_loss, solve
from sarb.metrics import average_precision

#: resamples of the images
RESAMPLES = 1000
#: known positives that the shared curve counts for when a category chooses its own weight
SHRINKAGE = 20.0


class Gain(NamedTuple):
    """Fall of the mean loss with its 95 % interval, by bootstrap over images."""

    mean: float
    low: float
    high: float


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

    def temper(self, scores: Floats) -> tuple[float, float]:
        """Fit the scale a and shift b of out-of-fold scores (N, C); (1, 0) where a would not be > 0."""
        counted = self.weights > 0
        if not counted.any():
            return 1.0, 0.0
        weights = self.weights[counted]
        found = solve(
            scores[counted][:, None],
            (self.parts.values[counted] > 0).astype(np.float64)[None],
            (weights * (len(weights) / weights.sum()))[None],
            np.zeros((1, len(weights))),
            np.array([1e-3]),
            np.zeros(1),
        )[0]
        return (float(found[0]), float(found[1])) if found[0] > 1e-3 else (1.0, 0.0)

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
