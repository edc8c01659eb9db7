"""Which pseudo-labels curriculum labeling trusts: the five strategies of Durand et al. (2019)."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from sarb.labels import Targets
from sarb.losses.largest import largest


class Opinion(NamedTuple):
    """The output of a network for n images: score (logit) x and uncertainty u of each entry, both (n, C)."""

    score: Tensor
    uncertainty: Tensor


Masks = tuple[Tensor, Tensor]


def _by_score(opinion: Opinion, unknown: Tensor, threshold: float) -> Masks:
    return opinion.score > threshold, opinion.score < -threshold


def _by_rank(opinion: Opinion, unknown: Tensor, share: float) -> Masks:
    score = opinion.score
    return _largest(score, unknown & (score > 0), share), _largest(-score, unknown & (score < 0), share)


def _only_positives(opinion: Opinion, unknown: Tensor, threshold: float) -> Masks:
    return opinion.score > threshold, torch.zeros_like(unknown)


def _by_uncertainty(opinion: Opinion, unknown: Tensor, threshold: float) -> Masks:
    sure = opinion.uncertainty <= threshold
    return sure & (opinion.score > 0), sure & (opinion.score < 0)


def _largest(score: Tensor, among: Tensor, share: float) -> Tensor:
    """Mask of the given share of the entries in ``among``, those with the largest score; ties by position."""
    return largest(score, among, round(share * int(among.sum())))


#: strategy -> (function that returns the present and absent entries, default θ)
STRATEGIES: dict[str, tuple[Callable[[Opinion, Tensor, float], Masks], float]] = {
    "score": (_by_score, 2.0),
    "top": (_by_rank, 0.8),
    "positives": (_only_positives, 2.0),
    "ensemble": (_by_score, 2.0),
    "uncertainty": (_by_uncertainty, 0.03),
}


def pseudo_labels(strategy: str, opinion: Opinion, unknown: Tensor, threshold: float) -> Targets:
    """Label the unknown entries (n, C) that the strategy trusts with weight 1; others get weight 0.

    * ``"score"``: present where x > θ, absent where x < −θ.
    * ``"top"``: of the unknown entries with x > 0, the share θ with the largest x is present; of those with
      x < 0, the share θ with the smallest x is absent.
    * ``"positives"``: present where x > θ; nothing becomes absent.
    * ``"ensemble"``: as ``"score"``, with the x of the least certain member, see :func:`agreement`.
    * ``"uncertainty"``: where u ≤ θ, by the sign of x.
    """
    present, absent = STRATEGIES[strategy][0](opinion, unknown, threshold)
    return Targets((present & unknown).float(), ((present | absent) & unknown).float())


def agreement(first: Tensor, second: Tensor) -> Tensor:
    """Score of the less certain of two members where their signs agree, else 0; repeat for more."""
    return torch.minimum(first, second).clamp(min=0) + torch.maximum(first, second).clamp(max=0)
