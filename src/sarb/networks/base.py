"""The base class of networks: three public stages, and the questions other modules ask a network."""

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
    :meth:`represent`; a network without one classifies maps. ``from_frozen`` continues from the output of the
    frozen backbone stages, which is what a feature cache stores.

    Other modules never look inside a network. They ask it, and every answer has a default:

    * learning rates: ``parts``
    * ``explain``: :attr:`map_kind`, :meth:`values`, :meth:`relations`, :meth:`silence`
    * ``export``: :meth:`for_export`
    * ``fit(init=...)``: ``per_category``, ``from_data``
    * training with blended copies of a batch: :meth:`repeats`

    Attributes:
        stages: the stages it offers.
        parts: prefix of parameter names -> part with its own learning rate, set by ``lr.PART``. A prefix
            consists of whole names (``"sam.transform"``), the longest match wins, ``""`` matches the rest.
        per_category: prefixes of learned tensors with one row per category.
        from_data: prefixes of tensors computed from the data, not learned.
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

    @property
    def uses_words(self) -> bool:
        """Whether it holds a vector per category: a given word vector, or else a learned embedding."""
        return getattr(self, "words", None) is not None

    def maps(self, images: Tensor) -> Tensor:
        """Images (B, 3, S, S) -> grid features (B, D, H, W)."""
        return self.from_frozen(self.backbone.frozen(images))

    def from_frozen(self, activations: Tensor) -> Tensor:
        """Output of the frozen backbone stages -> grid features (B, D, H, W)."""
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
        """Initialise weights from the data, if the network can; called once, before the first epoch.

        ``activations()`` iterates over the output of the frozen backbone stages for the training images,
        (B, c, h, w) each.
        """

    def expect(self, logits: Tensor) -> None:
        """Begin at these mean logits (C,), if the network has a start from the data that sets them."""

    def at(self, index: Tensor) -> None:
        """Called in training before each batch with the positions (B,) of its images in the training set.

        Most networks look at images only. One that adds to the scores of a fitted model needs to know which.
        """

    def start_at_zero(self) -> None:
        """Make all logits exactly 0 until the first step, so that the network can learn a residual."""
        raise ConfigError([f"network {type(self).__name__} cannot learn a residual: it has no start at zero"])

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
        """Return the part that a parameter belongs to; ``parameter`` is its name within the network."""
        fitting = [prefix for prefix in cls.parts if not prefix or f"{parameter}.".startswith(f"{prefix}.")]
        if not fitting:
            raise ConfigError([f"{cls.__name__}.parts has no prefix for the parameter '{parameter}'"])
        return cls.parts[max(fitting, key=len)]

    def repeats(self) -> bool:
        """Whether :meth:`classify` gives an image the same logits every time, whatever else is in the batch.

        If so, the branches of SARB share work (``networks/branches.py``); if not, each is classified alone.
        """
        return False

    @property
    def map_kind(self) -> str:
        """What :meth:`attention` returns.

        ``"attention"``: weights that sum to 1; ``"mask"``: masks between 0 and 1; ``"activation"``: class
        activation maps.
        """
        return "attention" if "represent" in self.stages else "activation"

    def values(self, maps: Tensor) -> Tensor | None:
        """Return the grid y (B, D, H, W) that the attention a averages: f_c = Σ_p a_cp y_p.

        None if f is not such a sum, or if :meth:`attention` already is what each cell adds to the logit, as
        with class activation maps.
        """
        return None

    def relations(self) -> Tensor | None:
        """Return how strongly category i depends on category j, (C, C), or None if it does not."""
        return None

    def silence(self, features: Tensor, sources: Sequence[int]) -> Tensor:
        """Logits (n, C) of one image; row i has category ``sources[i]`` switched off.

        By default its representation is set to 0. A network with :meth:`relations` but without
        representations overrides this.

        Args:
            features: of one image, as :meth:`to_classify` gives them.
            sources: n categories.
        """
        if "represent" not in self.stages:
            raise NotImplementedError(f"{type(self).__name__} has relations, so it must define silence")
        copies = features.repeat(len(sources), 1, 1)
        copies[torch.arange(len(sources)), list(sources)] = 0
        return self.classify(copies)

    def for_export(self) -> Self:
        """Return a copy for export: on the CPU, in eval mode, with exportable operators only.

        A network that cannot be exported raises a :class:`sarb.SarbError` that says why.
        """
        return copy.deepcopy(self).cpu().eval()
