"""Platt scaling per category, shrunk to a shared fit: probability = σ(slope_c · logit + offset_c)."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sarb.labels import PRESENT

Floats = NDArray[np.float64]

#: rounds of re-estimating the spread between categories, and Newton steps within each
ROUNDS = 60
STEPS = 2
#: where every fit starts: the network's own probability
START = (1.0, 0.0)
#: prior variance of slope and offset between categories, with the weight of one category; and the weight of
#: the start in the shared fit, in categories
PRIOR_SPREAD = (0.1, 0.5)
PULL = 0.1
#: the spread used in the end, as a multiple of the variance that was found; of 1, 2, 4, 8, 16 and 32, 4 had
#: the best cross-validated log loss on the known labels of coco256 (10 %, two masks)
WIDER = 4.0
#: longest Newton step of slope and offset, and the smallest slope: it stays positive, so the ranking is
#: preserved
LONGEST = (0.5, 1.5)
SMALLEST = 0.05
#: largest change of shared fit and log spread in the last round, and of an extrapolation
SETTLED = 1e-5
LEAP = 2.0
#: known entries that are processed at once, unless a category has more
BLOCK = 1 << 15


class Known(NamedTuple):
    """The known entries of a score matrix, one category after the other: logit, 1 or 0, and category; all (n,)."""

    logit: Floats
    value: Floats
    category: NDArray[np.int64]

    @classmethod
    def of(cls, logits: NDArray[np.floating], labels: NDArray[np.int8]) -> Known:
        """Take the known entries of logits and labels, each (N, C)."""
        columns, rows = np.nonzero(labels.T)
        value = (labels[rows, columns] == PRESENT).astype(np.float64)
        return cls(logits[rows, columns].astype(np.float64), value, columns)

    def bounds(self, categories: int) -> NDArray[np.int64]:
        """Where the entries of each category begin, and the end of the last one (C + 1,)."""
        return np.searchsorted(self.category, np.arange(categories + 1))


class Platt(NamedTuple):
    """Slope and offset of every category (C, 2), their mean (2,) and variance (2,) over categories."""

    each: Floats
    shared: Floats
    spread: Floats


def sigmoid(x: Floats) -> Floats:
    """1 / (1 + exp(−x)); where exp is infinite, 0 is right."""
    with np.errstate(over="ignore"):
        return 1 / (1 + np.exp(-x))


def fit_platt(known: Known, categories: int) -> Platt:
    """Fit slope and offset of every category by empirical Bayes.

    Model: (slope, offset)_c ~ Normal(shared, diag(spread)), y ~ Bernoulli(σ(slope_c · logit + offset_c)).

    Given shared and spread, each category takes the mode of its posterior: a logistic regression with a ridge
    penalty towards the shared fit. Given those modes, shared is their mean and spread their variance plus the
    mean posterior variance (EM, with a Gaussian posterior at the mode). So the data decide how much categories
    differ, and a category with few known labels of either kind stays at the shared fit. A tenth of a
    pseudo-category at slope 1, offset 0 keeps separable scores finite. The last fit uses ``WIDER`` times the
    spread, because categories have heavier tails than a normal distribution.

    Alone, EM needs 10 rounds for many labels of few categories, and more than 60 for few labels of many. So its
    rounds are extrapolated (:class:`Extrapolation`), which needs about ten.
    """
    likelihood = _Likelihood(known, categories)
    each = np.tile(np.array(START), (categories, 1))
    state = np.concatenate([START, np.log(PRIOR_SPREAD)])  # shared, and the logarithm of the spread
    extrapolation = Extrapolation()
    for _ in range(ROUNDS):
        each, variance = _modes(likelihood, each, state[:2], np.exp(state[2:]), STEPS)
        shared = (each.sum(0) + PULL * np.array(START)) / (categories + PULL)
        spread = (((each - shared) ** 2 + variance).sum(0) + PRIOR_SPREAD) / (categories + 1)
        found = np.concatenate([shared, np.log(spread)])
        if np.abs(found - state).max() < SETTLED:
            break
        state = extrapolation(state, found)
    each, _ = _modes(likelihood, each, shared, WIDER * spread, ROUNDS)
    each[:, 0] = np.maximum(each[:, 0], SMALLEST)
    return Platt(each, shared, spread)


class Extrapolation:
    """Find x = g(x) in few evaluations: Anderson acceleration, with all pairs (x, g(x)) since the last restart.

    With residuals f = g(x) − x, and differences ΔF, ΔG between neighbouring pairs, the next point is g − ΔG γ, where
    γ minimises ‖f − ΔF γ‖. After a residual that is twice the one before, and instead of a step that is longer than
    ``LEAP``, the next point is g, and the pairs are forgotten.
    """

    def __init__(self) -> None:
        self.reached: list[Floats] = []
        self.residuals: list[Floats] = []

    def __call__(self, x: Floats, g: Floats) -> Floats:
        """Return the next point after x, whose image is g; each (d,)."""
        residual = g - x
        worse = self.residuals and np.abs(residual).max() > 2 * np.abs(self.residuals[-1]).max()
        if worse:
            self._forget()
        self.reached = [*self.reached, g][-len(x) - 1 :]
        self.residuals = [*self.residuals, residual][-len(x) - 1 :]
        if len(self.reached) == 1:
            return g
        weights = np.linalg.lstsq(np.diff(self.residuals, axis=0).T, residual, rcond=None)[0]
        point = g - np.diff(self.reached, axis=0).T @ weights
        if np.abs(point - x).max() <= LEAP:
            return np.asarray(point)
        self._forget()
        return g

    def _forget(self) -> None:
        self.reached.clear()
        self.residuals.clear()


class _Likelihood:
    """The log likelihood of slope and offset of every category, block by block of neighbouring categories."""

    def __init__(self, known: Known, categories: int) -> None:
        self.known = known
        self.bounds = known.bounds(categories)
        # a block ends where BLOCK entries are exceeded, so that what is computed stays in the cache
        full = np.searchsorted(self.bounds, np.arange(BLOCK, len(known.logit), BLOCK))
        self.edges = np.unique([0, *full, categories])

    def derivatives(self, each: Floats) -> tuple[Floats, Floats]:
        """Gradient (C, 2) and negative Hessian (C, 2, 2) of it at (C, 2)."""
        sums = np.zeros((5, len(each)))
        for first, last in pairwise(self.edges):
            sums[:, first:last] = self._sums(each[first:last], self.bounds[first : last + 1])
        return sums[:2].T, sums[[2, 3, 3, 4]].T.reshape(-1, 2, 2)

    def _sums(self, each: Floats, bounds: NDArray[np.int64]) -> Floats:
        """What the derivatives of some categories consist of (5, C)."""
        entries = slice(bounds[0], bounds[-1])
        counts = np.diff(bounds)
        filled = counts > 0  # reduceat has no empty sums
        x = self.known.logit[entries]
        slope, offset = (np.repeat(column, counts) for column in each.T)
        p = sigmoid(slope * x + offset)
        miss = self.known.value[entries] - p
        weight = p * (1 - p)
        mixed = weight * x
        sums = np.zeros((5, len(each)))
        for row, values in zip(sums, (miss * x, miss, mixed * x, mixed, weight), strict=True):
            row[filled] = np.add.reduceat(values, bounds[:-1][filled] - bounds[0])
        return sums


def _modes(
    likelihood: _Likelihood, each: Floats, shared: Floats, spread: Floats, steps: int
) -> tuple[Floats, Floats]:
    """Newton steps towards the mode of every category's posterior (C, 2), and its variance there (C, 2)."""
    curvature = np.tile(np.diag(1 / spread), (len(each), 1, 1))
    for _ in range(steps):
        gradient, information = likelihood.derivatives(each)
        curvature = information + np.diag(1 / spread)
        step = np.linalg.solve(curvature, (gradient - (each - shared) / spread)[..., None])[..., 0]
        each = each + np.clip(step, np.negative(LONGEST), LONGEST)
        if np.abs(step).max(initial=0.0) < 1e-6:
            break
    return each, np.asarray(np.diagonal(np.linalg.inv(curvature), axis1=1, axis2=2), np.float64)


def fit_temperature(known: Known) -> float:
    """One slope 1/T > 0 for all categories, offset 0: the mode under a prior Normal(1, 1)."""
    slope = 1.0
    for _ in range(50):
        p = sigmoid(slope * known.logit)
        gradient = float(((known.value - p) * known.logit).sum()) - (slope - 1)
        step = gradient / (float((p * (1 - p) * known.logit**2).sum()) + 1)
        slope = max(SMALLEST, slope + float(np.clip(step, -0.5, 0.5)))
        if abs(step) < 1e-8:
            break
    return slope
