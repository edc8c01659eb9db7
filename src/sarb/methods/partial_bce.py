"""The plain method: train on the known labels and ignore the unknown ones."""

from __future__ import annotations

from torch import Tensor

from sarb.batches.loader import Batch
from sarb.labels import Targets
from sarb.methods.base import Method


class PartialBCE(Method):
    """Binary cross entropy of the known labels. With network ``ssgrl`` it is the paper's SSGRL row."""

    def forward(self, batch: Batch) -> dict[str, Tensor]:
        """Batch -> {"cls"}."""
        return {"cls": self.loss(self.network.head(self.maps(batch)), Targets.of(batch.labels))}
