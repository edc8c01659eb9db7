"""A bank of the newest known positives per category: what SST compares an unknown label with."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize


class Bank(nn.Module):
    """The newest ``size`` representations of known positives per category, first in, first out.

    Only filled places count: an empty bank has no similarity, and a half-full one is not dragged towards 0.

    Args:
        categories: C.
        dim: D, width of a representation.
        size: places per category.

    Attributes:
        places: (C, size, D) unit vectors, saved.
        seen: (C,) how many were added so far, saved.
    """

    places: Tensor
    seen: Tensor

    def __init__(self, categories: int, dim: int, size: int = 100) -> None:
        super().__init__()
        self.register_buffer("places", torch.zeros(categories, size, dim))
        self.register_buffer("seen", torch.zeros(categories, dtype=torch.long))

    @torch.no_grad()
    def add(self, features: Tensor, owner: Tensor) -> None:
        """Add representations (M, D) of categories (M,), the oldest first."""
        categories, size, _ = self.places.shape
        member = owner[:, None] == torch.arange(categories, device=owner.device)
        number = member.cumsum(0).gather(1, owner[:, None])[:, 0] - 1  # among those of its category
        counts = member.sum(0)
        newest = number >= counts[owner] - size
        place = (self.seen[owner] + number) % size
        units = normalize(features.float(), dim=1)
        self.places[owner[newest], place[newest]] = units[newest]
        self.seen += counts

    def similarity(self, reps: Tensor) -> tuple[Tensor, Tensor]:
        """Mean cosine (B, C) of representations (B, C, D) to the bank, and which categories have any (C,)."""
        filled = self.seen.clamp(max=self.places.shape[1])
        mean = self.places.sum(1) / filled.clamp(min=1)[:, None]  # empty places are 0
        return (normalize(reps.float(), dim=2) * mean).sum(2), filled > 0
