"""The plain network: average the grid, one linear layer."""

from __future__ import annotations

from typing import ClassVar

from torch import Tensor, nn

from sarb.networks.backbone import Backbone
from sarb.networks.base import Network


class Pooled(Network):
    """backbone → global average → dropout → linear. Has no per-category representation.

    Args:
        backbone: image to map.
        categories: C.
        graph: not used; every network takes the same three.
        words: not used.
        dropout: on the pooled vector.
    """

    stages: ClassVar[frozenset[str]] = frozenset({"maps", "classify"})
    per_category: ClassVar[tuple[str, ...]] = ("classifier.",)

    def __init__(
        self,
        backbone: Backbone,
        categories: int,
        graph: Tensor | None = None,
        words: tuple[Tensor, Tensor] | None = None,
        *,
        dropout: float = 0.0,
    ) -> None:
        super().__init__(backbone, categories)
        self.dropout = nn.Dropout(dropout)
        self.classifier = nn.Linear(backbone.width, categories)

    def classify(self, features: Tensor) -> Tensor:
        """Maps (B, D, H, W) -> logits (B, C)."""
        out: Tensor = self.classifier(self.dropout(features.mean((2, 3))))
        return out

    def attention(self, maps: Tensor) -> Tensor:
        """Class activation maps w_c · x_p (B, C, H, W)."""
        return (self.classifier.weight @ maps.flatten(2)).reshape(len(maps), -1, *maps.shape[2:])
