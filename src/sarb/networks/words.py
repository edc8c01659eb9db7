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
        scale = 0.4
        all_given = False
        if vectors is None:  # no question to a tensor here: it may be on the device "meta", without values
            vectors = torch.zeros(categories, dim)
            found = torch.zeros(categories, dtype=torch.bool)
        else:
            found = torch.ones(categories, dtype=torch.bool) if found is None else found
            all_given = bool(found.all())
            if found.any():  # learned rows start with the length of given ones, so that no category dominates
                scale = vectors[found].std().item()
        self.given: Tensor
        self.found: Tensor
        self.register_buffer("given", torch.where(found[:, None], vectors, 0.0).float())
        self.register_buffer("found", found)
        self.learned = nn.Parameter(
            torch.randn(categories, vectors.shape[1]) * scale, requires_grad=not all_given
        )

    def forward(self) -> Tensor:
        """-> (C, W)."""
        return torch.where(self.found[:, None], self.given, self.learned)
