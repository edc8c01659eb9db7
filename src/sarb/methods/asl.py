"""Asymmetric loss: easy absent labels count little or nothing (Ridnik et al. 2021)."""

from __future__ import annotations

from torch import Tensor
from torch.nn.functional import logsigmoid

from sarb.errors import ConfigError
from sarb.labels import Targets
from sarb.methods.partial_bce import PartialBCE
from sarb.networks.base import Network


class ASL(PartialBCE):
    """L = −Σ [t (1 − p)^γ₊ log p + (1 − t) q^γ₋ log(1 − q)] / number of known entries, q = max(p − m, 0).

    Args:
        network: any network.
        gamma_positive: γ₊, how fast a present label loses weight as p → 1.
        gamma_negative: γ₋, how fast an absent label loses weight as p → 0.
        margin: m; an absent label with p ≤ m adds no loss.
    """

    def __init__(
        self,
        network: Network,
        *,
        gamma_positive: float = 0.0,
        gamma_negative: float = 4.0,
        margin: float = 0.05,
    ) -> None:
        super().__init__(network)
        if min(gamma_positive, gamma_negative) < 0 or not 0 <= margin < 1:
            raise ConfigError(
                [
                    "method.gamma_positive and method.gamma_negative must be at least 0, and method.margin "
                    "must be at least 0 and below 1; "
                    f"got {gamma_positive:g}, {gamma_negative:g} and {margin:g}"
                ]
            )
        self.gamma_positive = gamma_positive
        self.gamma_negative = gamma_negative
        self.margin = margin

    def loss(self, logits: Tensor, targets: Targets) -> Tensor:
        """Mean over the known entries of logits (B, C); unknown entries get exactly zero gradient."""
        known = targets.weight > 0
        x = logits.float().where(known, 0)
        value = targets.value.where(known, 0)
        shifted = (x.sigmoid() - self.margin).clamp(min=1e-8)  # at 0 the slope is infinite if γ₋ < 1
        present = (-x).sigmoid() ** self.gamma_positive * logsigmoid(x)
        absent = shifted**self.gamma_negative * (1 - shifted).clamp(min=1e-8).log()
        entries = -targets.weight * (value * present + (1 - value) * absent)
        return entries.sum() / targets.weight.sum().clamp(min=1)
