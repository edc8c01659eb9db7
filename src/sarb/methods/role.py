"""ROLE: learn the unknown labels of every training image together with the network (Cole et al. 2021)."""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from sarb.batches.loader import Batch
from sarb.errors import ConfigError
from sarb.labels import LabelMatrix, Targets
from sarb.losses.positive_count import count_loss
from sarb.methods.base import Rate
from sarb.methods.epr import EPR
from sarb.networks.base import Network
from sarb.networks.informed import shrunk

#: φ starts at the logits of these probabilities: present, absent, and at most this far from ½ if unknown
PRESENT = 0.995
UNKNOWN = 0.6


def _logit(probability: float) -> float:
    return math.log(probability / (1 - probability))


class ROLE(EPR):
    """L = ½[P(p) + P(q) + H(sg q, p) + H(sg p, q)] + ½[R(p) + R(q)], with learned labels q = σ(φ).

    P is the loss of known labels, H(a, b) the cross entropy of all entries with target a, both divided by B·C.
    R is that of EPR, on the batch of this process. sg stops the gradient.

    Args:
        network: any network.
        positives: k, see :class:`EPR`.
        negatives: also learn from known absent labels, see :class:`EPR`.
        rate: factor of the learning rate of φ. With 10 epochs it wants 1000 or more, see its page.

    Attributes:
        estimates: φ (N, C), one row per training image.
    """

    completes: ClassVar[tuple[str, ...]] = ("estimated",)
    estimates: nn.Parameter

    def __init__(
        self,
        network: Network,
        *,
        positives: float | None = None,
        negatives: bool = True,
        rate: float = 10.0,
    ) -> None:
        super().__init__(network, positives=positives, negatives=negatives)
        if rate < 0:
            raise ConfigError([f"method.rate must be at least 0, got {rate:g}"])
        self.rates = {"estimates": Rate(rate)}

    def prepare(self, labels: LabelMatrix) -> None:
        """Start φ at the known labels, and near ½ for unknown ones."""
        super().prepare(labels)
        value, weight = Targets.of(labels)
        near = (2 * torch.rand(value.shape) - 1) * _logit(UNKNOWN)
        start = torch.where(weight > 0, (2 * value - 1) * _logit(PRESENT), near)
        self.estimates = nn.Parameter(start.to(self.positive_weight.device))
        self._before: Tensor | None = None

    def mean_targets(self, labels: LabelMatrix) -> NDArray[np.float64] | None:
        """Known labels, which count twice, in P and in H, and ½ for each unknown one."""
        known = labels.known.sum(0)
        return shrunk(2 * labels.positives + (len(labels) - known) / 2, len(labels) + known)

    def begin_step(self, position: float) -> None:
        """Remember φ."""
        super().begin_step(position)
        self._before = self.estimates.detach().clone()

    @torch.no_grad()
    def end_step(self) -> None:
        """Put back the rows of images that were in no batch; the optimiser's momentum has moved them too."""
        gradient = self.estimates.grad  # of all processes together
        if gradient is not None and self._before is not None:
            rest = (gradient == 0).all(1, keepdim=True)
            self.estimates.copy_(torch.where(rest, self._before, self.estimates))
        self._before = None

    def forward(self, batch: Batch) -> dict[str, Tensor]:
        """Batch -> {"cls", "estimates", "count"}."""
        logits = self.network.head(self.maps(batch)).float()
        learned = self.estimates[batch.index]
        p, q = logits.sigmoid(), learned.sigmoid()
        known = self.known(batch)
        self.count("estimated", Targets.of(batch.labels).weight == 0)
        every = torch.ones_like(p)
        cls = self.loss(logits, known) / 2
        both = self.loss(logits, Targets(q.detach(), every)) + self.loss(learned, Targets(p.detach(), every))
        counts = count_loss(p, self.expected) + count_loss(q, self.expected)
        return {"cls": cls, "estimates": (self.loss(learned, known) + both) / 2, "count": counts / 2}
