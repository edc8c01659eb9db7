"""The three public stages of a network, and what the rest of the package asks a network about itself."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import ClassVar, Self

import torch
from torch import Tensor, nn

from sarb.errors import ConfigError
from sarb.labels import LabelMatrix
from sarb.networks.backbones.base import Backbone


class Network(nn.Module):
    """images -> ``maps`` (B, D, H, W) -> ``represent`` (B, C, D) -> ``classify`` (B, C).

    A subclass defines :meth:`classify`, :meth:`attention` and, if it has a representation per category,
    :meth:`represent`; a network without one classifies maps. ``from_frozen`` starts behind the frozen part of
    the backbone: a feature cache holds what comes out there.

    No other module knows what is inside a network. They ask, and each question has a default answer:

    * learning rates: ``parts``
    * ``explain``: :attr:`map_kind`, :meth:`values`, :meth:`relations`, :meth:`silence`
    * ``export``: :meth:`for_export`
    * ``fit(init=...)``: ``per_category``, ``from_data``
    * training with blended copies of a batch: :meth:`repeats`

    Attributes:
        stages: the stages it offers.
        parts: prefix of parameter names -> part with a learning rate of its own, set by ``lr.PART``. A prefix
            is made of whole names (``"sam.transform"``), the longest one counts, ``""`` is all the rest.
        per_category: prefixes of learned tensors with one row per category.
        from_data: prefixes of tensors that are counted on the data, not learned.
    """

    stages: ClassVar[frozenset[str]] = frozenset({"maps", "represent", "classify"})
    parts: ClassVar[Mapping[str, str]] = {"backbone": "backbone", "": "head"}
    per_category: ClassVar[tuple[str, ...]] = ()
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
        raise NotImplementedError(f"{type(self).__name__} has no stage 'represent'")

    def classify(self, features: Tensor) -> Tensor:
        """Representations (or maps, for a network without them) -> logits (B, C)."""
        raise NotImplementedError("a network defines classify")

    def attention(self, maps: Tensor) -> Tensor:
        """(B, D, H, W) -> where the network looks for each category (B, C, H, W)."""
        raise NotImplementedError("a network defines attention")

    def initialise(self, labels: LabelMatrix, activations: Callable[[], Iterable[Tensor]]) -> None:
        """Start from the data, if the network has such an option: once, before the first epoch of a fresh
        run.

        ``activations()`` iterates over what the frozen backbone stages make of the training images, (B, c,
        h, w) each.
        """

    def to_classify(self, maps: Tensor) -> Tensor:
        """(B, D, H, W) -> what :meth:`classify` takes: representations (B, C, D), or the maps themselves."""
        return self.represent(maps) if "represent" in self.stages else maps

    def head(self, maps: Tensor) -> Tensor:
        """(B, D, H, W) -> logits (B, C)."""
        return self.classify(self.to_classify(maps))

    def forward(self, images: Tensor) -> Tensor:
        """Images (B, 3, S, S) -> logits (B, C)."""
        return self.head(self.maps(images))

    @classmethod
    def part_of(cls, parameter: str) -> str:
        """Part that a parameter belongs to, by its name within the network."""
        fitting = [prefix for prefix in cls.parts if not prefix or f"{parameter}.".startswith(f"{prefix}.")]
        if not fitting:
            raise ConfigError([f"{cls.__name__}.parts has no prefix that fits the parameter '{parameter}'"])
        return cls.parts[max(fitting, key=len)]

    def repeats(self) -> bool:
        """Whether :meth:`classify` gives an image the same logits every time, whatever else is in the batch.

        If so, copies of a batch share work (``networks/branches.py``); if not, each is classified on its own.
        """
        return False

    @property
    def map_kind(self) -> str:
        """What :meth:`attention` holds: shares of a sum of 1 (``"attention"``), masks between 0 and 1
        (``"mask"``), or class activation maps (``"activation"``).
        """
        return "attention" if "represent" in self.stages else "activation"

    def values(self, maps: Tensor) -> Tensor | None:
        """Return the grid y (B, D, H, W) that the attention a weighs: f_c = Σ_p a_cp y_p.

        None where the maps of :meth:`attention` are themselves what each cell adds to the logit, as class
        activation maps are, or where f is no such sum.
        """
        return None

    def relations(self) -> Tensor | None:
        """Return how much category i listens to category j, (C, C); None if no category moves another one's
        score.
        """
        return None

    def silence(self, features: Tensor, sources: Sequence[int]) -> Tensor:
        """Logits (n, C) of one image: in row i category ``sources[i]`` has nothing to say.

        By default its representation is 0. A network that has :meth:`relations` but no representations says
        here what silent means.

        Args:
            features: of one image, as :meth:`to_classify` gives them.
            sources: n categories.
        """
        if "represent" not in self.stages:
            raise NotImplementedError(f"{type(self).__name__} has relations, so it defines silence")
        copies = features.repeat(len(sources), 1, 1)
        copies[torch.arange(len(sources)), list(sources)] = 0
        return self.classify(copies)

    def for_export(self) -> Self:
        """Return a copy for export: on the CPU, in eval mode, with operators only that exist outside torch.

        A network that cannot be exported raises a :class:`sarb.SarbError` that says why.
        """
        return copy.deepcopy(self).cpu().eval()
