"""The gated graph, forward and backward, in the paper's sizes."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from benchmarks.cases.decouple import step
from benchmarks.harness import Case, lazy
from benchmarks.products import repeat_products
from sarb.networks import GatedGraph


class LiteralGraph(nn.Module):
    """The gated graph as printed in the paper: six linear layers per step.

    Args:
        graph: our module, whose weights are shared.
    """

    def __init__(self, graph: GatedGraph) -> None:
        super().__init__()
        self.inner = graph

    def forward(self, states: Tensor, graph: Tensor) -> Tensor:
        """States (B, C, D), graph (C, C) -> states after T steps (B, C, D)."""
        layer = self.inner
        for _ in range(layer.steps):
            message = torch.cat([torch.matmul(graph, states), torch.matmul(graph.t(), states)], 2)
            update = torch.sigmoid(layer.message_update(message) + layer.state_update(states))
            reset = torch.sigmoid(layer.message_reset(message) + layer.state_reset(states))
            candidate = torch.tanh(layer.message_candidate(message) + layer.state_candidate(reset * states))
            states = (1 - update) * states + update * candidate
        return states


def random_graph(categories: int) -> Tensor:
    """Return a random graph (C, C) like a co-occurrence graph: mostly small, largest on the diagonal."""
    return torch.rand(categories, categories).pow(4).fill_diagonal_(1) / math.sqrt(categories)


def cases(quick: bool = False) -> list[Case]:
    """C = 80 and 200."""
    return [_case(2, 5, 16)] if quick else [_case(16, 80), _case(16, 200)]


def _case(batch: int, categories: int, dim: int = 1024) -> Case:
    def build() -> tuple[GatedGraph, LiteralGraph, Tensor, Tensor]:
        torch.manual_seed(0)
        graph = GatedGraph(dim)
        states = torch.randn(batch, categories, dim, requires_grad=True)
        return graph, LiteralGraph(graph), states, random_graph(categories)

    made = lazy(build)

    def ours() -> None:
        step(made()[0], *made()[2:])

    return Case(
        f"graph: gated graph forward+backward, B={batch} C={categories} D={dim} T=3",
        literal=lambda: step(made()[1], *made()[2:]),
        ours=ours,
        floor=repeat_products(lambda: ours),
        note="floor: our matrix products alone",
    )
