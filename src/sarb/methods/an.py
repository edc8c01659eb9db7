"""AN, assume negative: an unknown label counts as absent (Cole et al. 2021)."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from sarb.batches.loader import Batch
from sarb.labels import LabelMatrix, Targets
from sarb.methods.base import Method
from sarb.networks.base import Network
from sarb.networks.informed import shrunk


class AN(Method):
    """L = Σ ℓ / (B·C) over all entries of a batch; ℓ is the binary cross entropy, an unknown label is absent.

    The sum is in two terms, ``cls`` of the known labels and ``assumed`` of the unknown ones. Methods that treat
    unknown labels in another way override :meth:`assume`, and :meth:`loss` or :meth:`assumed_loss`.

    Args:
        network: any network.
    """

    completes: ClassVar[tuple[str, ...]] = ("absent", "present")

    def __init__(self, network: Network) -> None:
        super().__init__(network, form="entries")

    def mean_targets(self, labels: LabelMatrix) -> NDArray[np.float64] | None:
        """Present among all images."""
        return shrunk(labels.positives, len(labels))

    def assume(self, logits: Tensor, unknown: Tensor, batch: Batch) -> Targets:
        """Targets of the unknown entries (B, C), the others with weight 0: all absent."""
        return Targets(torch.zeros_like(logits), unknown.to(logits.dtype))

    def assumed_loss(self, logits: Tensor, assumed: Targets) -> Tensor:
        """The loss of what is assumed; the same as of known labels."""
        return self.loss(logits, assumed)

    def forward(self, batch: Batch) -> dict[str, Tensor]:
        """Batch -> {"cls", "assumed"}."""
        logits = self.network.head(self.maps(batch))
        known = Targets.of(batch.labels)
        assumed = self.assume(logits, known.weight == 0, batch)
        self.count("absent", (assumed.weight > 0) & (assumed.value == 0))
        self.count("present", assumed.present)
        return {"cls": self.loss(logits, known), "assumed": self.assumed_loss(logits, assumed)}
