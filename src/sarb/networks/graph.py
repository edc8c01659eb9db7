"""The gated graph network that lets categories which occur together inform each other."""

from __future__ import annotations

import torch
from torch import Tensor, nn


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

    def forward(self, states: Tensor, graph: Tensor) -> Tensor:
        """States (B, C, D), graph (C, C) -> states after T steps (B, C, D)."""
        for _ in range(self.steps):
            message = torch.cat([graph @ states, graph.T @ states], -1)
            update = torch.sigmoid(self.message_update(message) + self.state_update(states))
            reset = torch.sigmoid(self.message_reset(message) + self.state_reset(states))
            candidate = torch.tanh(self.message_candidate(message) + self.state_candidate(reset * states))
            states = (1 - update) * states + update * candidate
        return states
