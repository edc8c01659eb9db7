"""The gated graph network that lets categories which occur together inform each other."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from sarb.networks.gates import gated_update
from sarb.networks.sparse_graph import SparseGraph, propagate


class Layers(NamedTuple):
    """Weights of a step: message (3D, 2D) with bias (3D,), state (2D, D)."""

    message: Tensor
    bias: Tensor
    state: Tensor


class Products(NamedTuple):
    """What the matrix products of a step give: message (B, C, 3D) for z, r and h', state (B, C, 2D) for z
    and r.
    """

    message: Tensor
    state: Tensor


class GatedGraph(nn.Module):
    r"""T gated steps over the co-occurrence graph A (C, C); nodes are categories, states have width D.

        a = [A h , Aᵀ h]                          (2D)
        z = σ(W_z a + U_z h)      r = σ(W_r a + U_r h)
        h' = tanh(W_h a + U_h (r ⊙ h))            h ← (1 − z) ⊙ h + z ⊙ h'

    The six matrices are six different layers. A bias on W makes a second one on U redundant.

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

    def forward(self, states: Tensor, graph: Tensor | SparseGraph, first: Products | None = None) -> Tensor:
        """States (B, C, D), graph (C, C) -> states after T steps (B, C, D).

        ``first`` is what :meth:`products` gives for ``states``, where the caller has a cheaper way to it.
        """
        layers = self.layers()
        for step in range(self.steps):
            known = first if step == 0 else None
            message, state = self.products(states, graph, layers) if known is None else known
            states = gated_update(states, message, state, self.state_candidate.weight)
        return states

    def layers(self) -> Layers:
        """Return the layers that read the same input as one: [W_z; W_r; W_h], its bias, and [U_z; U_r]."""
        layers = (self.message_update, self.message_reset, self.message_candidate)
        return Layers(
            torch.cat([layer.weight for layer in layers]),
            torch.cat([layer.bias for layer in layers]),
            torch.cat([self.state_update.weight, self.state_reset.weight]),
        )

    def products(self, states: Tensor, graph: Tensor | SparseGraph, layers: Layers) -> Products:
        """Multiply states (B, C, D) for one step."""
        if isinstance(graph, Tensor):
            message = torch.cat([graph @ states, graph.T @ states], -1)
        else:
            message = torch.cat(propagate(graph, states), -1)
        return Products(F.linear(message, layers.message, layers.bias), F.linear(states, layers.state))

    def changed(
        self, products: Products, graph: Tensor, category: Tensor, change: Tensor, layers: Layers
    ) -> Products:
        """Return the products of states that differ in one category of each image, h + e_c δᵀ.

        A (h + e_c δᵀ) = A h + A_·c δᵀ, and likewise for Aᵀ: a sum of two outer products instead of a matrix
        product.

        Args:
            products: of the unchanged states.
            graph: A (C, C).
            category: c, (B,).
            change: δ, (B, D).
            layers: of this graph.
        """
        width = change.shape[-1]
        image = torch.arange(len(category), device=category.device)
        columns = torch.stack([graph[:, category].T, graph[category]], -1)  # (B, C, 2)
        moved = torch.stack([change @ layers.message[:, :width].T, change @ layers.message[:, width:].T], 1)
        return Products(
            torch.baddbmm(products.message, columns.to(moved.dtype), moved),
            products.state.index_put((image, category), change @ layers.state.T, accumulate=True),
        )
