"""The plain network: global average pooling and one linear layer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import ClassVar

from torch import Tensor, nn

from sarb.errors import ConfigError, check_choice
from sarb.labels import LabelMatrix
from sarb.networks.backbones.base import Backbone
from sarb.networks.base import Network
from sarb.networks.informed import prior_logits


class Pooled(Network):
    """backbone → global average → dropout → linear. Has no per-category representation.

    With ``boost`` or ``peak`` the linear layer comes first and gives a map per category, which is then pooled.

    Args:
        backbone: image to map.
        categories: C.
        graph: not used; every network takes the same four arguments.
        words: not used.
        dropout: on the pooled vector.
        boost: factor of positive values of the class maps, in training and test (BoostLU: 5; 1 for none).
        peak: weight of the mean of the ``cells`` largest values of a class map, added to its mean (SR-ST: 0.5).
        cells: how many cells count for ``peak``.
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
        boost: float = 1.0,
        peak: float = 0.0,
        cells: int = 5,
        initial: str = "random",
    ) -> None:
        super().__init__(backbone, categories)
        check_choice("network.initial", initial, ("random", "informed"))
        problems = [f"network.boost must be more than 0, got {boost:g}"] if boost <= 0 else []
        problems += [f"network.peak must be at least 0, got {peak:g}"] if peak < 0 else []
        problems += [f"network.cells must be at least 1, got {cells}"] if cells < 1 else []
        if problems:
            raise ConfigError(problems)
        self.initial = initial
        self.boost = boost
        self.peak = peak
        self.cells = cells
        self.dropout = nn.Dropout(dropout)
        self.classifier = nn.Linear(backbone.width, categories)

    def initialise(self, labels: LabelMatrix, activations: Callable[[], Iterable[Tensor]]) -> None:
        """Informed start: predict the known rate of each category."""
        if self.initial == "informed":
            nn.init.zeros_(self.classifier.weight)
            self.expect(prior_logits(labels))

    def expect(self, logits: Tensor) -> None:
        """At an informed start, the bias."""
        if self.initial == "informed":
            self.classifier.bias.data.copy_(logits)

    def classify(self, features: Tensor) -> Tensor:
        """Maps (B, D, H, W) -> logits (B, C)."""
        if self.boost != 1 or self.peak:
            return pool(self.class_maps(self.dropout(features)), self.boost, self.peak, self.cells)
        out: Tensor = self.classifier(self.dropout(features.mean((2, 3))))
        return out

    def class_maps(self, maps: Tensor) -> Tensor:
        """w_c · x_p + b_c (B, C, H, W); their mean over the grid is the plain logit."""
        return self.attention(maps) + self.classifier.bias[:, None, None]

    def attention(self, maps: Tensor) -> Tensor:
        """Class activation maps w_c · x_p (B, C, H, W)."""
        return (self.classifier.weight @ maps.flatten(2)).reshape(maps.shape[0], -1, *maps.shape[2:])


def pool(class_maps: Tensor, boost: float = 1.0, peak: float = 0.0, cells: int = 5) -> Tensor:
    """Class maps m (B, C, H, W) -> logits (B, C): mean of m̂ + peak · mean of the largest cells of m̂.

    m̂ is m with positive values multiplied by ``boost`` (BoostLU, Kim et al. 2023); ``peak`` is α of SR-ST.
    """
    boosted = class_maps.where(class_maps <= 0, boost * class_maps).flatten(2)
    logits = boosted.mean(2)
    if peak:
        logits = logits + peak * boosted.topk(min(cells, boosted.shape[2]), 2).values.mean(2)
    return logits
