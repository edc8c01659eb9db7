"""The plain method: learn from the known labels, ignore the rest."""

from __future__ import annotations

from torch import Tensor

from sarb.batches.loader import Batch
from sarb.labels import Targets
from sarb.methods.base import Method


class PartialBCE(Method):
    """Binary cross entropy over known labels only. With network ``ssgrl`` this is the paper's SSGRL row."""

    def forward(self, batch: Batch) -> dict[str, Tensor]:
        """Batch -> {"cls"}."""
        return {"cls": self.loss(self.network.head(self.maps(batch)), Targets.of(batch.labels))}
