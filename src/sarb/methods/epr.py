"""EPR: known labels, and a batch should show the expected number of present labels (Cole et al. 2021)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from sarb.batches.loader import Batch
from sarb.errors import ConfigError
from sarb.labels import LabelMatrix, Targets
from sarb.losses.positive_count import count_loss, expected_positives
from sarb.methods.base import Method
from sarb.networks.base import Network

#: a category is expected in at most this share of the images at the start
HIGHEST = 0.9


class EPR(Method):
    """L = Σ_known ℓ / (B·C) + ((k̂ − k) / C)²; k̂ is the mean of Σ_c p over the batch of this process.

    Args:
        network: any network.
        positives: k, present labels per image; None estimates it from the known labels.
        negatives: learn from known absent labels too, which the single-positive setting of the paper has not.
    """

    def __init__(self, network: Network, *, positives: float | None = None, negatives: bool = True) -> None:
        super().__init__(network, form="entries")
        if positives is not None and not 0 < positives <= network.categories:
            limit = f"more than 0 and at most {network.categories}, the number of categories"
            raise ConfigError([f"method.positives must be {limit}, got {positives:g}"])
        self.positives = positives
        self.negatives = negatives
        self.expected = 0.0

    def prepare(self, labels: LabelMatrix) -> None:
        """Estimate k, if it is not given."""
        super().prepare(labels)
        self.expected = expected_positives(labels) if self.positives is None else self.positives

    def mean_targets(self, labels: LabelMatrix) -> NDArray[np.float64] | None:
        """The known labels; if none of them is absent, a share of k as large as that of the category's positives."""
        if labels.negatives.any() and self.negatives:
            return None
        share = labels.positives + 1.0
        rates: NDArray[np.float64] = np.minimum(self.expected * share / share.sum(), HIGHEST)
        return rates

    def known(self, batch: Batch) -> Targets:
        """Targets of the known entries that are used."""
        targets = Targets.of(batch.labels)
        return targets if self.negatives else Targets(targets.value, targets.value)

    def forward(self, batch: Batch) -> dict[str, Tensor]:
        """Batch -> {"cls", "count"}."""
        logits = self.network.head(self.maps(batch))
        cls = self.loss(logits, self.known(batch))
        return {"cls": cls, "count": count_loss(logits.float().sigmoid(), self.expected)}
