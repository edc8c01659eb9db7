"""Partial binary cross entropy: the loss of the known entries."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from sarb.errors import ConfigError, unknown_name
from sarb.labels import Targets


def as_targets(targets: Targets | Tensor, dtype: torch.dtype) -> Targets:
    """Return targets unchanged, or convert labels in {-1, 0, +1} to targets."""
    return Targets.of(targets, dtype) if isinstance(targets, Tensor) else targets


def full_precision(logits: Tensor) -> Tensor:
    """Half precision would lose small weighted sums; float64 is kept for gradient checks."""
    return logits.float() if logits.dtype in (torch.float16, torch.bfloat16) else logits


#: what is counted in a batch, (), and whether it is ``"known"`` entries or ``"images"`` -> what to divide by
Count = Callable[[Tensor, Literal["known", "images"]], Tensor]


def this_batch(count: Tensor, of: Literal["known", "images"]) -> Tensor:
    """The count itself: the mean is over this batch alone."""
    return count


def _batch_mean(entries: Tensor, weight: Tensor, count: Count) -> Tensor:
    total = count(weight.sum(), "known")
    return entries.sum() / total.where(total > 0, 1)


def _image_means(entries: Tensor, weight: Tensor, count: Count) -> Tensor:
    total = weight.sum(1)
    return (entries.sum(1) / total.where(total > 0, 1)).sum()


#: α, β and γ of g(p) = α p^γ + β (Durand et al. 2019): g(1) = 1, and g(0.1) = 5.005
DURAND = (-4.45, 5.45, 1.0)


def known_share_weight(share: Tensor) -> Tensor:
    """g(p) of the known share p in [0, 1], of any shape."""
    scale, shift, power = DURAND
    return scale * share**power + shift


def _durand(entries: Tensor, weight: Tensor, count: Count) -> Tensor:
    share = (weight > 0).to(entries.dtype).mean(1)
    images = count(entries.new_tensor(max(1, len(entries))), "images")
    return (known_share_weight(share) * entries.mean(1)).sum() / images


def _all_entries(entries: Tensor, weight: Tensor, count: Count) -> Tensor:
    return entries.sum() / count(entries.new_tensor(max(1, entries.numel())), "images")


#: form -> function (weighted losses (B, C), weights (B, C), count) -> scalar; both are 0 for unknown entries
FORMS: dict[str, Callable[[Tensor, Tensor, Count], Tensor]] = {
    "batch": _batch_mean,
    "image": _image_means,
    "durand": _durand,
    "entries": _all_entries,
}


def partial_bce(
    logits: Tensor,
    targets: Targets | Tensor,
    form: str = "batch",
    positive_weight: Tensor | float | None = None,
    count: Count = this_batch,
) -> Tensor:
    r"""Binary cross entropy of the entries with weight: ℓ = −[ρ t log σ(x) + (1 − t) log(1 − σ(x))].

    * ``"batch"`` (default, the authors' code): Σ w ℓ / Σ w over the batch. Every known entry counts the same.
    * ``"image"`` (the paper, with the missing minus): Σ_n [Σ_c w ℓ / Σ_c w]. Every image counts the same.
    * ``"durand"`` (Durand et al. 2019): (1/B) Σ_n g(p_n)/C Σ_c w ℓ with g(p) = −4.45 p + 5.45, where p_n is
      the share of known entries of image n. An image without known labels contributes 0 but is counted in B.
    * ``"entries"`` (Cole et al. 2021): Σ w ℓ / (B·C). Unknown entries count in the denominator.

    Entries without weight have exactly zero loss and gradient, even if their logit is infinite or NaN.
    Without any known entry the loss is exactly 0 and still differentiable. Gradients also flow to
    ``targets.value``; this is how the soft target 1−α trains α.

    Args:
        logits: (B, C) scores x before the sigmoid.
        targets: value t and weight w, each (B, C), or labels (B, C) in {-1, 0, +1}.
        form: a name in ``FORMS``.
        positive_weight: ρ, a number or (C,): weight of the positive part, against class imbalance. It is not
            part of the denominator, so it scales the positive gradients only.
        count: turns Σ w, B or B·C of this batch into the denominator; for a batch that is part of a larger one.

    >>> partial_bce(torch.zeros(1, 3), torch.tensor([[1, -1, 0]]))
    tensor(0.6931)
    """
    if form not in FORMS:
        raise ConfigError([unknown_name("form of partial_bce", form, FORMS)])
    logits = full_precision(logits)
    value, weight = as_targets(targets, logits.dtype)
    if not logits.shape == value.shape == weight.shape:
        raise ValueError(
            f"logits {tuple(logits.shape)}, values {tuple(value.shape)}, weights {tuple(weight.shape)} differ"
        )
    known = weight > 0
    # Replace the inputs instead of multiplying the result: 0 * inf would be NaN, in the loss or its gradient.
    logits = logits.where(known, 0)
    value = value.where(known, 0)
    weight = weight.where(known, 0)
    positive = value * -logsigmoid(logits)
    if positive_weight is not None:
        positive = positive * torch.as_tensor(positive_weight, dtype=logits.dtype, device=logits.device)
    return FORMS[form](weight * (positive + (1 - value) * -logsigmoid(-logits)), weight, count)
