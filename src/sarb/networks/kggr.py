"""KGGR: SSGRL with a second gated graph over the classifiers of the categories (Chen et al. 2020)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, ClassVar

import torch
from torch import Tensor

from sarb.labels import LabelMatrix
from sarb.networks.backbones.base import Backbone
from sarb.networks.graph import MOST_STEPS, GatedGraph
from sarb.networks.ssgrl import SSGRL
from sarb.options import AtLeast, AtMost

#: initial bias of the second graph's update gate at an informed start: σ(−4) = 0.02, so weights change little
CLOSED = -4.0


class KGGR(SSGRL):
    r"""SSGRL up to the contextual feature o_c; its last weights w_c are the nodes of a second gated graph.

        h = G1(f, A)            o_c = tanh(W [h_c , f_c] + b)         (the same as in SSGRL)
        w' = G2(w, A)           logit_c = w'_c · o_c + b_c

    f (B, C, D) are the category representations, A (C, C) the co-occurrence graph, w (C, D) one learned
    weight vector per category, G1 and G2 two :class:`GatedGraph` with separate weights. w' does not
    depend on the image, so G2 runs once per batch.

    There is no public code. We read the paper as follows: both graphs have the same edges A and the same
    width D; the last state of G2 is the classifier itself, without an output layer; w is learned with the rest.
    Few-shot categories, the paper's other topic, get no special treatment.

    Args:
        backbone: image to map.
        categories: C.
        graph: (C, C) co-occurrence, or None for self-edges only.
        words: word vectors and a mask of those that exist, for SD.
        weight_steps: T of the second graph.
        csrl: this and all other options are those of :class:`SSGRL`.
    """

    parts: ClassVar[Mapping[str, str]] = {**SSGRL.parts, "weight_graph": "weight_graph"}

    def __init__(
        self,
        backbone: Backbone,
        categories: int,
        graph: Tensor | None = None,
        words: tuple[Tensor, Tensor] | None = None,
        *,
        weight_steps: Annotated[int, AtLeast(0), AtMost(MOST_STEPS)] = 3,
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
        super().__init__(
            backbone,
            categories,
            graph,
            words,
            csrl=csrl,
            dim=dim,
            hidden=hidden,
            word_dim=word_dim,
            steps=steps,
            neighbours=neighbours,
            grid=grid,
            dropout=dropout,
            normalise=normalise,
            initial=initial,
        )
        self.weight_graph = GatedGraph(dim, weight_steps)

    def initialise(self, labels: LabelMatrix, activations: Callable[[], Iterable[Tensor]]) -> None:
        """Informed start: as SSGRL, with the second graph's update gates almost closed, so that w' ≈ w."""
        super().initialise(labels, activations)
        if self.initial == "informed":
            torch.nn.init.constant_(self.weight_graph.message_update.bias, CLOSED)

    def weights(self) -> Tensor:
        """Return the propagated classifiers w' (C, D)."""
        weights: Tensor = self.weight_graph(self.classifier.category.weight[None], self.edges())[0]
        return weights

    def classify(self, features: Tensor) -> Tensor:
        """Representations (B, C, D) -> logits (B, C)."""
        states = self.graph(features, self.edges())
        context = torch.tanh(self.classifier.join(torch.cat([states, features], -1)))
        scores: Tensor = (self.classifier.dropout(context) * self.weights()).sum(-1)
        return scores + self.classifier.category.bias
