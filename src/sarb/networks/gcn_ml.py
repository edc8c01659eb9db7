"""GCN-ML: a graph convolution over word vectors makes one classifier per category (Chen et al. 2019)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from sarb.errors import check_choice, check_share
from sarb.labels import LabelMatrix
from sarb.networks.backbones.base import Backbone
from sarb.networks.base import Network
from sarb.networks.informed import prior_logits
from sarb.networks.words import CategoryWords


def correlation(graph: Tensor, threshold: float = 0.4, reweight: float = 0.25) -> Tensor:
    r"""Co-occurrence A_ij = P(j | i) (C, C) -> Â (C, C), the matrix that a graph convolution multiplies with.

        B_ij = [A_ij ≥ τ, i ≠ j]      A'_ij = p B_ij / Σ_k B_ik + [i = j]      Â = D^-½ A' D^-½,  D_ii = Σ_j
        A'_ij

    Rows are normalised, as in the paper's equation 8: category i receives from the categories that are likely
    where i is present, with a total weight of p. A category without neighbours receives from itself only. The
    paper's diagonal is 1−p; ours is 1, as in the authors' code (which normalises columns and transposes at
    the end).
    """
    edges = (graph >= threshold).to(graph.dtype).fill_diagonal_(0)
    weights = reweight * edges / edges.sum(1, keepdim=True).clamp(min=1) + torch.eye(len(graph)).to(graph)
    scale = weights.sum(1).rsqrt()
    return scale[:, None] * weights * scale


class GraphConvolutions(nn.Module):
    """Â · LeakyReLU(Â E W1) · W2 (C, D): classifiers from the word vectors E (C, W) of neighbours.

    The weights start uniform within ±1/√(their output width), as in the authors' code.
    """

    def __init__(self, word_dim: int, hidden: int, dim: int) -> None:
        super().__init__()
        self.first = nn.Linear(word_dim, hidden, bias=False)
        self.second = nn.Linear(hidden, dim, bias=False)
        for layer in (self.first, self.second):
            bound = layer.out_features**-0.5
            nn.init.uniform_(layer.weight, -bound, bound)

    def forward(self, words: Tensor, adjacency: Tensor) -> Tensor:
        """Words (C, W), adjacency Â (C, C) -> nodes (C, D)."""
        hidden = F.leaky_relu(adjacency @ self.first(words), 0.2)
        nodes: Tensor = adjacency @ self.second(hidden)
        return nodes


class NodeClassifier(nn.Module):
    """logit_c = node_c · x + b_c, or without b as in the paper."""

    def __init__(self, categories: int, bias: bool) -> None:
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(categories)) if bias else None

    def forward(self, features: Tensor, nodes: Tensor) -> Tensor:
        """Features (B, D), nodes (C, D) -> logits (B, C)."""
        return F.linear(features, nodes, self.bias)


class GCNML(Network):
    """backbone → global maximum x (D); words → two graph convolutions → nodes (C, D); logit_c = node_c · x.

    D is the width of the backbone. It has no per-category representation: all categories share the vector x.

    Args:
        backbone: image to map.
        categories: C.
        graph: (C, C) co-occurrence P(j | i), or None for self-edges only.
        words: word vectors and a mask of those that exist; missing ones are learned.
        hidden: width between the two convolutions.
        word_dim: width of a word vector.
        threshold: τ, the smallest P(j | i) that makes an edge.
        reweight: p, the total weight of all neighbours; the category itself has weight 1.
        bias: add a learned bias per category (paper: none).
        initial: ``"random"`` (paper), or ``"informed"``: small logits, with the known rates as bias.
    """

    stages: ClassVar[frozenset[str]] = frozenset({"maps", "classify"})
    parts: ClassVar[Mapping[str, str]] = {
        "backbone": "backbone",
        "words": "words",
        "graph": "graph",
        "classifier": "classifier",
    }
    per_category: ClassVar[tuple[str, ...]] = ("classifier.", "words.learned")
    from_data: ClassVar[tuple[str, ...]] = ("adjacency", "words.given", "words.found")

    def __init__(
        self,
        backbone: Backbone,
        categories: int,
        graph: Tensor | None = None,
        words: tuple[Tensor, Tensor] | None = None,
        *,
        hidden: int = 1024,
        word_dim: int = 300,
        threshold: float = 0.4,
        reweight: float = 0.25,
        bias: bool = False,
        initial: str = "random",
    ) -> None:
        super().__init__(backbone, categories)
        check_choice("network.initial", initial, ("random", "informed"))
        check_share("network.threshold", threshold)
        check_share("network.reweight", reweight)
        self.initial = initial
        given, found = words if words is not None else (None, None)
        self.words = CategoryWords(categories, word_dim, given, found)
        self.graph = GraphConvolutions(self.words.given.shape[1], hidden, backbone.width)
        self.classifier = NodeClassifier(categories, bias)
        self.adjacency: Tensor
        counted = torch.eye(categories) if graph is None else graph.float()
        self.register_buffer("adjacency", correlation(counted, threshold, reweight))

    @torch.no_grad()
    def initialise(self, labels: LabelMatrix, activations: Callable[[], Iterable[Tensor]]) -> None:
        """Informed start: logits with a standard deviation of 0.1 on the first batch, known rates as bias."""
        if self.initial == "random":
            return
        features = self.from_frozen(next(iter(activations()))).amax((2, 3))
        self.graph.second.weight.mul_(0.1 / F.linear(features, self.nodes()).std())
        self.expect(prior_logits(labels))

    def expect(self, logits: Tensor) -> None:
        """At an informed start, the bias."""
        if self.initial == "informed" and self.classifier.bias is not None:
            self.classifier.bias.data.copy_(logits)

    def nodes(self) -> Tensor:
        """Return the classifiers of all categories (C, D)."""
        nodes: Tensor = self.graph(self.words(), self.adjacency)
        return nodes

    def classify(self, features: Tensor) -> Tensor:
        """Maps (B, D, H, W) -> logits (B, C)."""
        logits: Tensor = self.classifier(features.amax((2, 3)), self.nodes())
        return logits

    def attention(self, maps: Tensor) -> Tensor:
        """Class activation maps node_c · x_p (B, C, H, W)."""
        return (self.nodes() @ maps.flatten(2)).reshape(len(maps), -1, *maps.shape[2:])

    def relations(self) -> Tensor:
        """Return Â (C, C)."""
        return self.adjacency

    def silence(self, features: Tensor, sources: Sequence[int]) -> Tensor:
        """Maps (1, D, H, W) -> logits (n, C); in row i the word vector of ``sources[i]`` is 0."""
        strongest = features.amax((2, 3))
        rows = []
        for source in sources:
            words = self.words().clone()
            words[source] = 0
            rows.append(self.classifier(strongest, self.graph(words, self.adjacency)))
        return torch.cat(rows)
