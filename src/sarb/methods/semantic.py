"""What methods on representations share: a start after some epochs, compact categories, a pass over the positives."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping
from typing import ClassVar

import torch
from torch import Tensor

from sarb.batches.loader import Batch
from sarb.errors import ConfigError
from sarb.labels import LabelMatrix
from sarb.losses import contrastive
from sarb.methods.base import Method
from sarb.methods.together import Pool, over_all
from sarb.networks.base import Network


class SemanticMethod(Method):
    """A method that completes labels from epoch ``start`` on, with λ times the contrastive loss from the start.

    Args:
        network: a network with a representation per category.
        start: first epoch (from 0) with completed labels; a value between 0 and 1 is a share of all epochs.
        contrastive: λ, on the images of this process, or with ``across_ranks`` of all.
        ramp: epochs over which λ rises from 0.
        form: normalisation of the partial BCE.
        positive_weight: see :class:`Method`.
        least: further options -> value and the least that is allowed.
    """

    needs: ClassVar[frozenset[str]] = frozenset({"maps", "represent", "classify"})

    def __init__(
        self,
        network: Network,
        *,
        start: float,
        contrastive: float,
        ramp: float,
        form: str = "batch",
        positive_weight: float | str | None = None,
        least: Mapping[str, tuple[float, float]] | None = None,
    ) -> None:
        super().__init__(network, form=form, positive_weight=positive_weight)
        bounds = {"start": (start, 0), "contrastive": (contrastive, 0), "ramp": (ramp, 0), **(least or {})}
        problems = [
            f"method.{name} must be at least {low:g}, got {value:g}"
            for name, (value, low) in bounds.items()
            if value < low
        ]
        if problems:
            raise ConfigError(problems)
        self.start = start
        self.contrastive = contrastive
        self.ramp = ramp
        self.completing = False

    def prepare(self, labels: LabelMatrix) -> None:
        """Warn if the run is too short."""
        super().prepare(labels)
        first = self.in_epochs(self.start)
        if 0 < self.epochs <= first:
            message = f"labels are completed from epoch {first} on, but the last epoch is {self.epochs - 1}"
            warnings.warn(f"{message}: none in this run (set method.start)", stacklevel=2)

    def begin_epoch(self, epoch: int, loader: Callable[[], Iterable[Batch]]) -> None:
        """See whether labels are completed in this epoch."""
        super().begin_epoch(epoch, loader)
        self.completing = epoch >= self.in_epochs(self.start)

    def note(self, epoch: int) -> str:
        """Say when it begins, because the loss then has more terms."""
        return "labels are completed from now on" if 0 < epoch == self.in_epochs(self.start) else ""

    def due(self, every: float) -> bool:
        """Whether this epoch is ``start`` or a multiple of ``every`` epochs (or a share of all) later."""
        since = self.epoch - self.in_epochs(self.start)
        return since >= 0 and since % max(1, self.in_epochs(every)) == 0

    @property
    def rise(self) -> float:
        """The share of an auxiliary loss that counts, from 0 to 1 over the first epochs."""
        return min(1.0, self.position / self.ramp) if self.ramp > 0 else 1.0

    def compactness(self, shared: Pool, **options: str) -> Tensor:
        """λ L_cst of the representations of a pool; options are those of :func:`sarb.losses.contrastive`."""
        distance = contrastive(shared.reps, shared.targets, generator=shared.generator, **options)
        return self.contrastive * self.rise * distance

    @torch.no_grad()
    def collect(
        self, loader: Callable[[], Iterable[Batch]], read: Callable[[Batch], tuple[Tensor, ...]]
    ) -> list[Tensor]:
        """Join what ``read`` finds in all training images, in eval mode; the same in every process."""
        training = self.training
        self.eval()
        found = over_all(loader, read)
        self.train(training)
        return found
