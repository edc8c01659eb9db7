"""The base class of methods: what the training loop calls."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import ClassVar, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from sarb.batches.loader import Batch
from sarb.errors import ConfigError, StageError
from sarb.labels import LabelMatrix, Targets
from sarb.losses import partial_bce
from sarb.methods.together import counted, mean_share, sum_share
from sarb.networks.base import Network


class Rate(NamedTuple):
    """How a method's own parameters learn: with ``factor`` times the learning rate, with weight decay or not."""

    factor: float = 1.0
    decay: bool = False


class Method(nn.Module):
    """A way to train a network: ``forward(batch)`` returns named loss terms, and the loop adds them up.

    Optional hooks: :meth:`prepare`, :meth:`mean_targets`, :meth:`begin_epoch`, :meth:`note`, :meth:`end_step`,
    :meth:`end_round`, :meth:`figures`, and the class attributes below. Keep state that must survive a resume in
    parameters and buffers. Plain attributes survive inside an epoch only, see :mod:`sarb.training.attributes`.

    Attributes:
        needs: stages that the network must have.
        views: names of the transforms that make the views of an image; the first one gives ``batch.images``.
        cacheable: whether it can train on cached activations; not if it mixes pixels. Several views need pixels anyway.
        on_top: whether it can train the residual of ``auto``; not if it mixes images, whose mixtures have no scores.
        rounds: how often the whole schedule runs, each time from the initial weights (curriculum labeling).
        unset: names of buffers in which NaN means "not yet"; NaN anywhere else stops the training.
        completes: what :meth:`count` counts; each becomes a column ``completed_NAME`` of ``log.csv``.
        search: own options that ``sarb tune`` searches if it is not told what to search -> their values, as text.
        rates: prefix of own parameters -> how they learn; the others take ``lr.blend`` and no weight decay.

    Args:
        network: the network to train.
        form: normalisation of the partial BCE, see :func:`sarb.losses.partial_bce`.
        positive_weight: weight of a present label; ``"balanced"`` is √(absent/present) per category.
    """

    needs: ClassVar[frozenset[str]] = frozenset({"maps", "classify"})
    fitted: ClassVar[bool] = False
    views: ClassVar[tuple[str, ...]] = ("train",)
    cacheable: ClassVar[bool] = True
    on_top: ClassVar[bool] = True
    rounds: int = 1
    unset: ClassVar[frozenset[str]] = frozenset()
    completes: ClassVar[tuple[str, ...]] = ()
    rates: Mapping[str, Rate] = {}
    search: ClassVar[Mapping[str, str]] = {}

    def __init__(
        self, network: Network, *, form: str = "batch", positive_weight: float | str | None = None
    ) -> None:
        super().__init__()
        check_stages(type(self), type(network))
        if isinstance(positive_weight, str) and positive_weight != "balanced":
            raise ConfigError([f"method.positive_weight is a number or 'balanced', got '{positive_weight}'"])
        self.network = network
        self.form = form
        self.imbalance = positive_weight
        self.epoch = 0
        self.epochs = 0
        self.position = 0.0
        self.counted = dict.fromkeys(self.completes, 0)
        self.positive_weight: Tensor
        weight = float(positive_weight) if isinstance(positive_weight, (int, float)) else 1.0
        self.register_buffer("positive_weight", torch.full((network.categories,), weight))

    def prepare(self, labels: LabelMatrix) -> None:
        """Called once with the known training labels, before the first epoch; ``self.epochs`` is set."""
        if self.imbalance == "balanced":
            ratio = torch.from_numpy((labels.negatives + 1) / (labels.positives + 1))
            self.positive_weight.copy_(ratio.sqrt().clamp(1, 10))

    def mean_targets(self, labels: LabelMatrix) -> NDArray[np.float64] | None:
        """Mean target (C,) of the entries it begins to learn from; None if these are the known labels.

        A network with a start from the data begins there: one that expects the rate of known labels first has to
        unlearn it when all unknown labels count as absent.
        """
        return None

    def begin_epoch(self, epoch: int, loader: Callable[[], Iterable[Batch]]) -> None:
        """Called before each epoch; ``loader()`` gives all training images in order, without augmentation."""
        self.epoch = epoch
        self.counted = dict.fromkeys(self.completes, 0)

    def in_epochs(self, number: float) -> int:
        """Return a number of epochs, given as such or, between 0 and 1, as a share of all epochs."""
        return round(number * self.epochs) if 0 < number < 1 else int(number)

    def count(self, name: str, chosen: Tensor) -> None:
        """Count the entries of a mask (B, C) that were completed, under a name of :attr:`completes`.

        Every process counts its own images; the log has the sum.
        """
        self.counted[name] += counted(chosen)

    def note(self, epoch: int) -> str:
        """Say in a few words what begins with this epoch; usually nothing."""
        return ""

    def begin_step(self, position: float) -> None:
        """Called before each step; ``position`` is the progress in epochs, e.g. 2.25."""
        self.position = position

    def end_step(self) -> None:
        """Called after each optimiser step."""

    def end_round(self, loader: Callable[[], Iterable[Batch]]) -> None:
        """Called before the weights are reset for the next round; ``loader`` as in :meth:`begin_epoch`."""

    def figures(self) -> dict[str, float]:
        """Return numbers of this epoch for ``log.csv``: what was completed, learned coefficients and so on."""
        return {f"completed_{name}": number for name, number in self.counted.items()}

    def maps(self, batch: Batch) -> Tensor:
        """Grid features (B, D, H, W) of a batch of images or cached activations."""
        self.network.at(batch.index)
        return self.network.from_frozen(batch.images) if batch.frozen else self.network.maps(batch.images)

    def loss(self, logits: Tensor, targets: Targets) -> Tensor:
        """Partial BCE in the chosen form; under ``torchrun`` this process's share of that of the whole batch."""
        weight = None if self.imbalance is None else self.positive_weight
        found = partial_bce(logits, targets, form=self.form, positive_weight=weight, count=mean_share)
        return sum_share(found) if self.form == "image" else found

    def forward(self, batch: Batch) -> dict[str, Tensor]:
        """Batch -> named loss terms."""
        raise NotImplementedError("a method defines forward")


#: stage that a network may lack -> what that means, and what to choose instead
MISSING = {
    "represent": ("a representation per category", "choose network 'ssgrl' or method 'partial_bce'"),
    "classify": ("to be trained step by step", "choose another network, or method 'auto'"),
    "fit": ("to be fitted as a whole", "choose network 'probe'"),
}


def check_stages(method: type[Method], network: type[Network]) -> None:
    """Refuse a method that needs a stage which the network does not have."""
    missing = sorted(method.needs - network.stages)
    if missing:
        meaning, advice = MISSING.get(missing[0], ("", "choose another network"))
        raise StageError(
            f"method {method.__name__} needs stage '{missing[0]}' ({meaning}), "
            f"which network {network.__name__} does not have; {advice}"
        )
