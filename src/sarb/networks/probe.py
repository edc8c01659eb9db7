"""The fitted ladder as a network: linear probe, concept evidence, name evidence and neighbours.

With p the averaged map, r = sign(p) √|p|, x = (r − mean) V and q the concept probabilities:

    s_c = w_c·x + b_c + α_c · bayes_c(q) + β_c · name_c(q) + γ_c · neighbours_c(x) + ρ · residual_c(maps)

Nothing is stepped here: :meth:`Probe.load_ladder` copies what :func:`sarb.auto.ladder.fit_ladder` has fitted, and
:meth:`Probe.load_residual` a network that was trained on top. A part whose rung is off has size 0. The options
give the size of every buffer, so a saved model can be built again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from sarb.auto.evidence import FLOOR, TINY, Scale
from sarb.auto.ladder import Ladder
from sarb.auto.neighbours import MARGIN, SAME, TEMPERATURE
from sarb.errors import ConfigError
from sarb.networks.backbones.base import Backbone
from sarb.networks.backbones.given import GivenMaps
from sarb.networks.base import Network
from sarb.registry import NETWORKS, find


class Probe(Network):
    """backbone → average → square root, PCA → linear, plus evidence and neighbours.

    Args:
        backbone: image to map.
        categories: C.
        graph: not used; every network takes the same three.
        words: not used.
        width: features d after PCA.
        concepts: K of the backbone's own classifier; 0 for no concept or name evidence.
        bank: training images M to look for neighbours in; 0 for none.
        neighbours: how many of them count.
        residual: key of the network whose logits are added; empty for none.
        residual_options: keyword options of that network.
    """

    stages: ClassVar[frozenset[str]] = frozenset({"maps", "fit"})
    parts: ClassVar[Mapping[str, str]] = {"backbone": "backbone", "classifier": "classifier"}
    per_category: ClassVar[tuple[str, ...]] = ("classifier.",)
    from_data: ClassVar[tuple[str, ...]] = (
        "mean",
        "components",
        "quarter",
        "bank",
        "bayes",
        "name",
        "tie",
    )

    mean: Tensor
    components: Tensor
    quarter: Tensor
    concept_weight: Tensor
    concept_bias: Tensor
    bayes_ratio: Tensor
    bayes_scale: Tensor
    bayes_weight: Tensor
    ties: Tensor
    name_scale: Tensor
    name_weight: Tensor
    bank: Tensor
    bank_labels: Tensor
    neighbour_weight: Tensor
    residual_weight: Tensor

    def __init__(
        self,
        backbone: Backbone,
        categories: int,
        graph: Tensor | None = None,
        words: tuple[Tensor, Tensor] | None = None,
        *,
        width: int = 384,
        concepts: int = 0,
        bank: int = 0,
        neighbours: int = 50,
        residual: str = "",
        residual_options: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(backbone, categories)
        if not 1 <= neighbours < max(bank, 2) and bank:
            raise ConfigError(
                [f"network.neighbours must be 1 to {bank - 1}, fewer than the bank has, got {neighbours}"]
            )
        self.concepts = concepts
        self.nearest = neighbours
        self.classifier = nn.Linear(width, categories)
        nn.init.zeros_(self.classifier.weight)
        nn.init.zeros_(self.classifier.bias)
        dim = backbone.width
        shapes = {
            "mean": (dim,),
            "components": (dim, width),
            "quarter": (width,),
            "concept_weight": (concepts, dim),
            "concept_bias": (concepts,),
            "bayes_ratio": (categories, concepts),
            "bayes_scale": (2, categories),
            "bayes_weight": (categories,),
            "ties": (categories, concepts),
            "name_scale": (3, 2, categories),
            "name_weight": (categories,),
            "bank": (bank, width),
            "bank_labels": (bank, categories),
            "neighbour_weight": (categories,),
        }
        ones = ("quarter", "bayes_ratio", "bayes_scale", "name_scale")
        for name, shape in shapes.items():
            self.register_buffer(name, torch.ones(shape) if name in ones else torch.zeros(shape))
        self.residual: Network | None = None
        if residual:
            kind = find("network", NETWORKS, residual)
            self.residual = kind(GivenMaps(dim), categories, **(residual_options or {}))
            self.register_buffer("residual_weight", torch.zeros(()))

    @staticmethod
    def sizes(ladder: Ladder, concepts: int) -> dict[str, Any]:
        """Options of the network that holds a ladder; K concepts matter only if one of its rungs uses them."""
        used = ladder.bayes is not None or ladder.names is not None
        return {
            "width": ladder.projection.width,
            "concepts": concepts if used else 0,
            "bank": len(ladder.bank),
            "neighbours": ladder.neighbours or 1,
        }

    @torch.no_grad()
    def load_ladder(self, ladder: Ladder, concept_weight: Tensor | None, concept_bias: Tensor | None) -> None:
        """Copy a fitted ladder and the classifier (K, D), (K,) of the backbone, None where none is used."""
        projection = ladder.projection
        found: dict[str, NDArray[np.float64]] = {
            "mean": projection.mean,
            "components": projection.components,
            "quarter": projection.quarter,
            "bank": ladder.bank,
            "bank_labels": ladder.bank_labels,
            "neighbour_weight": ladder.neighbour_weight,
            "bayes_weight": ladder.bayes_weight,
            "name_weight": ladder.name_weight,
        }
        if ladder.bayes is not None:
            found["bayes_ratio"] = ladder.bayes.ratio[-1]
            found["bayes_scale"] = _stacked(ladder.bayes.scales[-1])
        if ladder.names is not None:
            found["ties"] = ladder.names.ties.astype(np.float64)
            found["name_scale"] = np.stack([_stacked(scale) for scale in ladder.names.scales])
        for name, values in found.items():
            self.get_buffer(name).copy_(torch.from_numpy(np.asarray(values, np.float64)))
        self.classifier.weight.copy_(torch.from_numpy(ladder.weight))
        self.classifier.bias.copy_(torch.from_numpy(ladder.bias))
        if self.concepts and concept_weight is not None and concept_bias is not None:
            self.concept_weight.copy_(concept_weight)
            self.concept_bias.copy_(concept_bias)

    @torch.no_grad()
    def load_residual(self, network: Network, weight: float) -> None:
        """Copy a network that was trained on top of the ladder; its maps come from this network's backbone."""
        assert self.residual is not None
        own = {
            name: value for name, value in network.state_dict().items() if not name.startswith("backbone.")
        }
        self.residual.load_state_dict(own)
        self.residual_weight.fill_(weight)

    def features(self, pooled: Tensor) -> Tensor:
        """Averaged maps (B, D) -> features (B, d)."""
        return (pooled.sign() * pooled.abs().sqrt() - self.mean) @ self.components

    def classify(self, features: Tensor) -> Tensor:
        """Maps (B, D, H, W) -> logits (B, C)."""
        pooled = features.mean((2, 3))
        x = self.features(pooled)
        logits: Tensor = self.classifier(x)
        if self.concepts:
            logits = logits + self._concept_evidence(features, pooled)
        if len(self.bank):
            logits = logits + self.neighbour_weight * self._neighbour_evidence(x)
        if self.residual is not None:
            logits = logits + self.residual_weight * self.residual.head(self.residual.from_frozen(features))
        return logits

    def _concept_evidence(self, maps: Tensor, pooled: Tensor) -> Tensor:
        """α · concept Bayes + β · name evidence, (B, C)."""
        cells = maps.flatten(2).transpose(1, 2)
        each = (cells @ self.concept_weight.T + self.concept_bias).softmax(-1)
        whole = (pooled @ self.concept_weight.T + self.concept_bias).softmax(-1)
        bayes = _standard((whole @ self.bayes_ratio.T + FLOOR).log(), self.bayes_scale)
        largest = (each.amax(1)[:, None] * self.ties).amax(2)
        logs = [(value + TINY).log() for value in (each.mean(1) @ self.ties.T, largest, whole @ self.ties.T)]
        total = sum(_standard(log, scale) for log, scale in zip(logs, self.name_scale, strict=True))
        return self.bayes_weight * bayes + self.name_weight * self.ties.amax(1) * total / 3

    def _neighbour_evidence(self, x: Tensor) -> Tensor:
        """Logit of the mean label of the nearest images of the bank, (B, C); see :mod:`sarb.auto.neighbours`."""
        half = x / self.quarter
        unit = half / half.norm(dim=1, keepdim=True).clamp_min(1e-12)
        similarity = unit @ self.bank.T
        similarity = torch.where(similarity > SAME, -1.0, similarity)
        top, rows = similarity.topk(self.nearest + 1, dim=1)
        powers = ((top - top[:, :1]) / TEMPERATURE).exp()
        raw = powers[:, :-1] - powers[:, -1:] + 1e-6
        weights = raw / raw.sum(1, keepdim=True)
        average = (weights[:, None] @ self.bank_labels[rows[:, :-1]])[:, 0].clamp(MARGIN, 1 - MARGIN)
        return average.log() - (1 - average).log()

    def attention(self, maps: Tensor) -> Tensor:
        """Class activation maps (B, C, H, W) of the linear part: what each location adds to w_c·x.

        r_d is the mean over locations of m_d / √|p_d|, so the mean of the map is w_c·x without its constant
        w_c·(mean V).
        """
        pooled = maps.mean((2, 3))
        scale = pooled.abs().clamp_min(1e-6).sqrt()
        slope = (self.components @ self.classifier.weight.T).T[None] / scale[:, None]
        return (slope @ maps.flatten(2)).reshape(len(maps), -1, *maps.shape[2:])


def _stacked(scale: Scale) -> NDArray[np.float64]:
    return np.stack([scale.mean, scale.std])


def _standard(values: Tensor, scale: Tensor) -> Tensor:
    """Values (B, C) with the mean and standard deviation (2, C) of the training images -> (B, C)."""
    return (values - scale[0]) / scale[1]
