"""Two losses on similarities s of known labels, from HST: a learned threshold, and prototypes that attract."""

from __future__ import annotations

import torch
from torch import Tensor

from sarb.labels import Targets
from sarb.losses.partial_bce import partial_bce


def threshold_loss(similarity: Tensor, threshold: Tensor, targets: Targets) -> Tensor:
    """Partial BCE with the logit clamp(s − θ, 0, 1): learns a threshold θ that known labels agree with.

    Entries above θ move it, present ones down and absent ones up. Below θ the clamp would leave no gradient, and at
    θ = 1 nothing could ever move. So a present label that θ misses keeps the gradient of the identity; an absent one
    below θ is right and has none.

    Args:
        similarity: s (B, C), at most 1.
        threshold: θ, ().
        targets: of (B, C).
    """
    above = similarity - threshold
    missed = targets.present & (above < 0)
    return partial_bce(torch.where(missed, above - above.detach(), above.clamp(0, 1)), targets)


def prototype_contrast(similarity: Tensor, targets: Targets) -> Tensor:
    """Mean of 1 − y s over all entries (B, C), with y = 1 present, −1 absent and 0 unknown."""
    sign = targets.weight * (2 * targets.value - 1)
    return (1 - sign * similarity).mean()
