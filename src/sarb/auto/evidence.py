"""What the backbone's own pretrained classifier says about the categories, one standardised column each.

Concept probabilities of an image come in three kinds (N, K): of the averaged map, averaged over locations,
and the largest over locations. :class:`NameEvidence` uses them through ties between category names and
concepts, :class:`ConceptBayes` through the known positives, whatever the categories are called.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sarb.auto.parts import Floats, Parts

#: added to a probability before its logarithm
TINY = 1e-6
#: positives that the training mean counts for in concept Bayes
STRENGTH = 10.0
#: added to a likelihood ratio before its logarithm
FLOOR = 1e-3
#: a log that varies less over the training images says nothing, and is not blown up
STILL = 1e-2


class ConceptScores(NamedTuple):
    """Probabilities over K concepts for N images.

    Args:
        whole: (N, K) of the averaged map.
        average: (N, K) the mean over locations.
        largest: (N, K) the largest over locations.
    """

    whole: NDArray[np.float32]
    average: NDArray[np.float32]
    largest: NDArray[np.float32]

    def rows(self, chosen: NDArray[np.int64]) -> ConceptScores:
        """Those of some images."""
        return ConceptScores(self.whole[chosen], self.average[chosen], self.largest[chosen])


def concept_scores(maps: NDArray[np.float32], weight: Floats, bias: Floats) -> ConceptScores:
    """Maps (N, D, H, W) and a classifier (K, D), (K,) -> concept probabilities."""
    flat = maps.reshape(*maps.shape[:2], -1).transpose(0, 2, 1)
    each = _softmax(flat @ weight.T + bias)
    whole = _softmax(flat.mean(1) @ weight.T + bias)
    return ConceptScores(
        whole.astype(np.float32), each.mean(1).astype(np.float32), each.max(1).astype(np.float32)
    )


def _softmax(logits: NDArray[np.floating]) -> NDArray[np.floating]:
    powers = np.exp(logits - logits.max(-1, keepdims=True))
    out: NDArray[np.floating] = powers / powers.sum(-1, keepdims=True)
    return out


class Scale(NamedTuple):
    """Mean and standard deviation (…, C) of a column over the training images; std 1 where it hardly varies."""

    mean: Floats
    std: Floats

    @classmethod
    def of(cls, columns: Floats) -> Scale:
        """Measure columns (N, C)."""
        std = columns.std(0)
        return cls(columns.mean(0), np.where(std > STILL, std, 1.0))

    def __call__(self, columns: Floats) -> Floats:
        """Standardise (N, C)."""
        out: Floats = (columns - self.mean) / self.std
        return out


@dataclass(frozen=True)
class NameEvidence:
    """e_ic = mean of three standardised logs over the concepts k tied to category c; 0 where there are none.

    log(Σ_k average_ik), log(max_k largest_ik) and log(Σ_k whole_ik), each + 1e-6 inside. No label is used.

    Args:
        ties: (C, K) of bool.
        scales: of the three logs.
    """

    ties: NDArray[np.bool_]
    scales: tuple[Scale, Scale, Scale]

    @classmethod
    def fit(cls, concepts: ConceptScores, ties: NDArray[np.bool_]) -> NameEvidence:
        """Measure the three logs on the training images."""
        tied = np.asarray(ties) > 0
        average, largest, whole = (Scale.of(log) for log in _name_logs(concepts, tied))
        return cls(tied, (average, largest, whole))

    def __call__(self, concepts: ConceptScores) -> Floats:
        """Evidence (N, C)."""
        logs = _name_logs(concepts, self.ties)
        total = sum(scale(log) for scale, log in zip(self.scales, logs, strict=True))
        out: Floats = np.where(self.ties.any(1), total / 3, 0.0)
        return out


def _name_logs(concepts: ConceptScores, ties: NDArray[np.bool_]) -> list[Floats]:
    share = ties.T.astype(np.float32)
    largest = np.zeros((len(concepts.whole), len(ties)))
    for category, tied in enumerate(ties):
        if tied.any():
            largest[:, category] = concepts.largest[:, tied].max(1)
    values = (concepts.average @ share, largest, concepts.whole @ share)
    return [np.log(np.asarray(value, np.float64) + TINY) for value in values]


@dataclass(frozen=True)
class ConceptBayes:
    """e_ic = log(Σ_k π_ck q_ik / μ_k + 1e-3), standardised: how much more an image looks like c's positives.

    q (N, K) are concept probabilities, μ their training mean, and π_c = (Σ q over the n known positives of c
    + 10 μ) / (n + 10). A category without a known positive has evidence 0.

    Args:
        ratio: (F + 1, C, K) π_ck / μ_k of each model.
        scales: of each model, (C,) each.
    """

    ratio: Floats
    scales: tuple[Scale, ...]

    @classmethod
    def fit(cls, concepts: ConceptScores, parts: Parts) -> tuple[ConceptBayes, Floats]:
        """Fit all models; also return their evidence (F + 1, N, C) on the training images.

        There a positive's own share is left out of π (leave-one-out): otherwise each positive that a model
        has seen would look more like the positives than a new one does.
        """
        q = np.asarray(_shares(concepts), np.float64)
        mean = q.mean(0) + 1e-9
        ratios = q / mean
        own = (q * ratios).sum(1)
        found = []
        scales = []
        evidence = []
        for model in parts.models:
            present = parts.present(model)
            number = present.sum(0)
            pi = (present.T.astype(np.float64) @ q + STRENGTH * mean) / (number + STRENGTH)[:, None]
            plain = ratios @ pi.T
            scale = Scale.of(np.log(plain + FLOOR))
            less = (plain * (number + STRENGTH) - own[:, None]) / (number + STRENGTH - 1)
            left_out = np.where(present, np.maximum(less, 0.0), plain)
            found.append(pi / mean)
            scales.append(scale)
            evidence.append(scale(np.log(left_out + FLOOR)))
        return cls(np.stack(found), tuple(scales)), np.stack(evidence)

    def __call__(self, concepts: ConceptScores, model: int = -1) -> Floats:
        """Evidence (N, C) for new images, by default of the model that has seen every known label."""
        ratio = np.asarray(_shares(concepts), np.float64) @ self.ratio[model].T
        return self.scales[model](np.log(ratio + FLOOR))


def _shares(concepts: ConceptScores) -> NDArray[np.float32]:
    """The probabilities that concept Bayes goes by."""
    return concepts.whole
