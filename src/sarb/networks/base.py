"""The three public stages of a network, and what a network can do."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor, nn

from sarb.labels import LabelMatrix
from sarb.networks.backbones.base import Backbone


class Change(NamedTuple):
    """Representations of some images of a batch, changed.

    Args:
        rows: (n,) which images.
        reps: (n, C, D) their changed representations.
        category: (n,) the one category in which each differs, None where it may be several.
    """

    rows: Tensor
    reps: Tensor
    category: Tensor | None = None


class Network(nn.Module):
    """images -> ``maps`` (B, D, H, W) -> ``represent`` (B, C, D) -> ``classify`` (B, C).

    A subclass names the stages it offers. One without a per-category representation leaves ``represent`` out
    and classifies maps; :meth:`head` hides the difference. ``from_frozen`` enters behind the frozen part of
    the backbone, which is where a feature cache stands in for the images.
    """

    stages: ClassVar[frozenset[str]] = frozenset({"maps", "represent", "classify"})
    #: prefixes of learned tensors with one row per category
    per_category: ClassVar[tuple[str, ...]] = ()
    #: prefixes of tensors that come from the data, not from learning
    from_data: ClassVar[tuple[str, ...]] = ()

    def __init__(self, backbone: Backbone, categories: int) -> None:
        super().__init__()
        self.backbone = backbone
        self.categories = categories
        self.dim = backbone.width

    def maps(self, images: Tensor) -> Tensor:
        """Images (B, 3, S, S) -> grid features (B, D, H, W)."""
        return self.from_frozen(self.backbone.frozen(images))

    def from_frozen(self, activations: Tensor) -> Tensor:
        """What the frozen backbone stages gave -> grid features (B, D, H, W)."""
        out: Tensor = self.backbone.trained(activations)
        return out

    def represent(self, maps: Tensor) -> Tensor:
        """(B, D, H, W) -> (B, C, D)."""
        raise AssertionError(f"{type(self).__name__} has no stage 'represent'")

    def classify(self, features: Tensor) -> Tensor:
        """Representations (or maps, for a network without them) -> logits (B, C)."""
        raise AssertionError("a network defines classify")

    def classify_all(self, reps: Tensor, changes: Sequence[Change]) -> list[Tensor]:
        """Classify a batch and changed copies of it as **one** batch: logits (B, C) of the plain one and of
        each copy.

        An image that a change leaves as it is has the plain logits; only what is new is computed. That is
        the same as classifying every copy by itself as long as :meth:`classify` works image by image without
        chance; a network with dropout there must override :meth:`repeats`.
        """
        if not self.repeats():
            return [
                self.classify(each) for each in (reps, *(reps.index_copy(0, c.rows, c.reps) for c in changes))
            ]
        sizes = [len(reps), *(len(change.rows) for change in changes)]
        plain, *changed = torch.split(self._classify_changed(reps, changes), sizes)
        copies = zip(changes, changed, strict=True)
        return [plain, *(plain.index_copy(0, change.rows, logits) for change, logits in copies)]

    def repeats(self) -> bool:
        """Whether :meth:`classify` gives an image the same logits every time, whatever else is in the
        batch.
        """
        return True

    def _classify_changed(self, reps: Tensor, changes: Sequence[Change]) -> Tensor:
        """Logits of ``reps`` and of all changed representations, one after the other."""
        return self.classify(torch.cat([reps, *(change.reps for change in changes)]))

    def attention(self, maps: Tensor) -> Tensor:
        """(B, D, H, W) -> where the network looks for each category (B, C, H, W)."""
        raise AssertionError("a network defines attention")

    def initialise(self, labels: LabelMatrix, activations: Callable[[], Iterable[Tensor]]) -> None:
        """Start from the data, if the network has such an option: once, before the first epoch of a fresh
        run.

        ``activations()`` iterates over what the frozen backbone stages make of the training images, (B, c,
        h, w) each.
        """

    def head(self, maps: Tensor) -> Tensor:
        """(B, D, H, W) -> logits (B, C)."""
        return self.classify(self.represent(maps) if "represent" in self.stages else maps)

    def forward(self, images: Tensor) -> Tensor:
        """Images (B, 3, S, S) -> logits (B, C)."""
        return self.head(self.maps(images))
