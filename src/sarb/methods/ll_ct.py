"""LL-Ct, large-loss correction, temporary: the largest losses count as present in this step (Kim et al. 2022)."""

from __future__ import annotations

from torch import Tensor

from sarb.batches.loader import Batch
from sarb.labels import Targets
from sarb.methods.an import AN
from sarb.methods.ll_r import LLR
from sarb.networks.base import Network


class LLCt(LLR):
    """L as in AN, but the k unknown entries with the largest loss count as present, in this step only.

    k is that of :class:`LLR`.

    Args:
        network: any network.
        rate: Δ, in per cent of all entries per epoch.
    """

    def __init__(self, network: Network, *, rate: float = 0.2) -> None:
        super().__init__(network, rate=rate)

    def assume(self, logits: Tensor, unknown: Tensor, batch: Batch) -> Targets:
        """All absent, except those with the largest losses, which are present."""
        value, weight = AN.assume(self, logits, unknown, batch)
        return Targets(value.masked_fill(self.chosen(logits, unknown), 1), weight)
