"""Neighbours: what the most similar training images are labelled with.

u are half-whitened unit features. With s_1 ≥ … ≥ s_{k+1} the cosines to the nearest training images (never
itself) and τ = 0.1, image j ≤ k has weight ∝ e^{s_j/τ} − e^{s_{k+1}/τ}: the weight of the last one is 0, so
nothing jumps where two images change places, and an exported model agrees with this one. The evidence is the
logit of the weighted mean of their labels: known ones as they are, unknown ones as predicted.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sarb.auto.parts import Floats, Parts, log_odds
from sarb.auto.solver import sigmoid

#: how many neighbours count
COUNT = 50
#: temperature of the similarities
TEMPERATURE = 0.1
#: images more similar than this are the same image
SAME = 1 - 1e-4
#: a mean label is kept this far from 0 and 1
MARGIN = 1e-3
#: images of the bank
BANK = 20_000
#: queries whose similarities are held in memory at once
ROWS = 1024


@dataclass(frozen=True)
class Nearest:
    """The neighbours of N images: rows of the bank (N, k) and their weights (N, k)."""

    rows: NDArray[np.int64]
    weights: Floats

    def average(self, labels: NDArray[np.floating]) -> Floats:
        """Weighted mean of labels (M, C) in [0, 1] -> (N, C)."""
        out = np.empty((len(self.rows), labels.shape[1]))
        for start in range(0, len(out), ROWS):
            part = slice(start, start + ROWS)
            out[part] = np.einsum("nk,nkc->nc", self.weights[part], labels[self.rows[part]])
        return out

    def evidence(self, labels: NDArray[np.floating]) -> Floats:
        """Logit of the mean label (N, C)."""
        return log_odds(np.clip(self.average(labels), MARGIN, 1 - MARGIN))


def bank_rows(count: int, most: int = BANK) -> NDArray[np.int64]:
    """Which of ``count`` training images form the bank: all, or ``most`` of them evenly spaced."""
    if count <= most:
        return np.arange(count)
    return np.linspace(0, count - 1, most).round().astype(np.int64)


def nearest(
    queries: Floats, bank: Floats, own: NDArray[np.int64] | None = None, count: int = COUNT
) -> Nearest:
    """Find the neighbours of unit vectors (N, d) among the bank (M, d).

    Args:
        queries: (N, d).
        bank: (M, d).
        own: (N,) row of the bank that is the query itself, -1 for none. None leaves out every image that is
            as good as equal, which is what a model does with images it has not been told about.
        count: k, at most M − 2.
    """
    k = max(1, min(count, len(bank) - 2))
    rows = np.empty((len(queries), k), np.int64)
    weights = np.empty((len(queries), k))
    for start in range(0, len(queries), ROWS):
        part = slice(start, start + ROWS)
        similarity = queries[part] @ bank.T
        if own is None:
            similarity[similarity > SAME] = -1.0
        else:
            mine = np.flatnonzero(own[part] >= 0)
            similarity[mine, own[part][mine]] = -1.0
        reach = min(k + 1, len(bank))
        top = np.argpartition(-similarity, reach - 1, axis=1)[:, :reach]
        found = np.take_along_axis(similarity, top, 1)
        order = np.argsort(-found, axis=1, kind="stable")
        top = np.take_along_axis(top, order, 1)
        rows[part] = top[:, :k]
        weights[part] = vanishing_weights(np.take_along_axis(found, order, 1), k)
    return Nearest(rows, weights)


def vanishing_weights(similarity: Floats, count: int) -> Floats:
    """Sorted cosines (N, k + 1) -> weights (N, k) that sum to 1 and are 0 at the (k + 1)-th."""
    powers = np.exp((similarity - similarity[:, :1]) / TEMPERATURE)
    raw = powers[:, :count] - powers[:, -1:] + 1e-6
    out: Floats = raw / raw.sum(1, keepdims=True)
    return out


def bank_labels(parts: Parts, scores: NDArray[np.floating], model: int) -> Floats:
    """Labels (N, C) in [0, 1] as one model knows them: what it has not seen is what it predicts."""
    out: Floats = np.where(
        parts.seen(model), parts.values > 0, sigmoid(np.asarray(scores[model], np.float64))
    )
    return out
