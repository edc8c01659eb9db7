"""A sparse co-occurrence graph for thousands of categories: the strongest edges plus a rank-one rest."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

#: rounds of alternating least squares; few are enough, because the rest is close to rank one
ROUNDS = 10


class Edges(NamedTuple):
    """A sparse matrix S (C, C) by rows: columns ``ends``, ``values``; row i starts at ``starts[i]``."""

    ends: Tensor
    values: Tensor
    starts: Tensor

    @classmethod
    def of(cls, matrix: Tensor, kept: Tensor) -> Edges:
        """Take the entries of a matrix where ``kept`` (C, C) is true, including zeros."""
        return cls(kept.nonzero()[:, 1], matrix[kept], F.pad(kept.sum(1).cumsum(0)[:-1], (1, 0)))

    def times(self, states: Tensor) -> Tensor:
        """S h of states (B, C, D): weighted sums of rows, one image at a time to fit the cache."""
        first = torch.arange(len(states), device=states.device)[:, None]
        ends = (self.ends + first * states.shape[1]).flatten()
        starts = (self.starts + first * len(self.ends)).flatten()
        values = self.values.repeat(len(states))
        rows = states.reshape(-1, states.shape[2])
        return F.embedding_bag(ends, rows, starts, mode="sum", per_sample_weights=values).view_as(states)


class SparseGraph(NamedTuple):
    """A ≈ S + r cᵀ: ``edges`` S, ``turned`` Sᵀ, ``row`` r (C,), ``column`` c (C,)."""

    edges: Edges
    turned: Edges
    row: Tensor
    column: Tensor

    @classmethod
    @torch.no_grad()
    def of(cls, graph: Tensor, neighbours: int) -> SparseGraph:
        """Keep the diagonal and the ``neighbours`` strongest other entries of each row of A (C, C).

        All other entries are replaced by r_i c_j, their least-squares fit. If all labels are known, the
        smoothed entry of a pair that never occurred is κ π_j / (d_i + κ), which **is** such a product. Then
        nothing is lost as long as each category occurs with at most ``neighbours`` others. Otherwise this is
        an approximation.
        """
        own = torch.eye(len(graph), dtype=torch.bool, device=graph.device)
        strongest = graph.masked_fill(own, -torch.inf).topk(min(neighbours, len(graph) - 1), 1).indices
        kept = own.scatter(1, strongest, True)
        rest = graph.masked_fill(kept, 0)
        free = (~kept).to(graph.dtype)
        column = rest.sum(0) / free.sum(0).clamp_min(1)
        tiny = torch.finfo(graph.dtype).tiny
        row = torch.zeros_like(column)
        for _ in range(ROUNDS):
            row = rest @ column / (free @ column.square()).clamp_min(tiny)
            column = rest.T @ row / (free.T @ row.square()).clamp_min(tiny)
        edges = graph - torch.outer(row, column)
        return cls(Edges.of(edges, kept), Edges.of(edges.T, kept.T), row, column)

    def times(self, states: Tensor) -> Tensor:
        """A h of (B, C, D)."""
        return self.edges.times(states).addcmul_(self.row[:, None], (self.column @ states)[:, None])

    def turned_times(self, states: Tensor) -> Tensor:
        """Aᵀ h of (B, C, D)."""
        return self.turned.times(states).addcmul_(self.column[:, None], (self.row @ states)[:, None])


def propagate(graph: SparseGraph, states: Tensor) -> tuple[Tensor, Tensor]:
    """A h and Aᵀ h of states h (B, C, D), each (B, C, D); the cost is B · D · C · neighbours."""
    out, back = _Propagate.apply(states, graph)  # type: ignore[no-untyped-call]
    return out, back


class _Propagate(torch.autograd.Function):
    """A is constant, so the gradient is the same product with A and Aᵀ swapped: Aᵀ g + A g'."""

    @staticmethod
    def forward(context: Any, states: Tensor, graph: SparseGraph) -> tuple[Tensor, Tensor]:
        context.graph = graph
        given = states.dtype
        states = states.to(graph.row.dtype)
        return graph.times(states).to(given), graph.turned_times(states).to(given)

    @staticmethod
    def backward(context: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        graph: SparseGraph = context.graph
        out, back = (gradient.to(graph.row.dtype) for gradient in gradients)
        return graph.turned_times(out).add_(graph.times(back)).to(gradients[0].dtype), None
