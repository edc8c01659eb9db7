"""Which unknown labels curriculum labeling trusts its network to know: the five strategies of Durand et al.
(2019).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from sarb.labels import Targets


class Opinion(NamedTuple):
    """What a network says about n images: score (logit) x and uncertainty u of each entry, both (n, C)."""

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
    """Mask of the given share, rounded, of the entries in ``among`` with the largest score; ties by
    position.
    """
    entries = among.flatten().nonzero()[:, 0]
    order = score.flatten()[entries].argsort(descending=True, stable=True)
    chosen = entries[order[: round(share * len(entries))]]
    return torch.zeros_like(among).flatten().index_fill_(0, chosen, True).view_as(among)


#: strategy -> (which entries it calls present and absent, θ where none is given)
STRATEGIES: dict[str, tuple[Callable[[Opinion, Tensor, float], Masks], float]] = {
    "score": (_by_score, 2.0),
    "top": (_by_rank, 0.8),
    "positives": (_only_positives, 2.0),
    "ensemble": (_by_score, 2.0),
    "uncertainty": (_by_uncertainty, 0.03),
}


def pseudo_labels(strategy: str, opinion: Opinion, unknown: Tensor, threshold: float) -> Targets:
    """Label the unknown entries (n, C) that the strategy trusts: value 0 or 1, weight 1; weight 0 elsewhere.

    * ``"score"``: present where x > θ, absent where x < −θ.
    * ``"top"``: of the unknown entries with x > 0 the share θ with the largest x is present; of those with x
    < 0 the
      share θ with the smallest x is absent.
    * ``"positives"``: present where x > θ; nothing becomes absent.
    * ``"ensemble"``: as ``"score"``, where x is that of the least sure member of :func:`agreement`.
    * ``"uncertainty"``: where u ≤ θ, by the sign of x.
    """
    present, absent = STRATEGIES[strategy][0](opinion, unknown, threshold)
    return Targets((present & unknown).float(), ((present | absent) & unknown).float())


def agreement(first: Tensor, second: Tensor) -> Tensor:
    """Score of the less sure of two members where their signs agree, else 0; any number of members by
    repetition.
    """
    return torch.minimum(first, second).clamp(min=0) + torch.maximum(first, second).clamp(max=0)
