"""A shortcut for training: classify the plain and the blended representations together and share graph work.

The reference is ``network.classify`` on each branch; a test checks that both give the same result. A blend
changes few entries, so most of the work is the same in every branch. Doing it once halves the time of SSGRL's
head. You can skip this file to understand the paper.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from sarb.networks.base import Network
from sarb.networks.graph import GatedGraph, Layers, Products
from sarb.networks.on_top import OnTop, inner_part, offset_part
from sarb.networks.ssgrl import SSGRL


class Branch(NamedTuple):
    """The output of a blend for one batch.

    Args:
        reps: (B, C, D) representations, equal to the plain ones except for the changed entries.
        changed: (B, C) mask of the changed entries.
        one_each: whether at most one category per image has changed.
    """

    reps: Tensor
    changed: Tensor
    one_each: bool = False


class Change(NamedTuple):
    """The images of a branch that differ from the plain ones.

    Args:
        rows: (n,) which images.
        reps: (n, C, D) their representations.
        category: (B,) the only changed category, if every image of the batch has exactly one.
    """

    rows: Tensor
    reps: Tensor
    category: Tensor | None

    @classmethod
    def of(cls, branch: Branch) -> Change:
        """Select the images that have changed."""
        rows = branch.changed.any(1).nonzero()[:, 0]
        if len(rows) < len(branch.reps):
            return cls(rows, branch.reps[rows], None)
        return cls(rows, branch.reps, branch.changed.byte().argmax(1) if branch.one_each else None)


def classify_branches(network: Network, reps: Tensor, branches: Sequence[Branch]) -> list[Tensor]:
    """Logits (B, C) of the plain representations (B, C, D), then of each branch.

    Unchanged images get the plain logits. The changed images of all branches are classified as one batch. On top
    of a fitted model, that is what the inner network does with its channels; each branch has its own offsets.
    """
    if isinstance(network, OnTop):
        inner = [branch._replace(reps=inner_part(branch.reps)) for branch in branches]
        residuals = classify_branches(network.inner, inner_part(reps), inner)
        every = (reps, *(branch.reps for branch in branches))
        return [residual + offset_part(each) for residual, each in zip(residuals, every, strict=True)]
    changes = [Change.of(branch) for branch in branches]
    if not network.repeats():
        copies = [reps.index_copy(0, change.rows, change.reps) for change in changes]
        return [network.classify(each) for each in (reps, *copies)]
    if type(network) is SSGRL and not network.neighbours:  # a subclass may classify differently
        logits = _classify_sharing_first_step(network, reps, changes)
    else:
        logits = network.classify(torch.cat([reps, *(change.reps for change in changes)]))
    plain, *changed = torch.split(logits, [len(reps), *(len(change.rows) for change in changes)])
    news = zip(changes, changed, strict=True)
    return [plain, *(plain.index_copy(0, change.rows, new) for change, new in news)]


def _classify_sharing_first_step(network: SSGRL, reps: Tensor, changes: Sequence[Change]) -> Tensor:
    """Logits of the plain images, followed by those of the changed images."""
    graph = network.graph
    everything = torch.cat([reps, *(change.reps for change in changes)])
    states = everything
    if graph.steps > 0:
        states = graph.update(states, first_products(graph, network.cooccurrence, reps, changes))
        states = graph(states, network.cooccurrence, graph.steps - 1)
    logits: Tensor = network.classifier(states, everything)
    return logits


def first_products(graph: GatedGraph, edges: Tensor, reps: Tensor, changes: Sequence[Change]) -> Products:
    """Products of the first graph step: of the plain images, followed by those of the changed images.

    If every image has changed in one category only, they are computed from the plain ones.
    """
    layers = graph.layers()
    multiplied = [reps, *(change.reps for change in changes if change.category is None)]
    products = graph.products(torch.cat(multiplied), edges, layers)
    split = (torch.split(product, [len(part) for part in multiplied]) for product in products)
    ready = (Products(*pair) for pair in zip(*split, strict=True))
    plain = next(ready)
    parts = [plain]
    for change in changes:
        if change.category is None:
            parts.append(next(ready))
        else:
            image = torch.arange(len(reps), device=reps.device)
            difference = change.reps[image, change.category] - reps[image, change.category]
            parts.append(changed_products(plain, edges, change.category, difference, layers))
    return Products(*(torch.cat(part) for part in zip(*parts, strict=True)))


def changed_products(
    products: Products, edges: Tensor, category: Tensor, difference: Tensor, layers: Layers
) -> Products:
    """Products of states that differ in one category of each image, h + e_c δᵀ.

    A (h + e_c δᵀ) = A h + A_·c δᵀ, and likewise for Aᵀ: a sum of two outer products instead of a matrix
    product.

    Args:
        products: of the unchanged states h.
        edges: A (C, C).
        category: c, (B,).
        difference: δ, (B, D).
        layers: of the graph.
    """
    width = difference.shape[-1]
    image = torch.arange(len(category), device=category.device)
    columns = torch.stack([edges[:, category].T, edges[category]], -1)  # (B, C, 2)
    moved = torch.stack(
        [difference @ layers.message[:, :width].T, difference @ layers.message[:, width:].T], 1
    )
    return Products(
        torch.baddbmm(products.message, columns.to(moved.dtype), moved),
        products.state.index_put((image, category), difference @ layers.state.T, accumulate=True),
    )
