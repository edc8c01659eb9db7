"""AN-LS: assume negative with label smoothing (Cole et al. 2021)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from sarb.errors import ConfigError
from sarb.labels import LabelMatrix, Targets
from sarb.methods.an import AN
from sarb.networks.base import Network
from sarb.networks.informed import shrunk


class ANLS(AN):
    """L as in AN, with the target 1 − ε for a present label and ε for any other.

    Args:
        network: any network.
        smoothing: ε.
    """

    def __init__(self, network: Network, *, smoothing: float = 0.1) -> None:
        super().__init__(network)
        if not 0 <= smoothing < 0.5:
            raise ConfigError([f"method.smoothing must be at least 0 and below 0.5, got {smoothing:g}"])
        self.smoothing = smoothing

    def mean_targets(self, labels: LabelMatrix) -> NDArray[np.float64] | None:
        """Those of AN, smoothed."""
        return self.smoothing + (1 - 2 * self.smoothing) * shrunk(labels.positives, len(labels))

    def loss(self, logits: Tensor, targets: Targets) -> Tensor:
        """Sum over logits (B, C) / (B·C), with smoothed targets."""
        value = self.smoothing + (1 - 2 * self.smoothing) * targets.value
        return super().loss(logits, Targets(value, targets.weight))
