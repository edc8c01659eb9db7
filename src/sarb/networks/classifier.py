"""The classifier shared by the plain, ILRB and PLRB branches."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn


class CategoryLinear(nn.Module):
    """One weight vector and bias per category: logit_c = w_c · f_c + b_c.

    Args:
        categories: C.
        dim: D.
    """

    def __init__(self, categories: int, dim: int) -> None:
        super().__init__()
        bound = 1 / math.sqrt(dim)
        self.weight = nn.Parameter(torch.empty(categories, dim).uniform_(-bound, bound))
        self.bias = nn.Parameter(torch.zeros(categories))

    def forward(self, features: Tensor) -> Tensor:
        """(B, C, D) -> (B, C)."""
        return (features * self.weight).sum(-1) + self.bias


class ContextClassifier(nn.Module):
    """φ of the paper: tanh(Linear(2D→D)([h_T , f])), then one weight vector and bias per category.

    Args:
        categories: C.
        dim: D.
        dropout: on the hidden layer, in training (paper: 0).
    """

    def __init__(self, categories: int, dim: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.join = nn.Linear(2 * dim, dim)
        self.dropout = nn.Dropout(dropout)
        self.category = CategoryLinear(categories, dim)

    def forward(self, states: Tensor, reps: Tensor) -> Tensor:
        """States h_T and representations f, both (B, C, D) -> logits (B, C)."""
        hidden = torch.tanh(self.join(torch.cat([states, reps], -1)))
        out: Tensor = self.category(self.dropout(hidden))
        return out
