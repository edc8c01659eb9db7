"""The parts that are measured as N or C grows, each with its sizes and a function that builds its work."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.harness import Work

#: rows of a label matrix, and numbers of categories as in VOC, COCO, Visual Genome, LVIS and beyond
IMAGES = (1_000, 10_000, 100_000, 1_000_000, 10_000_000)
CATEGORIES = (20, 80, 200, 1_000, 3_000, 10_000)
#: sizes for the parts that grow with C: B, D, hidden (a quarter of the paper's) and the grid
BATCH = 8
DIM = 256
HIDDEN = 128
SIDE = 7
#: number of categories for the parts that grow with N
FEW = 20
#: for the parts that grow with C: number of images with labels, and positives per category
SOME_IMAGES = 20_000
POSITIVES = 100
#: edges per category in the sparse graph
NEIGHBOURS = 32


@dataclass(frozen=True)
class Part:
    """A curve.

    Attributes:
        grows: ``"N"`` or ``"C"``.
        sizes: sizes to measure.
        build: returns the work for a size; imports torch only if needed.
    """

    grows: str
    sizes: tuple[int, ...]
    build: Callable[[int], Work]


def _labels(work: str, images: int, categories: int = FEW) -> Work:
    from benchmarks.cases.metrics import random_labels
    from sarb.labels import LabelMatrix

    labels = LabelMatrix(random_labels(images, categories, 0.5), [str(c) for c in range(categories)])
    return {"hide": lambda: labels.hide(0.5), "graph": lambda: labels.cooccurrence(1.0)}[work]


def _metrics(work: str, images: int) -> Work:
    from benchmarks.cases.metrics import random_scores
    from sarb.metrics import average_precision, evaluate

    scores, labels = random_scores(images, FEW)
    return {
        "precision": lambda: average_precision(scores, labels),
        "evaluate": lambda: evaluate(scores, labels),
    }[work]


def _prototypes(categories: int, points: int) -> Work:
    import torch

    from benchmarks.cases.prototypes import LOOKS, features
    from sarb.blends import PrototypeBlend

    data, owner = features(categories, points, DIM, *LOOKS["looks that overlap"])
    blend = PrototypeBlend(categories, DIM)
    return lambda: blend.fit(data, owner, torch.Generator().manual_seed(0))


def _attention(name: str, categories: int) -> Work:
    import torch

    from benchmarks.cases.decouple import step
    from sarb.networks import SemanticAttention, SemanticDecoupling

    maps = torch.randn(BATCH, DIM, SIDE, SIDE, requires_grad=True)
    if name == "sam":
        sam = SemanticAttention(DIM, categories)
        return lambda: step(sam, maps)
    sd = SemanticDecoupling(DIM, 300, HIDDEN)
    words = torch.randn(categories, 300)
    return lambda: step(sd, maps, words)


def _graph(categories: int) -> Work:
    import torch

    from benchmarks.cases.decouple import step
    from benchmarks.cases.graph import random_graph
    from sarb.networks import GatedGraph

    module = GatedGraph(DIM)
    graph = random_graph(categories)
    states = torch.randn(BATCH, categories, DIM, requires_grad=True)
    return lambda: step(module, states, graph)


def _sparse_products(categories: int) -> Work:
    import torch

    from benchmarks.cases.graph import random_graph
    from sarb.networks.sparse_graph import SparseGraph, propagate

    graph = SparseGraph.of(random_graph(categories), NEIGHBOURS)
    states = torch.randn(BATCH, categories, DIM, requires_grad=True)
    return lambda: torch.autograd.grad(sum(part.sum() for part in propagate(graph, states)), states)


def _contrastive(categories: int) -> Work:
    import torch

    from benchmarks.cases.head import partial_labels
    from sarb.losses import contrastive

    reps = torch.randn(BATCH, categories, DIM, requires_grad=True)
    labels = partial_labels(BATCH, categories)
    labels[:2, 0] = 1  # at least one positive pair
    return lambda: torch.autograd.grad(contrastive(reps, labels), reps)


def _head_step(csrl: str, categories: int) -> Work:
    """One training step on random maps: plain, ILRB, PLRB and contrastive terms, backward, Adam."""
    import torch

    from benchmarks.cases.graph import random_graph
    from benchmarks.cases.head import Head, blending, partial_labels
    from sarb.batches.loader import Batch
    from sarb.networks import create_backbone

    network = Head(
        create_backbone("tiny"), categories, random_graph(categories), csrl=csrl, dim=DIM, hidden=HIDDEN
    )
    method = blending(network)
    maps = torch.randn(BATCH, DIM, SIDE, SIDE, requires_grad=True)
    batch = Batch(maps, partial_labels(BATCH, categories), torch.arange(BATCH), frozen=True)
    optimizer = torch.optim.Adam(method.parameters(), lr=1e-4)

    def work() -> None:
        optimizer.zero_grad()
        sum(method(batch).values(), torch.zeros(())).backward()
        optimizer.step()

    return work


PARTS: dict[str, Part] = {
    "hide": Part("N", IMAGES, lambda size: _labels("hide", size)),
    "co-occurrence graph": Part("N", IMAGES, lambda size: _labels("graph", size)),
    "average precision": Part("N", IMAGES, lambda size: _metrics("precision", size)),
    "evaluate": Part("N", IMAGES, lambda size: _metrics("evaluate", size)),
    # ten million positives with D = 256 would need 10 GB for the input alone
    "prototypes, by positives": Part("N", IMAGES[:-1], lambda size: _prototypes(FEW, size // FEW)),
    "SD": Part("C", CATEGORIES, lambda size: _attention("sd", size)),
    "SAM": Part("C", CATEGORIES, lambda size: _attention("sam", size)),
    "gated graph": Part("C", CATEGORIES, _graph),
    f"products of a sparse graph, {NEIGHBOURS} neighbours": Part("C", CATEGORIES, _sparse_products),
    "contrastive": Part("C", CATEGORIES, _contrastive),
    "whole head step, SD": Part("C", CATEGORIES, lambda size: _head_step("sd", size)),
    "whole head step, SAM": Part("C", CATEGORIES, lambda size: _head_step("sam", size)),
    "prototypes, by categories": Part("C", CATEGORIES, lambda size: _prototypes(size, POSITIVES)),
    "co-occurrence, by categories": Part("C", CATEGORIES, lambda size: _labels("graph", SOME_IMAGES, size)),
}
