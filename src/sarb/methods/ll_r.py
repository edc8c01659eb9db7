"""LL-R, large-loss rejection: drop the assumed negatives with the largest losses (Kim et al. 2022)."""

from __future__ import annotations

import math

from torch import Tensor
from torch.nn.functional import softplus

from sarb.batches.loader import Batch
from sarb.errors import ConfigError
from sarb.labels import Targets
from sarb.losses.largest import largest
from sarb.methods.an import AN
from sarb.networks.base import Network


class LLR(AN):
    """L as in AN, without the k unknown entries of the batch that have the largest loss −log(1 − p).

    k = ⌈B·C·e·Δ/100⌉, where e is the number of finished epochs; epoch 0 is plain AN. k never exceeds the number
    of unknown entries, and known entries are never chosen. B is the batch of this process.

    Args:
        network: any network.
        rate: Δ, in per cent of all entries per epoch.
    """

    def __init__(self, network: Network, *, rate: float = 0.5) -> None:
        super().__init__(network)
        if not 0 <= rate <= 100:
            raise ConfigError([f"method.rate is a percentage, between 0 and 100, got {rate:g}"])
        self.rate = rate

    def chosen_count(self, entries: int) -> int:
        """k, for B·C entries."""
        return math.ceil(entries * self.epoch * self.rate / 100)

    def chosen(self, logits: Tensor, unknown: Tensor) -> Tensor:
        """Mask (B, C) of the unknown entries with the largest losses."""
        return largest(softplus(logits), unknown, self.chosen_count(logits.numel()))

    def assume(self, logits: Tensor, unknown: Tensor, batch: Batch) -> Targets:
        """All absent, except those with the largest losses, which have no target."""
        value, weight = super().assume(logits, unknown, batch)
        return Targets(value, weight.masked_fill(self.chosen(logits, unknown), 0))
