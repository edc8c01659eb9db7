"""The blending coefficients α and β: learnable or fixed, one for all categories or one for each.

The coefficient is stored directly and clamped, not as the logit of a sigmoid. It then starts exactly at the
given value, its learning rate is the change of α per step (a sigmoid divides it by four or more), and the
saved state shows the value itself.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from sarb.errors import ConfigError

#: α and β stay in [EPSILON, 1 − EPSILON]. At 1 a blend would contain nothing of the partner, and its target
#: 1−α = 0 would be a negative; at 0 it would contain nothing of the image itself.
EPSILON = 0.01


def add_coefficient(module: nn.Module, name: str, start: float, learnable: bool, count: int | None) -> None:
    """Register ``module.name``, () or (count,): a parameter if learnable, else a buffer with the same key."""
    if not EPSILON <= start <= 1 - EPSILON:
        raise ConfigError([f"{name} must lie between {EPSILON} and {1 - EPSILON}, got {start}"])
    value = torch.full(() if count is None else (count,), float(start))
    if learnable:
        module.register_parameter(name, nn.Parameter(value))
    else:
        module.register_buffer(name, value)


def bounded(coefficient: Tensor) -> Tensor:
    """Return the clamped coefficient, with the gradient of the identity.

    A plain clamp has no gradient outside the interval, so one step too far would freeze the coefficient.
    """
    return coefficient + (coefficient.clamp(EPSILON, 1 - EPSILON) - coefficient).detach()


@torch.no_grad()
def clamp_(coefficient: Tensor) -> None:
    """Clamp the stored coefficient to its interval; call this after each optimiser step."""
    coefficient.clamp_(EPSILON, 1 - EPSILON)
