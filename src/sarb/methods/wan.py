"""WAN, weak assume negative: absent labels, known or assumed, weigh 1/(C−1) (Cole et al. 2021)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from sarb.labels import LabelMatrix, Targets
from sarb.methods.an import AN
from sarb.networks.informed import shrunk


class WAN(AN):
    """L = Σ w ℓ / (B·C) over all entries of a batch; w is 1 for a present label and 1/(C−1) for any other.

    One present label of an image then weighs as much as its C − 1 other labels together.

    Args:
        network: any network.
    """

    def mean_targets(self, labels: LabelMatrix) -> NDArray[np.float64] | None:
        """Present among all images, where one that is not counts 1/(C−1)."""
        present = labels.positives
        return shrunk(present, present + (len(labels) - present) / max(1, labels.shape[1] - 1))

    def loss(self, logits: Tensor, targets: Targets) -> Tensor:
        """Weighted sum over logits (B, C) / (B·C)."""
        value, weight = targets
        light = weight / max(1, logits.shape[1] - 1)
        return super().loss(logits, Targets(value, weight.where(value == 1, light)))
