"""Asymmetric loss: easy absent labels count little or nothing (Ridnik et al. 2021)."""

from __future__ import annotations

from torch import Tensor

from sarb.errors import ConfigError
from sarb.labels import Targets
from sarb.losses.asymmetric import asymmetric
from sarb.methods.partial_bce import PartialBCE
from sarb.methods.together import mean_share
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
        return asymmetric(logits, targets, self.gamma_positive, self.gamma_negative, self.margin, mean_share)
