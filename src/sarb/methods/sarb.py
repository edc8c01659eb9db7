"""SARB: semantic-aware representation blending, the paper's method."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import ClassVar

from torch import Tensor

from sarb.batches.loader import Batch
from sarb.blends import InstanceBlend, PrototypeBlend, known_positives, random_partner
from sarb.blends.prototype import Lots
from sarb.labels import Targets
from sarb.methods.semantic import SemanticMethod
from sarb.methods.together import Pool, common_generator, pool
from sarb.networks.base import Network
from sarb.networks.branches import Branch, classify_branches


class SARB(SemanticMethod):
    """L = L_cls(plain) + L_cls(ILRB) + L_cls(PLRB) + λ L_cst, with one classifier for the three branches.

    Args:
        network: a network with a representation per category.
        ilrb: blend known positives of one image into unknown labels of another (Eq. 3-4).
        plrb: blend k-means prototypes into one unknown label per image (Eq. 9-10).
        alpha: initial (or fixed) α, the share of the image's own representation in ILRB.
        beta: the same for PLRB.
        learnable: learn α and β, or keep them fixed.
        per_category: one α and β per category instead of one for all.
        detach_label: α and β learn from the features only, not from the soft label 1−α.
        prototypes: K.
        start: first epoch (from 0) with blending; a value between 0 and 1 is a share of all epochs.
        refresh: epochs between two computations of the prototypes, or a share of all epochs.
        ilrb_weight: weight in the loss of an entry completed by ILRB (paper: 1).
        plrb_weight: the same for PLRB.
        contrastive: λ; None means ``plrb_contrastive`` with PLRB and 0 without: the loss is there for prototypes.
        plrb_contrastive: λ with PLRB, where ``contrastive`` is not given (paper: 0.05); what a recipe sets.
        contrastive_form: ``"balanced"`` (authors' code) or ``"paper"`` (as printed).
        without_positives: ``"none"`` or ``"all"``, see :func:`sarb.losses.contrastive`.
        ramp: epochs over which λ rises from 0.
        form: normalisation of the partial BCE.
        positive_weight: see :class:`Method`.
    """

    completes: ClassVar[tuple[str, ...]] = ("ilrb", "plrb")
    search: ClassVar[Mapping[str, str]] = {"start": "0.1..0.8"}

    def __init__(
        self,
        network: Network,
        *,
        ilrb: bool = True,
        plrb: bool = True,
        alpha: float = 0.5,
        beta: float = 0.5,
        learnable: bool = True,
        per_category: bool = False,
        detach_label: bool = False,
        prototypes: int = 10,
        start: float = 5,
        refresh: float = 5,
        ilrb_weight: float = 1.0,
        plrb_weight: float = 1.0,
        contrastive: float | None = None,
        plrb_contrastive: float = 0.05,
        contrastive_form: str = "balanced",
        without_positives: str = "none",
        ramp: float = 1.0,
        form: str = "batch",
        positive_weight: float | str | None = None,
    ) -> None:
        super().__init__(
            network,
            start=start,
            contrastive=(plrb_contrastive if plrb else 0.0) if contrastive is None else contrastive,
            ramp=ramp,
            form=form,
            positive_weight=positive_weight,
            least={
                "refresh": (refresh, 0.01),
                "prototypes": (prototypes, 1),
                "ilrb_weight": (ilrb_weight, 0),
                "plrb_weight": (plrb_weight, 0),
            },
        )
        categories = network.categories
        coefficients = categories if per_category else None
        self.ilrb: InstanceBlend | None = None
        self.plrb: PrototypeBlend | None = None
        if ilrb:
            self.ilrb = InstanceBlend(alpha, learnable, coefficients, detach_label, ilrb_weight)
        if plrb:
            self.plrb = PrototypeBlend(
                categories, network.dim, prototypes, beta, learnable, coefficients, detach_label, plrb_weight
            )
        self.refresh = refresh
        self.contrastive_form = contrastive_form
        self.without_positives = without_positives

    def begin_epoch(self, epoch: int, loader: Callable[[], Iterable[Batch]]) -> None:
        """Compute the prototypes at ``start``, then every ``refresh`` epochs."""
        super().begin_epoch(epoch, loader)
        if self.plrb is not None and self.due(self.refresh):
            features, owner = self.collect(loader, self._positives)
            self.plrb.fit(features, owner, common_generator())

    def note(self, epoch: int) -> str:
        """Say when blending begins, because the loss then has more terms."""
        return "blending begins" if super().note(epoch) and (self.ilrb or self.plrb) else ""

    def _positives(self, batch: Batch) -> tuple[Tensor, Tensor]:
        return known_positives(self.network.represent(self.maps(batch)), Targets.of(batch.labels))

    def forward(self, batch: Batch) -> dict[str, Tensor]:
        """Batch -> {"cls", "cst", "ilrb", "plrb"}, the last two from epoch ``start`` on."""
        targets = Targets.of(batch.labels)
        reps = self.network.represent(self.maps(batch))
        shared = pool(reps, targets)
        terms = {}
        if self.contrastive > 0:
            pairs = {"form": self.contrastive_form, "without_positives": self.without_positives}
            terms["cst"] = self.compactness(shared, **pairs)
        blends = self._blends(reps, targets, shared) if self.completing else {}
        # the same as self.network.classify on reps and on each blend, in half the time
        plain, *logits = classify_branches(self.network, reps, [branch for branch, _ in blends.values()])
        for (name, (_, complete)), scores in zip(blends.items(), logits, strict=True):
            terms[name] = self.loss(scores, complete)
        return {"cls": shared.keep(self.loss(plain, targets)), **terms}

    def _blends(self, reps: Tensor, targets: Targets, shared: Pool) -> dict[str, tuple[Branch, Targets]]:
        """Blended representations and completed targets, by name of the blend."""
        blends = {}
        if self.ilrb is not None:
            partner = random_partner(len(shared.reps), shared.generator)[shared.rows]
            blended, complete = self.ilrb(reps, targets, partner, (shared.reps, shared.targets))
            blends["ilrb"] = Branch(blended, self.ilrb.chosen), complete
        if self.plrb is not None:
            lots = Lots.draw(len(shared.reps), self.network.categories, shared.generator).of(shared.rows)
            blended, complete = self.plrb(reps, targets, lots=lots)
            blends["plrb"] = Branch(blended, self.plrb.chosen, one_each=True), complete
        for name, (branch, _) in blends.items():
            self.count(name, branch.changed)
        return blends

    def end_step(self) -> None:
        """Keep α and β inside their interval."""
        for blend in (self.ilrb, self.plrb):
            if blend is not None:
                blend.clamp_()

    def figures(self) -> dict[str, float]:
        """Return α, β and how many unknown labels each blend completed in this epoch."""
        numbers: dict[str, float] = {}
        if self.ilrb is not None:
            numbers |= {**_spread("alpha", self.ilrb.alpha), "completed_ilrb": self.counted["ilrb"]}
        if self.plrb is not None:
            numbers |= {**_spread("beta", self.plrb.beta), "completed_plrb": self.counted["plrb"]}
        return numbers


def _spread(name: str, coefficient: Tensor) -> dict[str, float]:
    """Return the coefficient; with one per category their mean, minimum and maximum."""
    numbers = {name: coefficient.mean().item()}
    if coefficient.ndim:
        numbers |= {f"{name}_min": coefficient.min().item(), f"{name}_max": coefficient.max().item()}
    return numbers
