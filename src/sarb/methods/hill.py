"""Hill: assume negative, with a loss that forgets what looks very present (Zhang et al. 2021)."""

from __future__ import annotations

from torch import Tensor

from sarb.errors import ConfigError
from sarb.labels import Targets
from sarb.losses.focal_margin import focal_present, hill
from sarb.losses.partial_bce import full_precision
from sarb.methods.an import AN
from sarb.methods.together import sum_share
from sarb.networks.base import Network


class Hill(AN):
    """L = Σ t (1 − p_m)^γ (−log p_m) + (1 − t)(λ − p) p², with p_m = σ(x − m); the sum over the batch.

    Unknown labels are absent.

    Args:
        network: any network.
        peak: λ; with 1.5 the slope at p = 1 is 0.
        margin: m, of present labels.
        gamma: γ, how fast a present label loses weight as p_m → 1.
    """

    def __init__(
        self, network: Network, *, peak: float = 1.5, margin: float = 1.0, gamma: float = 2.0
    ) -> None:
        super().__init__(network)
        if peak < 1 or gamma < 0:
            problem = (
                f"method.peak must be at least 1 and method.gamma at least 0, got {peak:g} and {gamma:g}"
            )
            raise ConfigError([problem])
        self.peak = peak
        self.margin = margin
        self.gamma = gamma

    def absent(self, logits: Tensor) -> Tensor:
        """The loss of an absent label, for every entry."""
        return hill(logits, self.peak)

    def loss(self, logits: Tensor, targets: Targets) -> Tensor:
        """Sum over the entries with weight."""
        x = full_precision(logits).where(targets.weight > 0, 0)
        present = focal_present(x, self.margin, self.gamma)
        entries = targets.weight * (targets.value * present + (1 - targets.value) * self.absent(x))
        return sum_share(entries.sum())
