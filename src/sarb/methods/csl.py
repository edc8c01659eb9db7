"""CSL, class-aware selective loss: ignore unknown labels that may well be present (Ben-Baruch et al. 2022)."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import logsigmoid

from sarb.batches.loader import Batch
from sarb.errors import ConfigError
from sarb.labels import LabelMatrix, Targets
from sarb.losses.largest import largest
from sarb.losses.partial_bce import full_precision
from sarb.methods.an import AN
from sarb.methods.together import over_all, sum_share
from sarb.networks.base import Network


class CSL(AN):
    """L = −Σ [y=1](1−p)^γ₊ log p + [y=−1] p^γ₋ log(1−p) + ω [y=0] p^γᵤ log(1−p), the sum over the batch.

    ω = 0 if the prior of the category is above η, or if the entry is among the K·B most likely unknown entries
    of the batch (of this process); else an unknown label is absent, ω = 1. No gradient flows through the powers.
    The prior is the mean probability of a category on the training images, by a network trained in a first round
    that ignores unknown labels. A run therefore costs ``rounds`` times as much.

    Args:
        network: any network.
        highest: K.
        most: η.
        gamma_unknown: γᵤ.
        gamma_negative: γ₋.
        gamma_positive: γ₊.
        rounds: 2; with 1 there is no prior, and K decides alone. It is 1 if no label is known to be absent.

    Attributes:
        prior: (C,), saved; 0 in the first round.
    """

    prior: Tensor

    def __init__(
        self,
        network: Network,
        *,
        highest: float = 5,
        most: float = 0.05,
        gamma_unknown: float = 4.0,
        gamma_negative: float = 1.0,
        gamma_positive: float = 0.0,
        rounds: int = 2,
    ) -> None:
        super().__init__(network)
        problems = []
        if min(gamma_unknown, gamma_negative, gamma_positive, highest) < 0:
            problems.append("method.highest and the three method.gamma_… must be at least 0")
        if rounds not in (1, 2):
            problems.append(f"method.rounds is 1 or 2, got {rounds}")
        if problems:
            raise ConfigError(problems)
        self.highest = highest
        self.most = most
        self.powers = (gamma_unknown, gamma_negative, gamma_positive)
        self.rounds = rounds
        self.register_buffer("prior", torch.zeros(network.categories))

    def prepare(self, labels: LabelMatrix) -> None:
        """One round if nothing is known to be absent: the first network would call everything present."""
        super().prepare(labels)
        if not labels.negatives.any():
            self.rounds = 1

    def mean_targets(self, labels: LabelMatrix) -> NDArray[np.float64] | None:
        """The known labels, from which each round begins; those of AN if there is only one round."""
        return super().mean_targets(labels) if self.rounds == 1 else None

    @torch.no_grad()
    def end_round(self, loader: Callable[[], Iterable[Batch]]) -> None:
        """The prior, by the network that ignored unknown labels."""
        training = self.training
        self.eval()
        (likely,) = over_all(loader, lambda batch: (self.network.head(self.maps(batch)).float().sigmoid(),))
        self.train(training)
        self.prior.copy_(likely.mean(0))

    def assume(self, logits: Tensor, unknown: Tensor, batch: Batch) -> Targets:
        """Absent, unless it may well be present; in the first of two rounds nothing is assumed."""
        value, weight = super().assume(logits, unknown, batch)
        if self.epoch // max(1, self.epochs) < self.rounds - 1:
            return Targets(value, torch.zeros_like(weight))
        likely = largest(logits, unknown, round(self.highest * len(logits)))
        return Targets(value, weight.masked_fill(likely | (self.prior > self.most), 0))

    def loss(self, logits: Tensor, targets: Targets) -> Tensor:
        """Sum over the known entries."""
        return self._sum(logits, targets, self.powers[1])

    def assumed_loss(self, logits: Tensor, assumed: Targets) -> Tensor:
        """Sum over the unknown entries that count as absent."""
        return self._sum(logits, assumed, self.powers[0])

    def _sum(self, logits: Tensor, targets: Targets, absent: float) -> Tensor:
        x = full_precision(logits).where(targets.weight > 0, 0)
        p = x.detach().sigmoid()
        positive = targets.value * (1 - p) ** self.powers[2] * logsigmoid(x)
        negative = (1 - targets.value) * p**absent * logsigmoid(-x)
        return sum_share(-(targets.weight * (positive + negative)).sum())
