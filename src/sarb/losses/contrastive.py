"""Contrastive loss: makes the representations of a category compact, so that prototypes are meaningful."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from sarb.errors import ConfigError, unknown_name
from sarb.labels import Targets
from sarb.losses.partial_bce import as_targets

FORMS = ("balanced", "paper")
WITHOUT_POSITIVES = ("none", "all")
#: shorter representations count as zero vectors
SHORTEST = 1e-8


def contrastive(
    reps: Tensor,
    targets: Targets | Tensor,
    form: str = "balanced",
    without_positives: str = "none",
    generator: torch.Generator | None = None,
) -> Tensor:
    """Eq. 7: ℓ = 1 − cos(f_n, f_m) if category c is present in both images n and m, else 1 + cos(f_n, f_m).

    * ``"balanced"`` (default, the authors' code): pairs n < m of two known labels, of all categories
      together. All P present-present pairs are kept. Of the present-absent pairs, and separately of the
      absent-absent pairs, the P hardest (highest loss) and 2P random others are kept, or all if there are at
      most 3P. The loss is the mean over the kept pairs, and exactly 0 without pairs.
    * ``"paper"`` (Eq. 7–8 as printed): sum over all ordered pairs, including a pair with itself; an unknown
      label falls under "otherwise".

    ``without_positives`` sets what the balanced form does if P = 0, as in two of three batches at 10 % known
    on COCO:

    * ``"none"`` (default): no loss. This is the same rule with P = 0. Without a pair to pull together, the
      loss would only push all representations apart.
    * ``"all"``: every pair of the two negative sets, as in the authors' code.

    Args:
        reps: (B, C, D) category representations.
        targets: ``Targets`` (B, C) or labels (B, C) in {-1, 0, +1}. An entry with weight is present at value
            1 and absent at value 0; a soft value in between counts as unknown.
        form: ``"balanced"`` or ``"paper"``.
        without_positives: ``"none"`` or ``"all"``; for the balanced form only.
        generator: CPU generator of the random pairs; the global one by default.

    >>> contrastive(torch.eye(2)[:, None], torch.tensor([[1], [1]]))
    tensor(1.)
    """
    options = (
        ("form of contrastive", form, FORMS),
        ("rule without_positives", without_positives, WITHOUT_POSITIVES),
    )
    problems = [
        unknown_name(option, name, choices) for option, name, choices in options if name not in choices
    ]
    if problems:
        raise ConfigError(problems)
    targets = as_targets(targets, reps.dtype)
    value, weight = targets
    if reps.shape[:2] != value.shape:
        raise ValueError(
            f"representations {tuple(reps.shape)} and targets {tuple(value.shape)} differ in B or C"
        )
    present = targets.present
    absent = (value == 0) & (weight > 0)
    similarity = cosine(reps)
    if form == "paper":
        return _paper(similarity, present.T)
    return _balanced(similarity, present.T, absent.T, without_positives == "all", generator)


def cosine(reps: Tensor) -> Tensor:
    """Cosine similarity of all pairs of images per category, (B, C, D) -> (C, B, B); 0 for zero vectors."""
    # Reduced precision would round 1 - cos of nearly equal vectors to 0.
    with torch.autocast(reps.device.type, enabled=False):
        reps = reps.float() if reps.dtype in (torch.float16, torch.bfloat16) else reps
        # With lengths from the diagonal, (B, C, D) is used in matrix products only, forward and backward.
        products: Tensor = Gram.apply(reps.transpose(0, 1))  # type: ignore[no-untyped-call]
        square = products.diagonal(dim1=1, dim2=2)
        # Divide by infinity, not by a small number: then the gradient of a zero vector is 0, not 1e8.
        inverse = 1 / square.where(square > SHORTEST**2, torch.inf).sqrt()
        return products * inverse[:, :, None] * inverse[:, None, :]


class Gram(torch.autograd.Function):
    """X Xᵀ of (C, B, D), as (C, B, B), with the gradient (G + Gᵀ) X as one product instead of two."""

    @staticmethod
    def forward(context: Any, points: Tensor) -> Tensor:
        """Save the points for backward."""
        context.save_for_backward(points)
        return torch.bmm(points, points.transpose(1, 2))

    @staticmethod
    def backward(context: Any, *gradients: Tensor) -> Tensor:
        """Return (G + Gᵀ) X."""
        return torch.bmm(gradients[0] + gradients[0].transpose(1, 2), context.saved_tensors[0])


def _paper(similarity: Tensor, present: Tensor) -> Tensor:
    both = present[:, :, None] & present[:, None, :]
    return torch.where(both, 1 - similarity, 1 + similarity).sum()


def _balanced(
    similarity: Tensor, present: Tensor, absent: Tensor, keep_all: bool, generator: torch.Generator | None
) -> Tensor:
    # Masks (C, B, B) instead of lists of pairs take B² numbers per category, 3 MB at C = 10,000 and B = 8.
    pulled = _pairs(present, present)
    mixed = _pairs(present, absent) | _pairs(absent, present)
    pushed = [mixed, _pairs(absent, absent)]
    pairs = int(pulled.sum())
    if pairs or not keep_all:
        pushed = [hardest_and_random(similarity.detach(), allowed, pairs, generator) for allowed in pushed]
    # The loss of a pair is 1 ± cos, so the mean is 1 ± the mean cosine and the gradient needs no scatter.
    sign = (pushed[0] | pushed[1]).to(similarity.dtype) - pulled.to(similarity.dtype)
    kept = int(sign.count_nonzero())
    return (kept + torch.dot(similarity.flatten(), sign.flatten())) / max(1, kept)


def _pairs(first: Tensor, second: Tensor) -> Tensor:
    """Mask (C, B, B) of the pairs n < m where ``first`` (C, B) holds for n and ``second`` (C, B) for m."""
    return (first[:, :, None] & second[:, None, :]).triu(1)


def hardest_and_random(
    losses: Tensor, allowed: Tensor, pairs: int, generator: torch.Generator | None = None
) -> Tensor:
    """Keep the P highest of the allowed ``losses`` and 2P random others, or all if there are at most 3P.

    Args:
        losses: any shape; adding a constant changes nothing.
        allowed: mask of the same shape.
        pairs: P.
        generator: CPU generator; draws one number per allowed entry, or none if all are kept.

    Returns:
        the mask of the kept entries.
    """
    if pairs == 0:
        return torch.zeros_like(allowed)
    # Most labels are unknown, so only a small part of the mask is allowed.
    entries = allowed.flatten().nonzero()[:, 0]
    if len(entries) <= 3 * pairs:
        return allowed
    hardest = losses.flatten()[entries].topk(pairs, sorted=False).indices
    lots = torch.rand(len(entries), generator=generator).to(losses.device).index_fill_(0, hardest, -1)
    chosen = torch.cat([hardest, lots.topk(2 * pairs, sorted=False).indices])
    return torch.zeros_like(allowed).flatten().index_fill_(0, entries[chosen], True).view_as(allowed)
