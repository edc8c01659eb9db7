"""HST, heterogeneous semantic transfer: SST with prototypes and learned thresholds (Chen et al. 2024)."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import torch
from torch import Tensor
from torch.nn.functional import normalize

from sarb.batches.loader import Batch
from sarb.blends.coefficient import add_coefficient, clamp_
from sarb.blends.kmeans import kmeans_by_owner
from sarb.blends.prototype import known_positives
from sarb.labels import Targets
from sarb.losses.similarity import prototype_contrast, threshold_loss
from sarb.methods.pairs import support
from sarb.methods.together import common_generator
from sarb.methods.transfer import Transfer
from sarb.networks.base import Network


class HST(Transfer):
    """L = ℓ(y) + ℓ(y ∪ intra) + ℓ(y ∪ cross) + w_pair L_pair + λ L_cst + λ_p L_prototype + w_θ L_thresholds.

    As SST, but the cross similarity is the mean cosine to K k-means prototypes of the category, and an unknown
    label is present if s > θ, with one learned θ for each kind. The intra threshold learns from what the *other*
    known positives say about a known label.

    Args:
        network: a network with a representation per category.
        start: first epoch (from 0) with pseudo-labels, or a share of all epochs.
        refresh: epochs between two computations of the prototypes, or a share of all epochs.
        prototypes: K.
        threshold: θ at the start, between 0.01 and 0.99; it stays in this interval.
        threshold_weight: w_θ.
        width: of the pair head.
        pair: w_pair.
        contrastive: λ.
        prototype_weight: λ_p.
        ramp: epochs over which the auxiliary weights rise from 0.
        form: normalisation of the partial BCE.

    Attributes:
        centers, counts: (C, K, D) unit vectors and (C,) how many there are; saved.
    """

    centers: Tensor
    counts: Tensor
    intra: Tensor
    cross: Tensor

    def __init__(
        self,
        network: Network,
        *,
        start: float = 5,
        refresh: float = 5,
        prototypes: int = 10,
        threshold: float = 0.95,
        threshold_weight: float = 0.1,
        width: int = 512,
        pair: float = 10.0,
        contrastive: float = 0.05,
        prototype_weight: float = 0.05,
        ramp: float = 1.0,
        form: str = "batch",
    ) -> None:
        super().__init__(
            network, start=start, width=width, pair=pair, contrastive=contrastive, ramp=ramp, form=form
        )
        self.refresh = refresh
        self.threshold_weight = threshold_weight
        self.prototype_weight = prototype_weight
        for name in self.completes:
            add_coefficient(self, name, threshold, True, None)
        self.register_buffer("centers", torch.zeros(network.categories, prototypes, network.dim))
        self.register_buffer("counts", torch.zeros(network.categories, dtype=torch.long))

    def begin_epoch(self, epoch: int, loader: Callable[[], Iterable[Batch]]) -> None:
        """Compute the prototypes at ``start``, then every ``refresh`` epochs."""
        super().begin_epoch(epoch, loader)
        if self.due(self.refresh):
            features, owner = self.collect(loader, self._positives)
            categories, prototypes, _ = self.centers.shape
            centers, counts = kmeans_by_owner(
                features, owner, categories, prototypes, common_generator(), restarts=2
            )
            self.centers.copy_(normalize(centers, dim=2))
            self.counts.copy_(counts)

    def _positives(self, batch: Batch) -> tuple[Tensor, Tensor]:
        return known_positives(self.network.represent(self.maps(batch)), Targets.of(batch.labels))

    def similarity(self, reps: Tensor) -> Tensor:
        """Mean cosine (B, C) of representations (B, C, D) to the prototypes, 0 for categories without one."""
        mean = self.centers.sum(1) / self.counts.clamp(min=1)[:, None]
        return (normalize(reps.float(), dim=2) * mean).sum(2)

    def decide(
        self, reps: Tensor, pairs: Tensor, targets: Targets
    ) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        """Compare both similarities with their thresholds; further terms "theta" and "prototype"."""
        similarity = self.similarity(reps)
        sure = {
            "intra": support(pairs, targets.present) > self.intra,
            "cross": (similarity > self.cross) & (self.counts > 0),
        }
        present = targets.present.long()
        others = present.sum(1, keepdim=True) - present > 0
        theta = threshold_loss(
            support(pairs, targets.present, own=False), self.intra, _where(others, targets)
        ) + threshold_loss(similarity, self.cross, _where(self.counts > 0, targets))
        contrast = prototype_contrast(similarity, targets)
        more = {"theta": self.threshold_weight * theta, "prototype": self.prototype_weight * contrast}
        return sure, more

    def end_step(self) -> None:
        """Keep the thresholds inside their interval."""
        clamp_(self.intra)
        clamp_(self.cross)

    def figures(self) -> dict[str, float]:
        """Return the thresholds and the pseudo-labels of this epoch."""
        learned = {"threshold_intra": self.intra.item(), "threshold_cross": self.cross.item()}
        return {**learned, **super().figures()}


def _where(heard: Tensor, targets: Targets) -> Targets:
    """Only the targets that have a similarity."""
    return Targets(targets.value, targets.weight * heard)
