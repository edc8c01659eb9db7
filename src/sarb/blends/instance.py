"""ILRB, instance-level representation blending: use a known positive of another image in the batch."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from sarb.blends.coefficient import add_coefficient, bounded, clamp_
from sarb.labels import Targets


class InstanceBlend(nn.Module):
    """Eq. 3–4, where category c is unknown in image n and present in its partner m; nothing else changes.

        f̂_nc = α f_nc + (1 − α) f_mc        ŷ_nc = 1 − α, with weight ``weight``

    Gradients flow to both representations and, through representation and soft label, to α.

    Args:
        alpha: initial α, between 0.01 and 0.99; it stays in this interval (see ``coefficient.py``).
        learnable: whether α is a parameter or a saved constant.
        coefficients: C for one α per category (the paper's matrix form); None for one α for all.
        detach_label: stop the gradient from the soft label to α.
        weight: of a completed entry in the loss (paper: 1, as for a known one).

    Attributes:
        alpha: () or (C,), the coefficient.
        chosen: (B, C) mask of the entries completed by the last forward.
    """

    alpha: Tensor

    def __init__(
        self,
        alpha: float = 0.5,
        learnable: bool = True,
        coefficients: int | None = None,
        detach_label: bool = False,
        weight: float = 1.0,
    ) -> None:
        super().__init__()
        add_coefficient(self, "alpha", alpha, learnable, coefficients)
        self.detach_label = detach_label
        self.weight = weight
        self.chosen = torch.zeros(0, 0, dtype=torch.bool)

    def forward(
        self,
        reps: Tensor,
        targets: Targets,
        partner: Tensor,
        others: tuple[Tensor, Targets] | None = None,
    ) -> tuple[Tensor, Targets]:
        """Blend representations (B, C, D) and targets (B, C) with those of image ``partner[n]``, (B,).

        A partner is an image of this batch, or one of ``others``, (P, C, D) and (P, C).
        """
        value, weight = targets
        their_reps, theirs = others or (reps, targets)
        partner = partner.to(reps.device)
        chosen = (weight == 0) & theirs.present[partner]
        self.chosen = chosen
        alpha = bounded(self.alpha)
        blended = alpha[..., None] * reps + (1 - alpha[..., None]) * their_reps[partner]
        soft = 1 - (alpha.detach() if self.detach_label else alpha)
        return (
            torch.where(chosen[..., None], blended.to(reps.dtype), reps),
            Targets(
                torch.where(chosen, soft.to(value.dtype), value), weight.masked_fill(chosen, self.weight)
            ),
        )

    @property
    def completed(self) -> Tensor:
        """Number of entries completed by the last forward, ()."""
        return self.chosen.sum()

    def clamp_(self) -> None:
        """Clamp α to its interval; call this after each optimiser step."""
        clamp_(self.alpha)


def random_partner(batch: int, generator: torch.Generator | None = None) -> Tensor:
    """Give each of ``batch`` images another one, (B,): a random permutation without fixed points.

    The images form a circle in random order and each takes its neighbour, so every other image is equally
    likely. A single image gets itself; nothing is blended then, because no entry is both unknown and present.
    """
    order = torch.randperm(batch, generator=generator)
    partner = torch.empty_like(order)
    partner[order] = order.roll(1)
    return partner
