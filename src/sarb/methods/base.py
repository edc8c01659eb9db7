"""What the one training loop asks of a method."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import ClassVar

import torch
from torch import Tensor, nn

from sarb.batches.loader import Batch
from sarb.errors import ConfigError, StageError
from sarb.labels import LabelMatrix, Targets
from sarb.losses import partial_bce
from sarb.networks.base import Network


class Method(nn.Module):
    """A way to train a network. ``forward(batch)`` returns named loss terms; the loop sums them and knows no
    method.

    Hooks, all optional: :meth:`prepare`, :meth:`begin_epoch`, :meth:`note`, :meth:`end_step`,
    :meth:`end_round`, :meth:`figures`, and the class attributes below. State that must survive a resume
    lives in parameters and buffers.

    Attributes:
        needs: stages the network must offer.
        views: names of the transforms that make the views of an image, the first one is ``batch.images``.
        cacheable: whether it can train on cached activations (not if it mixes pixels or needs paired views).
        rounds: how often the whole schedule runs, each time from re-initialised weights (curriculum
            labeling).

    Args:
        network: the network to train.
        form: normalisation of the partial BCE, see :func:`sarb.losses.partial_bce`.
        positive_weight: weight of a present label; ``"balanced"`` takes the root of absent/present per
            category.
    """

    needs: ClassVar[frozenset[str]] = frozenset({"maps", "classify"})
    views: ClassVar[tuple[str, ...]] = ("train",)
    cacheable: ClassVar[bool] = True
    rounds: int = 1

    def __init__(
        self, network: Network, *, form: str = "batch", positive_weight: float | str | None = None
    ) -> None:
        super().__init__()
        missing = sorted(self.needs - network.stages)
        if missing:
            raise StageError(
                f"method {type(self).__name__} needs stage '{missing[0]}' (a representation per category), which "
                f"network {type(network).__name__} does not have; choose network 'ssgrl' or method 'partial_bce'"
            )
        if isinstance(positive_weight, str) and positive_weight != "balanced":
            raise ConfigError([f"method.positive_weight is a number or 'balanced', got '{positive_weight}'"])
        self.network = network
        self.form = form
        self.imbalance = positive_weight
        self.epoch = 0
        self.epochs = 0
        self.position = 0.0
        self.positive_weight: Tensor
        weight = float(positive_weight) if isinstance(positive_weight, (int, float)) else 1.0
        self.register_buffer("positive_weight", torch.full((network.categories,), weight))

    def prepare(self, labels: LabelMatrix) -> None:
        """Look at the known training labels once, before the first epoch; ``self.epochs`` is known by
        then.
        """
        if self.imbalance == "balanced":
            ratio = torch.from_numpy((labels.negatives + 1) / (labels.positives + 1))
            self.positive_weight.copy_(ratio.sqrt().clamp(1, 10))

    def begin_epoch(self, epoch: int, loader: Callable[[], Iterable[Batch]]) -> None:
        """``loader()`` iterates over the training images once, in order, without augmentation."""
        self.epoch = epoch

    def note(self, epoch: int) -> str:
        """What is new from this epoch on, in a few words; nothing for most."""
        return ""

    def begin_step(self, position: float) -> None:
        """``position`` is the place in training in epochs, e.g. 2.25."""
        self.position = position

    def end_step(self) -> None:
        """After the optimiser has moved the parameters."""

    def end_round(self, loader: Callable[[], Iterable[Batch]]) -> None:
        """Before the weights start again for the next round; ``loader`` as in :meth:`begin_epoch`."""

    def figures(self) -> dict[str, float]:
        """Numbers of the epoch for ``log.csv``: what was completed, the state of learned coefficients."""
        return {}

    def maps(self, batch: Batch) -> Tensor:
        """Grid features (B, D, H, W) of a batch of images, or of cached activations."""
        return self.network.from_frozen(batch.images) if batch.frozen else self.network.maps(batch.images)

    def loss(self, logits: Tensor, targets: Targets) -> Tensor:
        """Partial BCE in the chosen form."""
        weight = None if self.imbalance is None else self.positive_weight
        return partial_bce(logits, targets, form=self.form, positive_weight=weight)

    def forward(self, batch: Batch) -> dict[str, Tensor]:
        """Batch -> named loss terms."""
        raise NotImplementedError("a method defines forward")
