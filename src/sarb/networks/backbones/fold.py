"""Fold frozen batch norms into the convolutions before them: faster, and equal up to rounding.

In eval mode a batch norm is y = γ (x − μ) / σ + b, with σ = √(variance + ε), and x = W ∗ z is the output of a
convolution. So y = (γ/σ · W) ∗ z + (b − γ μ / σ), a convolution with a bias. It is computed in float64 and
rounded once.
"""

from __future__ import annotations

import copy

import torch
from torch import nn

from sarb.networks.backbones.stages import Backbone

#: largest accepted difference from the original backbone, relative to its largest output
CLOSE = 1e-4


@torch.no_grad()
def folded(backbone: Backbone) -> Backbone:
    """Return a copy for inference with folded batch norms; the given backbone is not changed.

    It costs about as much as a few images. A batch norm is assumed to follow the convolution defined right
    before it. A small random image checks this; if the outputs differ, nothing is folded. A backbone whose frozen
    stages another engine runs is returned as it is: that one has folded them, for one image size.
    """
    if backbone.engine is not None:
        return backbone
    result = copy.deepcopy(backbone).eval()
    _fold(result)
    result.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    size = backbone.small
    image = torch.randn(1, 3, size, size, generator=torch.Generator().manual_seed(0)).to(
        next(backbone.parameters())
    )
    plain = copy.deepcopy(backbone).eval() if backbone.training else backbone
    expected = plain(image)
    return result if (result(image) - expected).abs().max() <= CLOSE * expected.abs().max() else plain


def _fold(module: nn.Module) -> None:
    last: nn.Module | None = None
    for name, child in list(module.named_children()):
        if isinstance(child, nn.BatchNorm2d) and isinstance(last, nn.Conv2d):
            _absorb(last, child)
            setattr(module, name, getattr(child, "act", nn.Identity()))  # timm's norms hold the activation
        else:
            _fold(child)
        last = child


def _absorb(convolution: nn.Conv2d, norm: nn.BatchNorm2d) -> None:
    assert norm.running_mean is not None and norm.running_var is not None
    factor = norm.weight.double() / (norm.running_var.double() + norm.eps).sqrt()
    bias = norm.bias.double() - factor * norm.running_mean.double()
    if convolution.bias is not None:
        bias += factor * convolution.bias.double()
    convolution.weight.copy_(convolution.weight.double() * factor[:, None, None, None])
    convolution.bias = nn.Parameter(bias.to(convolution.weight), requires_grad=False)
