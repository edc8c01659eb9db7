"""SARB: semantic-aware representation blending, the paper's method."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping
from typing import ClassVar

import torch
from torch import Tensor

from sarb.batches.loader import Batch
from sarb.blends import InstanceBlend, PrototypeBlend, known_positives, random_partner
from sarb.blends.prototype import Lots
from sarb.errors import ConfigError
from sarb.labels import LabelMatrix, Targets
from sarb.losses import contrastive
from sarb.methods.base import Method
from sarb.methods.together import Pool, common_generator, counted, over_all, pool
from sarb.networks.base import Network
from sarb.networks.branches import Branch, classify_branches


class SARB(Method):
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

    needs: ClassVar[frozenset[str]] = frozenset({"maps", "represent", "classify"})
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
        super().__init__(network, form=form, positive_weight=positive_weight)
        least = {"start": (start, 0), "refresh": (refresh, 0.01), "prototypes": (prototypes, 1)}
        least |= {"ilrb_weight": (ilrb_weight, 0), "plrb_weight": (plrb_weight, 0)}
        problems = [
            f"method.{key} must be at least {low}, got {value}"
            for key, (value, low) in least.items()
            if value < low
        ]
        if problems:
            raise ConfigError(problems)
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
        self.start = start
        self.refresh = refresh
        self.ramp = ramp
        self.contrastive = (plrb_contrastive if plrb else 0.0) if contrastive is None else contrastive
        self.contrastive_form = contrastive_form
        self.without_positives = without_positives
        self.blending = False
        self.completed = {"ilrb": 0, "plrb": 0}

    def prepare(self, labels: LabelMatrix) -> None:
        """Warn if the run is too short for blending."""
        super().prepare(labels)
        first = self.in_epochs(self.start)
        if 0 < self.epochs <= first:
            message = (
                f"blending starts at epoch {first}, but the last epoch is {self.epochs - 1}: no blending"
            )
            warnings.warn(message + " in this run (set method.start)", stacklevel=2)

    def begin_epoch(self, epoch: int, loader: Callable[[], Iterable[Batch]]) -> None:
        """Compute the prototypes at ``start``, then every ``refresh`` epochs."""
        super().begin_epoch(epoch, loader)
        self.completed = {"ilrb": 0, "plrb": 0}
        self.blending = epoch >= self.in_epochs(self.start)
        since = epoch - self.in_epochs(self.start)
        if self.plrb is not None and self.blending and since % max(1, self.in_epochs(self.refresh)) == 0:
            self.plrb.fit(*self._positives(loader), common_generator())

    def note(self, epoch: int) -> str:
        """Say when blending begins, because the loss then has more terms."""
        return (
            "blending begins" if 0 < epoch == self.in_epochs(self.start) and (self.ilrb or self.plrb) else ""
        )

    @torch.no_grad()
    def _positives(self, loader: Callable[[], Iterable[Batch]]) -> tuple[Tensor, Tensor]:
        """Representations (M, D) of all known positives in the training images, and their categories (M,)."""

        def read(batch: Batch) -> tuple[Tensor, Tensor]:
            reps = self.network.represent(self.maps(batch))
            return known_positives(reps, Targets.of(batch.labels))

        training = self.training
        self.eval()
        features, owners = over_all(loader, read)
        self.train(training)
        return features, owners

    def forward(self, batch: Batch) -> dict[str, Tensor]:
        """Batch -> {"cls", "cst", "ilrb", "plrb"}, the last two from epoch ``start`` on."""
        targets = Targets.of(batch.labels)
        reps = self.network.represent(self.maps(batch))
        shared = pool(reps, targets)
        terms = {"cst": self._compactness(shared)} if self.contrastive > 0 else {}
        blends = self._blends(reps, targets, shared) if self.blending else {}
        # the same as self.network.classify on reps and on each blend, in half the time
        plain, *logits = classify_branches(self.network, reps, [branch for branch, _ in blends.values()])
        for (name, (_, complete)), scores in zip(blends.items(), logits, strict=True):
            terms[name] = self.loss(scores, complete)
        return {"cls": shared.keep(self.loss(plain, targets)), **terms}

    def _compactness(self, shared: Pool) -> Tensor:
        """λ L_cst; λ rises over the first epochs."""
        ramp = min(1.0, self.position / self.ramp) if self.ramp > 0 else 1.0
        distance = contrastive(
            shared.reps,
            shared.targets,
            form=self.contrastive_form,
            without_positives=self.without_positives,
            generator=shared.generator,
        )
        return self.contrastive * ramp * distance

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
            self.completed[name] += counted(branch.changed)
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
            numbers |= {**_spread("alpha", self.ilrb.alpha), "completed_ilrb": self.completed["ilrb"]}
        if self.plrb is not None:
            numbers |= {**_spread("beta", self.plrb.beta), "completed_plrb": self.completed["plrb"]}
        return numbers


def _spread(name: str, coefficient: Tensor) -> dict[str, float]:
    """Return the coefficient; with one per category their mean, minimum and maximum."""
    numbers = {name: coefficient.mean().item()}
    if coefficient.ndim:
        numbers |= {f"{name}_min": coefficient.min().item(), f"{name}_max": coefficient.max().item()}
    return numbers
