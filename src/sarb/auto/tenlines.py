"""The ten-line baseline, judged like a rung: what a reader would write instead of installing sarb.

    StandardScaler, then LogisticRegression(C) on the averaged map, per category, on its known entries

One C serves all categories and is chosen by the loss of held-out known entries. ``LogisticRegression(C)``
minimises Σ BCE + ‖w‖² / (2C), which is the probe with λ = 1/C, so the solver of the probe is used: it fits all
folds and all C of a category at once. The baseline is never a part of the model.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sarb.auto.judge import MOST_ENTRIES, Judge
from sarb.auto.parts import Floats, Parts
from sarb.auto.probe import STEPS, Setting, compare

#: the values of C that are compared
CHOICES = (1e-3, 1e-2, 1e-1, 1.0, 10.0)
#: C is chosen on as many categories as have this many known entries together
CHOICE_ENTRIES = 15_000


class TenLines(NamedTuple):
    """Out-of-fold logits (N, C) of the known entries, 0 for unknown ones, and the C that was chosen."""

    scores: Floats
    c: float


def ten_lines(pooled: NDArray[np.floating], parts: Parts, seed: int = 0) -> TenLines | None:
    """Judge the baseline on averaged maps (N, D); None with more than ``MOST_ENTRIES`` known entries.

    Args:
        pooled: (N, D) averaged maps.
        parts: the labels (N, C) and their parts.
        seed: of the categories on which C is chosen, if not on all.
    """
    if np.count_nonzero(parts.known) > MOST_ENTRIES:
        return None
    features = principal(standardised(pooled), parts)
    few = _some(parts, seed)
    grid = compare(features, few, [Setting(1 / c) for c in CHOICES], narrow=True)
    judge = Judge.of(few)
    c = CHOICES[int(np.argmin([judge.loss(scores) for scores in grid]))]
    return TenLines(compare(features, parts, [Setting(1 / c)], steps=STEPS, narrow=True)[0], c)


def standardised(pooled: NDArray[np.floating]) -> Floats:
    """(N, D) with mean 0 and variance 1 in each column; a constant column becomes 0."""
    exact = np.asarray(pooled, np.float64)
    std = exact.std(0)
    # a constant column has a std of rounding errors, not always exactly 0
    out: Floats = (exact - exact.mean(0)) / np.where(std > 10 * np.finfo(np.float64).eps, std, 1.0)
    return out


def principal(rows: Floats, parts: Parts) -> Floats:
    """Turn rows (N, D) to their principal axes, all of them, if a category has many known rows.

    A rotation changes no logit; the solver needs it to be fast. Where every category has few known rows
    (2n ≤ D), ``compare`` turns them itself, see :func:`sarb.auto.probe.row_space`.
    """
    if 2 * int(parts.known.sum(0).max(initial=0)) <= rows.shape[1]:
        return rows
    _, vectors = np.linalg.eigh(rows.T @ rows)
    out: Floats = rows @ vectors[:, ::-1]
    return out


def _some(parts: Parts, seed: int) -> Parts:
    """Categories in a random order, until they have ``CHOICE_ENTRIES`` known entries; at least one."""
    order = np.random.RandomState(seed).permutation(parts.values.shape[1])
    before = np.cumsum(parts.known.sum(0)[order]) - parts.known.sum(0)[order]
    chosen = np.sort(order[before < CHOICE_ENTRIES])
    return Parts(parts.values[:, chosen], parts.numbers[:, chosen], parts.count)
