"""PPRB, position-aware prototype blending: a prototype per category and quadrant of the image (DSRB)."""

from __future__ import annotations

import torch
from torch import Tensor

from sarb.blends.prototype import Lots, PrototypeBlend
from sarb.labels import Targets

QUADRANTS = 4


class QuadrantBlend(PrototypeBlend):
    """As :class:`PrototypeBlend`, with a prototype of another quadrant than the one the image looks at.

    A prototype is the mean of the first ``most`` known positives of the category whose peak is in the quadrant; a
    quadrant without any takes the mean of all of them. A category without known positives has no prototypes.

    Args:
        categories: C.
        dim: D.
        beta: initial β.
        learnable: whether β is a parameter or a saved constant.
        most: positives per category and quadrant.
    """

    def __init__(
        self, categories: int, dim: int, beta: float = 0.5, learnable: bool = True, most: int = 100
    ) -> None:
        super().__init__(categories, dim, QUADRANTS, beta, learnable)
        self.most = most
        self._own: Tensor | None = None

    @torch.no_grad()
    def fit_quadrants(self, features: Tensor, owner: Tensor, quadrant: Tensor) -> None:
        """Replace all prototypes.

        Args:
            features: (M, D) representations of known positives.
            owner: (M,) category of each.
            quadrant: (M,) 0 to 3.
        """
        categories, _, dim = self.centers.shape
        cell = owner * QUADRANTS + quadrant
        kept = _number_within(cell) < self.most
        sums = torch.zeros(categories * QUADRANTS, dim, device=features.device)
        sums = sums.index_add(0, cell[kept], features[kept].float()).view(categories, QUADRANTS, dim)
        sizes = cell[kept].bincount(minlength=categories * QUADRANTS).view(categories, QUADRANTS, 1)
        overall = sums.sum(1, keepdim=True) / sizes.sum(1, keepdim=True).clamp(min=1)
        self.centers.copy_(torch.where(sizes > 0, sums / sizes.clamp(min=1), overall))
        self.counts.copy_(QUADRANTS * (sizes.sum((1, 2)) > 0))

    def blend(
        self, reps: Tensor, targets: Targets, quadrant: Tensor, lots: Lots | None = None
    ) -> tuple[Tensor, Targets]:
        """Blend representations (B, C, D) and targets (B, C); ``quadrant`` (B, C) is where each has its peak."""
        self._own = quadrant
        blended = self.forward(reps, targets, lots=lots)
        self._own = None
        return blended

    def _number(self, category: Tensor, shares: Tensor) -> Tensor:
        assert self._own is not None
        own = self._own[torch.arange(len(category), device=category.device), category]
        step = 1 + (shares * (QUADRANTS - 1)).long().clamp(max=QUADRANTS - 2)
        return (own + step) % QUADRANTS


def quadrant_of(strength: Tensor) -> Tensor:
    """2 [row ≥ H/2] + [column ≥ W/2] of the largest cell, (B, C, H, W) -> (B, C)."""
    height, width = strength.shape[2:]
    cell = strength.flatten(2).argmax(2)
    row = torch.div(cell, width, rounding_mode="floor")
    return 2 * (2 * row >= height).long() + (2 * (cell % width) >= width).long()


def _number_within(group: Tensor) -> Tensor:
    """How many earlier entries have the same group (M,), by position."""
    order = group.argsort(stable=True)
    ordered = group[order]
    starts = torch.searchsorted(ordered, ordered)
    number = torch.empty_like(group)
    number[order] = torch.arange(len(group), device=group.device) - starts
    return number
