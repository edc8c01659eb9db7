"""The gated graph network: categories that occur together exchange information."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from sarb.networks.gates import gated_update
from sarb.networks.sparse_graph import SparseGraph, propagate

#: steps after which all categories have long told each other everything
MOST_STEPS = 100


class Layers(NamedTuple):
    """Weights of a step: message (3D, 2D) with bias (3D,), state (2D, D)."""

    message: Tensor
    bias: Tensor
    state: Tensor


class Products(NamedTuple):
    """Matrix products of a step: message (B, C, 3D) for z, r and h', state (B, C, 2D) for z and r."""

    message: Tensor
    state: Tensor


class GatedGraph(nn.Module):
    r"""T gated steps over the co-occurrence graph A (C, C); nodes are categories, states have width D.

        a = [A h , Aᵀ h]                          (2D)
        z = σ(W_z a + U_z h)      r = σ(W_r a + U_r h)
        h' = tanh(W_h a + U_h (r ⊙ h))            h ← (1 − z) ⊙ h + z ⊙ h'

    The six matrices are six separate layers. W has a bias, so U needs none.

    Args:
        dim: D.
        steps: T.
    """

    def __init__(self, dim: int, steps: int = 3) -> None:
        super().__init__()
        self.steps = steps
        self.message_update = nn.Linear(2 * dim, dim)
        self.state_update = nn.Linear(dim, dim, bias=False)
        self.message_reset = nn.Linear(2 * dim, dim)
        self.state_reset = nn.Linear(dim, dim, bias=False)
        self.message_candidate = nn.Linear(2 * dim, dim)
        self.state_candidate = nn.Linear(dim, dim, bias=False)

    def forward(self, states: Tensor, graph: Tensor | SparseGraph, steps: int | None = None) -> Tensor:
        """States (B, C, D), graph (C, C) -> states (B, C, D) after ``steps`` steps, by default T."""
        layers = self.layers()
        for _ in range(self.steps if steps is None else steps):
            states = self.update(states, self.products(states, graph, layers))
        return states

    def update(self, states: Tensor, products: Products) -> Tensor:
        """States (B, C, D) and their products -> states after one step (B, C, D)."""
        return gated_update(states, products.message, products.state, self.state_candidate.weight)

    def layers(self) -> Layers:
        """Stack the layers with the same input: [W_z; W_r; W_h], its bias, and [U_z; U_r]."""
        layers = (self.message_update, self.message_reset, self.message_candidate)
        return Layers(
            torch.cat([layer.weight for layer in layers]),
            torch.cat([layer.bias for layer in layers]),
            torch.cat([self.state_update.weight, self.state_reset.weight]),
        )

    def products(self, states: Tensor, graph: Tensor | SparseGraph, layers: Layers) -> Products:
        """Matrix products of states (B, C, D) for one step."""
        if isinstance(graph, Tensor):
            message = torch.cat([graph @ states, graph.T @ states], -1)
        else:
            message = torch.cat(propagate(graph, states), -1)
        return Products(F.linear(message, layers.message, layers.bias), F.linear(states, layers.state))
