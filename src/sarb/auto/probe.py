"""The probe: one ridge-penalised logistic regression per category on its known entries.

    minimise   Σ_{i known} BCE(w_c·x_i + b_c + o_ic, y_ic) + λ/2 ‖w_c‖²

o is an offset from other evidence, 0 for the plain probe. An unknown entry is not in the sum. The bias
starts at the known rate. A category of which a model sees no positive, or no negative, keeps that rate as its
bias and has zero weights. One λ serves all categories: a dozen positives are too few to choose one each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sarb.auto.parts import Floats, Mask, Parts, log_odds
from sarb.auto.solver import solve

#: the values of λ that are compared
RIDGES = (0.03, 0.1, 0.3, 1.0, 3.0)
#: at most this many L-BFGS steps in a fit that is kept
STEPS = 40
#: in a comparison: the losses then agree with those of 40 steps to three digits, in a third of the time
COMPARISON_STEPS = 12


@dataclass(frozen=True)
class Linear:
    """The coefficients of all F + 1 models.

    Args:
        weight: (F + 1, C, d).
        bias: (F + 1, C).
    """

    weight: Floats
    bias: Floats

    def scores(self, features: Floats) -> Floats:
        """Features (N, d) -> logits (F + 1, N, C), without offsets."""
        return np.stack([features @ w.T + b for w, b in zip(self.weight, self.bias, strict=True)])


class Setting(NamedTuple):
    """One setting to compare: λ, and what the evidence is multiplied by to become the offset."""

    ridge: float
    weight: float = 0.0


def fit_linear(
    features: Floats,
    parts: Parts,
    ridge: float,
    offsets: NDArray[np.floating] | None = None,
    extra: Mask | None = None,
) -> Linear:
    """Fit all F + 1 models.

    Args:
        features: (N, d).
        parts: the labels (N, C) and their parts.
        ridge: λ.
        offsets: (F + 1, N, C), None for none.
        extra: (F + 1, N, C) entries that a model takes for positives although their labels are unknown.
    """
    count, width, categories = len(parts.models), features.shape[1], parts.values.shape[1]
    weight = np.zeros((count, categories, width))
    bias = np.zeros((count, categories))
    rates = np.stack([parts.rates(model) for model in parts.models])
    for category, known in parts.columns():
        rows = known
        added = None
        if extra is not None:
            rows = np.union1d(known, np.flatnonzero(extra[:, :, category].any(0)))
            added = extra[:, rows, category]
        found = _fit_category(
            features[rows],
            _Entries.of(parts, category, rows, parts.models, added),
            np.zeros((1, count, len(rows))) if offsets is None else offsets[None, :, rows, category],
            np.array([ridge]),
            rates[:, category],
            STEPS,
        )[0]
        weight[:, category] = found[:, :-1]
        bias[:, category] = found[:, -1]
    return Linear(weight, bias)


def compare(
    features: Floats,
    parts: Parts,
    settings: Sequence[Setting],
    evidence: NDArray[np.floating] | None = None,
    base: NDArray[np.floating] | None = None,
    *,
    steps: int = COMPARISON_STEPS,
    narrow: bool = False,
) -> Floats:
    """Out-of-fold logits (G, N, C) of the known entries under each of G settings; 0 for unknown entries.

    Args:
        features: (N, d).
        parts: the labels (N, C) and their parts.
        settings: G of them, solved together.
        evidence: (F + 1, N, C), multiplied by the weight of a setting.
        base: (F + 1, N, C) an offset under every setting.
        steps: of L-BFGS, at most.
        narrow: turn the features of a category with few known rows into as many as it has rows, see
            :func:`row_space`. The result is the same, sooner if there are many features.
    """
    models = range(parts.count)
    rates = np.stack([parts.rates(model) for model in models])
    result = np.zeros((len(settings), *parts.values.shape))
    alphas = np.array([setting.weight for setting in settings])
    ridges = np.array([setting.ridge for setting in settings])
    for category, rows in parts.columns():
        if not len(rows):
            continue
        x = row_space(features[rows]) if narrow else features[rows]
        offsets = np.zeros((len(settings), parts.count, len(rows)))
        if evidence is not None:
            offsets += alphas[:, None, None] * evidence[: parts.count, rows, category]
        if base is not None:
            offsets += base[: parts.count, rows, category]
        entries = _Entries.of(parts, category, rows, models)
        found = _fit_category(x, entries, offsets, ridges, rates[:, category], steps)
        logits = found[:, :, :-1] @ x.T + found[:, :, -1:] + offsets
        own = parts.numbers[rows, category]
        result[:, rows, category] = logits[:, own, np.arange(len(rows))]
    return result


def row_space(x: Floats) -> Floats:
    """Rows (n, d) -> (n, n) with the same inner products if 2n ≤ d, else unchanged.

    The w that minimises loss + λ/2 ‖w‖² lies in the space of the rows, so in coordinates of that space every
    logit is the same. The coordinates are the principal ones, for which the solver is fast.
    """
    if 2 * len(x) > x.shape[1]:
        return x
    squares, vectors = np.linalg.eigh(x @ x.T)
    out: Floats = vectors * np.sqrt(np.maximum(squares, 0.0))
    return out


class _Entries(NamedTuple):
    """Targets and weights (M, n) of one category for M models."""

    targets: Floats
    weights: Floats

    @classmethod
    def of(
        cls, parts: Parts, category: int, rows: NDArray[np.int64], models: range, added: Mask | None = None
    ) -> _Entries:
        values = parts.values[rows, category]
        numbers = parts.numbers[rows, category]
        weights = (values != 0) & (numbers != np.array(models)[:, None])
        targets = np.broadcast_to(values > 0, weights.shape)
        if added is not None:
            weights = weights | added
            targets = targets | added
        return cls(targets.astype(np.float64), weights.astype(np.float64))


def _fit_category(
    x: Floats, entries: _Entries, offsets: NDArray[np.floating], ridges: Floats, rates: Floats, steps: int
) -> Floats:
    """Coefficients (G, M, d + 1) of one category under G ridges, with offsets (G, M, n), for M models."""
    models = len(entries.targets)
    targets = np.tile(entries.targets, (len(ridges), 1))
    weights = np.tile(entries.weights, (len(ridges), 1))
    shift = np.asarray(offsets, np.float64).reshape(targets.shape)
    ridge = np.repeat(ridges, models)
    bias = np.tile(log_odds(rates), len(ridges))
    positives = (weights * targets).sum(1)
    usable = (positives > 0) & (positives < weights.sum(1))
    result = np.zeros((len(ridge), x.shape[1] + 1))
    result[:, -1] = bias
    if usable.any():
        result[usable] = solve(
            x, targets[usable], weights[usable], shift[usable], ridge[usable], bias[usable], steps
        )
    return result.reshape(len(ridges), models, -1)
