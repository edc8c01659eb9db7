"""LL-Cp, large-loss correction, permanent: the largest losses become present for good (Kim et al. 2022)."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from sarb.batches.loader import Batch
from sarb.labels import LabelMatrix, Targets
from sarb.methods.an import AN
from sarb.methods.ll_r import LLR
from sarb.methods.together import from_all
from sarb.networks.base import Network


class LLCp(LLR):
    """L as in AN, but from epoch 1 on, k unknown entries per step become present and stay so.

    k = ⌈B·C·Δ/100⌉ with the batch of this process; the entries with the largest loss −log(1 − p) among those that
    are unknown and not yet relabelled.

    Args:
        network: any network.
        rate: Δ, in per cent of all entries.

    Attributes:
        relabelled: (N, C) mask of the training labels that became present; saved, and the same in all processes.
    """

    relabelled: Tensor

    def __init__(self, network: Network, *, rate: float = 0.1) -> None:
        super().__init__(network, rate=rate)

    def prepare(self, labels: LabelMatrix) -> None:
        """Allocate the memory."""
        super().prepare(labels)
        empty = torch.zeros(labels.shape, dtype=torch.bool, device=self.positive_weight.device)
        self.register_buffer("relabelled", empty)

    def chosen_count(self, entries: int) -> int:
        """k, for B·C entries."""
        return math.ceil(entries * self.rate / 100) if self.epoch else 0

    def assume(self, logits: Tensor, unknown: Tensor, batch: Batch) -> Targets:
        """All absent, except those that were relabelled before or are now."""
        before = self.relabelled[batch.index]
        new = self.chosen(logits, unknown & ~before)
        image, category = new.nonzero(as_tuple=True)
        self.relabelled[tuple(from_all(batch.index[image], category))] = True
        value, weight = AN.assume(self, logits, unknown, batch)
        return Targets(value.masked_fill(before | new, 1), weight)
