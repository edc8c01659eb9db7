"""DSRB, dual-perspective semantic-aware representation blending: SARB with prototypes by position."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from torch import Tensor

from sarb.batches.loader import Batch
from sarb.blends import InstanceBlend, known_positives, random_partner
from sarb.blends.prototype import Lots
from sarb.blends.quadrant import QuadrantBlend, quadrant_of
from sarb.errors import ConfigError
from sarb.labels import Targets
from sarb.methods.semantic import SemanticMethod
from sarb.methods.together import Pool, pool
from sarb.networks.base import Network
from sarb.networks.branches import Branch, classify_branches


class DSRB(SemanticMethod):
    """L = ℓ(plain) + w_i ℓ(IPRB) + w_p ℓ(PPRB) + λ L_cst, with one classifier for the three branches.

    IPRB blends known positives of another image of the batch into unknown labels (with torchrun: of this process, or
    with ``across_ranks`` of any). It is ILRB: attention × maps is summed over the grid, so blending before or after
    the sum is the same. PPRB blends one unknown label per image with a prototype of its category from another
    quadrant.

    Args:
        network: a network with a representation per category.
        start: first epoch (from 0) with blending, or a share of all epochs.
        refresh: epochs between two computations of the prototypes, or a share of all epochs.
        alpha: initial (or fixed) α, the share of the image's own representation in IPRB.
        beta: the same for PPRB.
        learnable: learn α and β, or keep them fixed.
        most: known positives per category and quadrant in a prototype.
        instance_weight: w_i.
        prototype_weight: w_p.
        contrastive: λ.
        ramp: epochs over which λ rises from 0.
        form: normalisation of the partial BCE.
    """

    completes = ("iprb", "pprb")

    def __init__(
        self,
        network: Network,
        *,
        start: float = 5,
        refresh: float = 5,
        alpha: float = 0.5,
        beta: float = 0.5,
        learnable: bool = True,
        most: int = 100,
        instance_weight: float = 1.0,
        prototype_weight: float = 1.0,
        contrastive: float = 0.05,
        ramp: float = 1.0,
        form: str = "batch",
    ) -> None:
        super().__init__(network, start=start, contrastive=contrastive, ramp=ramp, form=form)
        if most < 1:
            raise ConfigError([f"method.most must be at least 1, got {most}"])
        self.refresh = refresh
        self.weights = {"iprb": instance_weight, "pprb": prototype_weight}
        self.instance = InstanceBlend(alpha, learnable)
        self.position_blend = QuadrantBlend(network.categories, network.dim, beta, learnable, most)

    def begin_epoch(self, epoch: int, loader: Callable[[], Iterable[Batch]]) -> None:
        """Compute the prototypes at ``start``, then every ``refresh`` epochs."""
        super().begin_epoch(epoch, loader)
        if self.due(self.refresh):
            self.position_blend.fit_quadrants(*self.collect(loader, self._positives))

    def _positives(self, batch: Batch) -> tuple[Tensor, Tensor, Tensor]:
        targets = Targets.of(batch.labels)
        maps = self.maps(batch)
        features, owner = known_positives(self.network.represent(maps), targets)
        return features, owner, self.quadrants(maps)[targets.present]

    def quadrants(self, maps: Tensor) -> Tensor:
        """Where each category has its peak, (B, D, H, W) -> (B, C)."""
        strength = self.network.attention(maps)
        values = self.network.values(maps)
        if values is not None:
            strength = strength * values.sum(1, keepdim=True)
        return quadrant_of(strength.detach())

    def forward(self, batch: Batch) -> dict[str, Tensor]:
        """Batch -> {"cls", "cst", "iprb", "pprb"}, the last two from epoch ``start`` on."""
        targets = Targets.of(batch.labels)
        maps = self.maps(batch)
        reps = self.network.represent(maps)
        shared = pool(reps, targets)
        blends = self._blends(reps, targets, maps, shared) if self.completing else {}
        plain, *logits = classify_branches(self.network, reps, [branch for branch, _ in blends.values()])
        terms = {"cls": shared.keep(self.loss(plain, targets))}
        if self.contrastive > 0:
            terms["cst"] = self.compactness(shared)
        for (name, (branch, complete)), scores in zip(blends.items(), logits, strict=True):
            self.count(name, branch.changed)
            terms[name] = self.weights[name] * self.loss(scores, complete)
        return terms

    def _blends(
        self, reps: Tensor, targets: Targets, maps: Tensor, shared: Pool
    ) -> dict[str, tuple[Branch, Targets]]:
        """Blended representations and completed targets."""
        partner = random_partner(len(shared.reps), shared.generator)[shared.rows]
        instance, first = self.instance(reps, targets, partner, (shared.reps, shared.targets))
        lots = Lots.draw(len(shared.reps), self.network.categories, shared.generator).of(shared.rows)
        position, second = self.position_blend.blend(reps, targets, self.quadrants(maps), lots)
        return {
            "iprb": (Branch(instance, self.instance.chosen), first),
            "pprb": (Branch(position, self.position_blend.chosen, one_each=True), second),
        }

    def end_step(self) -> None:
        """Keep α and β inside their interval."""
        self.instance.clamp_()
        self.position_blend.clamp_()

    def figures(self) -> dict[str, float]:
        """Return α, β and how many unknown labels each blend completed in this epoch."""
        coefficients = {"alpha": self.instance.alpha.item(), "beta": self.position_blend.beta.item()}
        return {**coefficients, **super().figures()}
