"""Position-wise mixing of whole images or whole maps (Zhang et al. 2018): the blend of IP-Mixup and FM-Mixup.

They differ only in what they mix: pixels (B, 3, S, S) or grid features (B, D, H, W). Unlike ILRB and PLRB,
this blend returns no targets. A mixed image has two sets of labels, each with its own unknown entries and its
own share in the loss; the average of −1, 0 and +1 would mean nothing.
"""

from __future__ import annotations

import torch
from torch import Tensor

from sarb.blends.instance import random_partner


def draw_mixing(batch: int, concentration: float) -> tuple[Tensor, Tensor]:
    """Draw λ ~ Beta(a, a), (), one for the whole batch, and a partner for each image, (B,).

    A single image is not mixed: λ = 1. Uses torch's global CPU generator.
    """
    parameter = torch.tensor(float(concentration))
    share = torch.distributions.Beta(parameter, parameter).sample()
    return torch.ones(()) if batch == 1 else share, random_partner(batch)


def mix(x: Tensor, share: Tensor, partner: Tensor) -> Tensor:
    """x̂_n = λ x_n + (1 − λ) x_m at every position, where m is ``partner[n]``; x has any shape (B, …)."""
    return torch.lerp(x[partner], x, share.to(x.dtype))
