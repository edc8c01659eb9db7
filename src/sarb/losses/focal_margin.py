"""The losses of Hill and SPLC: focal with a margin for present labels, a hill or a focal loss for absent ones."""

from __future__ import annotations

from torch import Tensor
from torch.nn.functional import logsigmoid


def focal_present(logits: Tensor, margin: float, gamma: float) -> Tensor:
    """(1 − p_m)^γ · (−log p_m) with p_m = σ(x − m), for every entry."""
    x = logits - margin
    return (-x).sigmoid() ** gamma * -logsigmoid(x)


def focal_absent(logits: Tensor, gamma: float) -> Tensor:
    """p^γ · (−log(1 − p)) for every entry."""
    return logits.sigmoid() ** gamma * -logsigmoid(-logits)


def hill(logits: Tensor, peak: float) -> Tensor:
    """(λ − p) p² for every entry: an absent label that looks very present counts little."""
    p = logits.sigmoid()
    return (peak - p) * p**2
