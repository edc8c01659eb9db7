"""Asymmetric loss: easy absent labels count little or nothing (Ridnik et al. 2021)."""

from __future__ import annotations

from torch import Tensor
from torch.nn.functional import logsigmoid

from sarb.labels import Targets
from sarb.losses.partial_bce import Count, full_precision, this_batch

#: at 0 the slope of a power below 1 is infinite, and so is a logarithm
TINY = 1e-8


def asymmetric(
    logits: Tensor,
    targets: Targets,
    gamma_positive: float,
    gamma_negative: float,
    margin: float,
    count: Count = this_batch,
) -> Tensor:
    """L = −Σ w [t (1 − p)^γ₊ log p + (1 − t) q^γ₋ log(1 − q)] / Σ w, with q = max(p − m, 0).

    Entries without weight have exactly zero loss and gradient.

    Args:
        logits: x, of any shape; p = σ(x).
        targets: value t and weight w, of the same shape.
        gamma_positive: γ₊.
        gamma_negative: γ₋.
        margin: m.
        count: see :func:`sarb.losses.partial_bce`.
    """
    known = targets.weight > 0
    x = full_precision(logits).where(known, 0)
    value = targets.value.where(known, 0)
    shifted = (x.sigmoid() - margin).clamp(min=TINY)
    present = (-x).sigmoid() ** gamma_positive * logsigmoid(x)
    absent = shifted**gamma_negative * (1 - shifted).clamp(min=TINY).log()
    entries = -targets.weight * (value * present + (1 - value) * absent)
    total = count(targets.weight.sum(), "known")
    return entries.sum() / total.where(total > 0, 1)
