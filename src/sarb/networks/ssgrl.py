"""SSGRL: category representations, a gated graph over co-occurrence, one classifier (Chen et al. 2019)."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from sarb.errors import ConfigError, unknown_name
from sarb.networks.attention import SemanticAttention
from sarb.networks.backbone import Backbone
from sarb.networks.base import Network
from sarb.networks.classifier import ContextClassifier
from sarb.networks.decouple import SemanticDecoupling
from sarb.networks.graph import GatedGraph
from sarb.networks.words import CategoryWords


class SSGRL(Network):
    """backbone → 1×1 convolution to D + batch norm → SD or SAM → gated graph → φ.

    Args:
        backbone: image to map.
        categories: C.
        graph: (C, C) co-occurrence, or None for no edges but the own one.
        words: word vectors and the mask of found ones, for SD.
        csrl: ``"sd"`` (semantic decoupling) or ``"sam"`` (semantic attention).
        dim: D.
        hidden: joint width of SD.
        steps: T of the graph.
        grid: maps larger than this are average-pooled 2×2 (paper: 14×14 at 448 becomes 7×7).
        dropout: in φ (paper: 0).
    """

    per_category: ClassVar[tuple[str, ...]] = ("classifier.category.", "csrl.mask.", "words.learned")
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
        steps: int = 3,
        grid: int = 7,
        dropout: float = 0.0,
    ) -> None:
        super().__init__(backbone, categories)
        if csrl not in ("sd", "sam"):
            raise ConfigError([unknown_name("network.csrl", csrl, ("sd", "sam"))])
        self.grid, self.dim = grid, dim
        self.project = nn.Sequential(nn.Conv2d(backbone.width, dim, 1, bias=False), nn.BatchNorm2d(dim))
        self.csrl: SemanticDecoupling | SemanticAttention
        self.words: CategoryWords | None = None
        if csrl == "sd":
            given, found = words if words is not None else (None, None)
            self.words = CategoryWords(categories, word_dim, given, found)
            self.csrl = SemanticDecoupling(dim, self.words.given.shape[1], hidden)
        else:
            self.csrl = SemanticAttention(dim, categories)
        self.graph = GatedGraph(dim, steps)
        self.classifier = ContextClassifier(categories, dim, dropout)
        self.cooccurrence: Tensor
        self.register_buffer("cooccurrence", torch.eye(categories) if graph is None else graph.float())

    def from_frozen(self, activations: Tensor) -> Tensor:
        """Frozen activations -> projected grid (B, D, H, W), at most ``grid`` wide."""
        maps = super().from_frozen(activations)
        if maps.shape[-1] > self.grid:
            maps = F.avg_pool2d(maps, 2)
        out: Tensor = self.project(maps)
        return out

    def attention(self, maps: Tensor) -> Tensor:
        """(B, D, H, W) -> attention (B, C, H, W)."""
        _, attention = self._attend(maps)
        return attention

    def represent(self, maps: Tensor) -> Tensor:
        """(B, D, H, W) -> (B, C, D)."""
        reps, _ = self._attend(maps)
        return reps

    def _attend(self, maps: Tensor) -> tuple[Tensor, Tensor]:
        found: tuple[Tensor, Tensor] = self.csrl(maps) if self.words is None else self.csrl(maps, self.words())
        return found

    def classify(self, features: Tensor) -> Tensor:
        """Representations (B, C, D) -> logits (B, C)."""
        logits: Tensor = self.classifier(self.graph(features, self.cooccurrence), features)
        return logits
