"""Word vectors inside a network: given ones stay frozen, missing ones are learned."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class CategoryWords(nn.Module):
    """Word vectors (C, W): frozen if given, a learned embedding otherwise.

    Args:
        categories: C.
        dim: W.
        vectors: (C, W) given vectors, or None if there are none.
        found: (C,) mask of the rows of ``vectors`` that are given.
    """

    def __init__(
        self, categories: int, dim: int = 300, vectors: Tensor | None = None, found: Tensor | None = None
    ) -> None:
        super().__init__()
        if vectors is None:
            vectors = torch.zeros(categories, dim)
            found = torch.zeros(categories, dtype=torch.bool)
        if found is None:
            found = torch.ones(categories, dtype=torch.bool)
        # learned rows start with the length of given ones, so that no category dominates
        scale = vectors[found].std().item() if found.any() else 0.4
        self.given: Tensor
        self.found: Tensor
        self.register_buffer("given", torch.where(found[:, None], vectors, 0.0).float())
        self.register_buffer("found", found)
        self.learned = nn.Parameter(
            torch.randn(categories, vectors.shape[1]) * scale, requires_grad=not bool(found.all())
        )

    def forward(self) -> Tensor:
        """-> (C, W)."""
        return torch.where(self.found[:, None], self.given, self.learned)
