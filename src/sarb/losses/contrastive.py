"""Contrastive loss: make the representations of one category compact, so that its prototypes mean something."""

from __future__ import annotations

import torch
from torch import Tensor

from sarb.errors import ConfigError, unknown_name
from sarb.labels import Targets
from sarb.losses.partial_bce import as_targets

FORMS = ("balanced", "paper")
WITHOUT_POSITIVES = ("none", "all")
#: a representation shorter than this has no direction
SHORTEST = 1e-8


def contrastive(
    reps: Tensor,
    targets: Targets | Tensor,
    form: str = "balanced",
    without_positives: str = "none",
    generator: torch.Generator | None = None,
) -> Tensor:
    """Eq. 7: ℓ = 1 − cos(f_n, f_m) if category c is present in both images n and m, else 1 + cos(f_n, f_m).

    * ``"balanced"`` (default, the authors' code): unordered pairs n < m of two known labels, the pairs of all
      categories in one pool. All P present-present pairs are kept. Of the present-absent pairs and of the
      absent-absent pairs, separately, the P hardest (highest loss) and 2P random others are kept; a set of at
      most 3P pairs is kept whole, no pair counts twice. Mean over the kept pairs; no pair gives exactly 0.
    * ``"paper"`` (Eq. 7–8 to the letter): sum over all ordered pairs, a pair with itself included; an unknown
      label counts as "otherwise".

    ``without_positives`` says what the balanced form does when P = 0, two batches of three at 10 % known on COCO:

    * ``"none"`` (default): no loss. It is the same cut with P = 0, and without a pair that pulls together the
      loss would only push every representation away from every other, where nothing says they should be.
    * ``"all"``: every pair of the two negative sets, as the authors' code does.

    Args:
        reps: (B, C, D) category representations.
        targets: ``Targets`` (B, C) or labels (B, C) in {-1, 0, +1}. Present is value 1 with weight, absent value 0
            with weight; a soft value in between is neither, and is treated as unknown.
        form: ``"balanced"`` or ``"paper"``.
        without_positives: ``"none"`` or ``"all"``; the balanced form only.
        generator: CPU generator of the random pairs; the global one by default.

    >>> contrastive(torch.eye(2)[:, None], torch.tensor([[1], [1]]))
    tensor(1.)
    """
    options = (("form of contrastive", form, FORMS), ("rule without_positives", without_positives, WITHOUT_POSITIVES))
    problems = [unknown_name(kind, name, choices) for kind, name, choices in options if name not in choices]
    if problems:
        raise ConfigError(problems)
    targets = as_targets(targets, reps.dtype)
    value, weight = targets
    if reps.shape[:2] != value.shape:
        raise ValueError(f"representations {tuple(reps.shape)} and targets {tuple(value.shape)} differ in B or C")
    present, absent = targets.present, (value == 0) & (weight > 0)
    similarity = cosine(reps)
    if form == "paper":
        return _paper(similarity, present.T)
    return _balanced(similarity, present.T, absent.T, without_positives == "all", generator)


def cosine(reps: Tensor) -> Tensor:
    """Cosine of every two images in every category, (B, C, D) -> (C, B, B); 0 for a zero vector, without gradient."""
    # Reduced precision would round 1 - cos of nearly equal vectors to 0.
    with torch.autocast(reps.device.type, enabled=False):
        reps = reps.float() if reps.dtype in (torch.float16, torch.bfloat16) else reps
        length = torch.linalg.vector_norm(reps, dim=-1, keepdim=True)
        # Division by infinity, not by a small number: the gradient of a zero vector is 0 instead of 1e8.
        unit = (reps / length.where(length > SHORTEST, torch.inf)).transpose(0, 1)
        return torch.bmm(unit, unit.transpose(1, 2))


def _paper(similarity: Tensor, present: Tensor) -> Tensor:
    both = present[:, :, None] & present[:, None, :]
    return torch.where(both, 1 - similarity, 1 + similarity).sum()


def _balanced(
    similarity: Tensor, present: Tensor, absent: Tensor, keep_all: bool, generator: torch.Generator | None
) -> Tensor:
    first, second = torch.triu_indices(similarity.shape[1], similarity.shape[1], 1, device=similarity.device)
    similarity = similarity[:, first, second]  # (C, B(B-1)/2) from here on
    mixed = present[:, first] & absent[:, second] | absent[:, first] & present[:, second]
    pulled = 1 - similarity[present[:, first] & present[:, second]]
    pushed = [1 + similarity[mixed], 1 + similarity[absent[:, first] & absent[:, second]]]
    if len(pulled) or not keep_all:
        pushed = [hardest_and_random(losses, len(pulled), generator) for losses in pushed]
    kept = torch.cat([pulled, *pushed])
    return kept.sum() / max(1, len(kept))


def hardest_and_random(losses: Tensor, pairs: int, generator: torch.Generator | None = None) -> Tensor:
    """Keep the ``pairs`` highest of ``losses`` (M,) and twice as many random others; all if there are no more."""
    if len(losses) <= 3 * pairs:
        return losses
    order = losses.detach().argsort(descending=True, stable=True)
    others = torch.randperm(len(losses) - pairs, generator=generator)[: 2 * pairs].to(order.device)
    return losses[torch.cat([order[:pairs], order[pairs:][others]])]
