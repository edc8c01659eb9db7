"""SSGRL: category representations, a gated graph over co-occurrence, one classifier (Chen et al. 2019)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, ClassVar, Self

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from sarb.errors import ConfigError, check_choice
from sarb.labels import LabelMatrix
from sarb.networks.attention import SemanticAttention
from sarb.networks.backbones.base import Backbone
from sarb.networks.base import Network
from sarb.networks.classifier import ContextClassifier
from sarb.networks.decouple import SemanticDecoupling
from sarb.networks.graph import MOST_STEPS, GatedGraph
from sarb.networks.informed import prior_logits, start_join, start_projection
from sarb.networks.sparse_graph import SparseGraph
from sarb.networks.words import CategoryWords
from sarb.options import AtLeast, AtMost


class SSGRL(Network):
    """backbone → 1×1 convolution to D + batch norm → SD or SAM → gated graph → φ.

    Args:
        backbone: image to map.
        categories: C.
        graph: (C, C) co-occurrence, or None for self-edges only.
        words: word vectors and a mask of those that exist, for SD.
        csrl: ``"sd"`` (semantic decoupling) or ``"sam"`` (semantic attention).
        dim: D.
        hidden: joint width of SD.
        steps: T of the graph.
        neighbours: 0 uses the whole graph; k keeps the k strongest edges of each category and approximates
            the rest, for thousands of categories (see ``networks/sparse_graph.py``).
        grid: larger maps are average-pooled 2×2 (paper: 14×14 at 448 pixels becomes 7×7).
        dropout: in φ (paper: 0).
        normalise: scale SAM's sum like an average (paper: plain sum).
        initial: ``"random"`` (paper) or ``"informed"``, see ``networks/informed.py``.
    """

    # Layers shared by all categories need a smaller step than per-category weights. So the classifier's
    # shared layer is a separate part, and SAM's transform belongs to the projection.
    parts: ClassVar[Mapping[str, str]] = {
        "backbone": "backbone",
        "project": "project",
        "words": "words",
        "sd": "sd",
        "sam": "sam",
        "sam.transform": "project",
        "graph": "graph",
        "classifier": "classifier",
        "classifier.join": "join",
    }
    per_category: ClassVar[tuple[str, ...]] = ("classifier.category.", "sam.mask.", "words.learned")
    from_data: ClassVar[tuple[str, ...]] = ("cooccurrence", "words.given", "words.found")

    def __init__(
        self,
        backbone: Backbone,
        categories: int,
        graph: Tensor | None = None,
        words: tuple[Tensor, Tensor] | None = None,
        *,
        csrl: str = "sd",
        dim: int = 1024,
        hidden: int = 512,
        word_dim: int = 300,
        steps: Annotated[int, AtLeast(0), AtMost(MOST_STEPS)] = 3,
        neighbours: int = 0,
        grid: Annotated[int, AtLeast(1)] = 7,
        dropout: float = 0.0,
        normalise: bool = False,
        initial: str = "random",
    ) -> None:
        super().__init__(backbone, categories)
        check_choice("network.csrl", csrl, ("sd", "sam"))
        check_choice("network.initial", initial, ("random", "informed"))
        self.initial = initial
        if neighbours < 0:
            raise ConfigError([f"network.neighbours must be at least 0, got {neighbours}"])
        self.grid = grid
        self.dim = dim
        self.neighbours = neighbours
        self.project = nn.Sequential(nn.Conv2d(backbone.width, dim, 1, bias=False), nn.BatchNorm2d(dim))
        self.sd: SemanticDecoupling | None = None
        self.sam: SemanticAttention | None = None
        self.words: CategoryWords | None = None
        if csrl == "sd":
            given, found = words if words is not None else (None, None)
            self.words = CategoryWords(categories, word_dim, given, found)
            self.sd = SemanticDecoupling(dim, self.words.given.shape[1], hidden)
        else:
            self.sam = SemanticAttention(dim, categories, normalise)
        self.graph = GatedGraph(dim, steps)
        self.classifier = ContextClassifier(categories, dim, dropout)
        self.cooccurrence: Tensor
        self.register_buffer("cooccurrence", torch.eye(categories) if graph is None else graph.float())
        self._sparse: tuple[Tensor, int, SparseGraph] | None = None

    def initialise(self, labels: LabelMatrix, activations: Callable[[], Iterable[Tensor]]) -> None:
        """Informed start: a linear classifier on the whitened, averaged map, with the known rates as bias."""
        if self.initial == "random":
            return
        convolution = self.project[0]
        assert isinstance(convolution, nn.Conv2d)
        start_projection(convolution, lambda: (self._pooled(batch) for batch in activations()))
        start_join(self.classifier.join, scale=2.0)
        dim = self.dim
        with torch.no_grad():
            self.classifier.category.weight.normal_(std=0.1 / dim**0.5)
            self.expect(prior_logits(labels))
            if self.sd is not None and self.words is not None:
                self.sd.score.weight.normal_(std=0.1 / self.sd.score.in_features**0.5)
                self.sd.word.weight.div_(self.words().std())
            if self.sam is not None:
                self.sam.mask.weight.normal_(std=0.1 / dim**0.5)
                nn.init.dirac_(self.sam.transform.weight)
                self.sam.transform.bias.zero_()  # type: ignore[union-attr]

    def expect(self, logits: Tensor) -> None:
        """At an informed start, the bias of each category."""
        if self.initial == "informed":
            self.classifier.category.bias.data.copy_(logits)

    @torch.no_grad()
    def start_at_zero(self) -> None:
        """Set the last layer to 0; what is below it keeps its start and learns as soon as that layer moves."""
        self.classifier.category.weight.zero_()
        self.classifier.category.bias.zero_()

    def from_frozen(self, activations: Tensor) -> Tensor:
        """Frozen activations -> projected grid (B, D, H, W), at most ``grid`` wide."""
        out: Tensor = self.project(self._pooled(activations))
        return out

    def _pooled(self, activations: Tensor) -> Tensor:
        """Frozen activations -> the backbone's map, average-pooled 2×2 if it is larger than ``grid``."""
        maps = super().from_frozen(activations)
        return F.avg_pool2d(maps, 2) if maps.shape[-1] > self.grid else maps

    def attention(self, maps: Tensor) -> Tensor:
        """(B, D, H, W) -> attention (B, C, H, W)."""
        _, attention = self._attend(maps)
        return attention

    def represent(self, maps: Tensor) -> Tensor:
        """(B, D, H, W) -> (B, C, D)."""
        reps, _ = self._attend(maps)
        return reps

    def _attend(self, maps: Tensor) -> tuple[Tensor, Tensor]:
        """(B, D, H, W) -> representations (B, C, D) and where they come from (B, C, H, W)."""
        if self.sam is not None:
            attended: tuple[Tensor, Tensor] = self.sam(maps)
        else:
            assert self.sd is not None and self.words is not None
            attended = self.sd(maps, self.words())
        return attended

    def edges(self) -> Tensor | SparseGraph:
        """Return the graph A (C, C), or its strongest edges, computed again when A changes."""
        if not self.neighbours or torch.compiler.is_compiling():  # an exported model uses the whole graph
            return self.cooccurrence
        whole = self.cooccurrence
        version = self.cooccurrence._version
        if self._sparse is None or self._sparse[0] is not whole or self._sparse[1] != version:
            self._sparse = whole, version, SparseGraph.of(whole, self.neighbours)
        return self._sparse[2]

    def classify(self, features: Tensor) -> Tensor:
        """Representations (B, C, D) -> logits (B, C)."""
        logits: Tensor = self.classifier(self.graph(features, self.edges()), features)
        return logits

    @property
    def map_kind(self) -> str:
        """``"attention"`` for SD, ``"mask"`` for SAM."""
        return "attention" if self.sam is None else "mask"

    def values(self, maps: Tensor) -> Tensor:
        """Return what is averaged: the grid for SD, its transform for SAM."""
        return maps if self.sam is None else self.sam.values(maps)

    def relations(self) -> Tensor:
        """Return the co-occurrence graph (C, C).

        Silencing category j sets f_j = 0, so j contributes nothing to A h and Aᵀ h. With one graph step that
        is all that changes for the other categories.
        """
        return self.cooccurrence

    def for_export(self) -> Self:
        """Return a copy with a dense graph; the sparse product has no ONNX operator."""
        network = super().for_export()
        edges = network.edges()
        if isinstance(edges, SparseGraph):
            network.cooccurrence = edges.times(torch.eye(network.categories)[None])[0]
            network.neighbours = 0
        return network

    def repeats(self) -> bool:
        """True unless dropout is active."""
        return not (self.training and self.classifier.dropout.p > 0)
