"""SPLC: an unknown label that the network is sure of becomes present at once (Zhang et al. 2021)."""

from __future__ import annotations

from torch import Tensor

from sarb.batches.loader import Batch
from sarb.errors import check_share
from sarb.labels import Targets
from sarb.losses.focal_margin import focal_absent, focal_present
from sarb.losses.partial_bce import full_precision
from sarb.methods.hill import Hill
from sarb.methods.together import sum_share
from sarb.networks.base import Network


class SPLC(Hill):
    """L = Σ t (1 − p_m)^γ (−log p_m) + (1 − t) p^γ (−log(1 − p)), the sum over the batch.

    Unknown labels are absent; from epoch ``start`` on, one with p > τ is present, with the margin m̂ instead of m.

    Args:
        network: any network.
        threshold: τ.
        start: first epoch (from 0) with correction, or a share of all epochs.
        margin: m, of known present labels.
        corrected_margin: m̂; 0 in the authors' code, m in their formula.
        gamma: γ.
    """

    def __init__(
        self,
        network: Network,
        *,
        threshold: float = 0.6,
        start: float = 1,
        margin: float = 1.0,
        corrected_margin: float = 0.0,
        gamma: float = 2.0,
    ) -> None:
        super().__init__(network, margin=margin, gamma=gamma)
        check_share("method.threshold", threshold)
        self.threshold = threshold
        self.start = start
        self.corrected_margin = corrected_margin

    def absent(self, logits: Tensor) -> Tensor:
        """The loss of an absent label, for every entry."""
        return focal_absent(logits, self.gamma)

    def assume(self, logits: Tensor, unknown: Tensor, batch: Batch) -> Targets:
        """Present where p > τ, else absent."""
        assumed = super().assume(logits, unknown, batch)
        if self.epoch < self.in_epochs(self.start):
            return assumed
        sure = unknown & (logits.detach().sigmoid() > self.threshold)
        return Targets(assumed.value.masked_fill(sure, 1), assumed.weight)

    def assumed_loss(self, logits: Tensor, assumed: Targets) -> Tensor:
        """The sum with the other margin."""
        value, weight = assumed
        x = full_precision(logits)
        present = focal_present(x, self.corrected_margin, self.gamma)
        return sum_share((weight * (value * present + (1 - value) * self.absent(x))).sum())
