"""The plain network: global average pooling and one linear layer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import ClassVar

from torch import Tensor, nn

from sarb.errors import check_choice
from sarb.labels import LabelMatrix
from sarb.networks.backbones.base import Backbone
from sarb.networks.base import Network
from sarb.networks.informed import prior_logits


class Pooled(Network):
    """backbone → global average → dropout → linear. Has no per-category representation.

    Args:
        backbone: image to map.
        categories: C.
        graph: not used; every network takes the same four arguments.
        words: not used.
        dropout: on the pooled vector.
        initial: ``"random"``, or ``"informed"``: zero weights, with the known rates as bias.
    """

    stages: ClassVar[frozenset[str]] = frozenset({"maps", "classify"})
    parts: ClassVar[Mapping[str, str]] = {"backbone": "backbone", "classifier": "classifier"}
    per_category: ClassVar[tuple[str, ...]] = ("classifier.",)

    def __init__(
        self,
        backbone: Backbone,
        categories: int,
        graph: Tensor | None = None,
        words: tuple[Tensor, Tensor] | None = None,
        *,
        dropout: float = 0.0,
        initial: str = "random",
    ) -> None:
        super().__init__(backbone, categories)
        check_choice("network.initial", initial, ("random", "informed"))
        self.initial = initial
        self.dropout = nn.Dropout(dropout)
        self.classifier = nn.Linear(backbone.width, categories)

    def initialise(self, labels: LabelMatrix, activations: Callable[[], Iterable[Tensor]]) -> None:
        """Informed start: predict the known rate of each category."""
        if self.initial == "informed":
            nn.init.zeros_(self.classifier.weight)
            self.classifier.bias.data.copy_(prior_logits(labels))

    def classify(self, features: Tensor) -> Tensor:
        """Maps (B, D, H, W) -> logits (B, C)."""
        out: Tensor = self.classifier(self.dropout(features.mean((2, 3))))
        return out

    def attention(self, maps: Tensor) -> Tensor:
        """Class activation maps w_c · x_p (B, C, H, W)."""
        return (self.classifier.weight @ maps.flatten(2)).reshape(len(maps), -1, *maps.shape[2:])
