"""SR-ST's self-training: a weak view of an image labels its strong view (ICCV 2023)."""

from __future__ import annotations

from typing import ClassVar

from torch import Tensor

from sarb.batches.loader import Batch
from sarb.errors import ConfigError
from sarb.labels import Targets
from sarb.methods.base import Method
from sarb.networks.base import Network


class SRST(Method):
    """L = ℓ(weak view, y) + ω ℓ(strong view, ŷ), each a mean over its own entries of the batch of this process.

    An unknown label is present in ŷ if p ≥ τ on the weak view, absent if 1 − p ≥ τ, else left out. The other half
    of SR-ST, the saliency regularisation, is the network's: ``pooled`` with ``network.peak=0.5``, as in the row.

    Args:
        network: any network; ``pooled`` with ``peak`` for the paper's.
        threshold: τ.
        weight: ω.
    """

    views: ClassVar[tuple[str, ...]] = ("train", "strong")
    cacheable: ClassVar[bool] = False
    completes: ClassVar[tuple[str, ...]] = ("absent", "present")

    def __init__(self, network: Network, *, threshold: float = 0.6, weight: float = 1.0) -> None:
        super().__init__(network)
        if not 0.5 < threshold <= 1 or weight < 0:
            bounds = "method.threshold must be above 0.5 and at most 1, method.weight at least 0"
            raise ConfigError([f"{bounds}; got {threshold:g} and {weight:g}"])
        self.threshold = threshold
        self.weight = weight

    def pseudo_labels(self, logits: Tensor, known: Targets) -> Targets:
        """ŷ of unknown entries (B, C), from the logits of the weak view."""
        p = logits.detach().float().sigmoid()
        unknown = known.weight == 0
        present = unknown & (p >= self.threshold)
        absent = unknown & (1 - p >= self.threshold)
        self.count("present", present)
        self.count("absent", absent)
        return Targets(present.to(p.dtype), (present | absent).to(p.dtype))

    def forward(self, batch: Batch) -> dict[str, Tensor]:
        """Batch -> {"cls", "strong"}."""
        known = Targets.of(batch.labels)
        weak = self.network.head(self.maps(batch))
        strong = self.network.head(self.network.maps(batch.views[0]))
        cls = self.loss(weak, known)
        return {"cls": cls, "strong": self.weight * self.loss(strong, self.pseudo_labels(weak, known))}
