"""An informed start for small data: each part begins as a sensible function of the data instead of at random.

With a few thousand images and a tenth of their labels a randomly started head over-fits before it has found
its way. Started like this, the whole network is at first a linear classifier on the whitened, averaged map,
and every part departs from there as far as it pays. None of it looks at a label but the rate of known
positives.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
import torch
from torch import Tensor, nn

from sarb.labels import LabelMatrix

#: grid cells that the principal directions are estimated from
CELLS = 60_000


def prior_logits(labels: LabelMatrix) -> Tensor:
    """Log-odds of each category (C,) among its known labels: log p/(1−p), p = (positives + 1)/(known +
    20).
    """
    rate = (labels.positives + 1) / (labels.known.sum(0) + 20)
    return torch.from_numpy(np.log(rate / (1 - rate))).float()


@torch.no_grad()
def principal_directions(maps: Callable[[], Iterable[Tensor]], count: int) -> Tensor:
    """Leading ``count`` principal directions (count, D) of the grid cells of maps (B, D, H, W), in float64
    sums.
    """
    seen = 0
    total = torch.zeros(1)
    product = torch.zeros(1)
    for batch in maps():
        cells = batch.transpose(0, 1).flatten(1).double().cpu()
        total = total + cells.sum(1)
        product = product + cells @ cells.T
        seen = seen + cells.shape[1]
        if seen >= CELLS:
            break
    mean = total / seen
    _, vectors = torch.linalg.eigh(product / seen - torch.outer(mean, mean))
    directions: Tensor = vectors.flip(1).T[:count].float()
    # eigenvectors have no sign of their own; fix it, so that every machine starts alike
    sign = directions.gather(1, directions.abs().argmax(1, keepdim=True)).sign()
    return directions * sign


@torch.no_grad()
def start_projection(convolution: nn.Conv2d, maps: Callable[[], Iterable[Tensor]]) -> None:
    """Let a 1×1 convolution start as the leading principal directions; with the batch norm behind it, it
    whitens.
    """
    directions = principal_directions(maps, convolution.out_channels)
    convolution.weight[: len(directions), :, 0, 0] = directions.to(convolution.weight)


@torch.no_grad()
def start_join(join: nn.Linear, scale: float, noise: float = 0.1) -> None:
    """Let Linear(2D→D)([h, f]) start as ``scale`` · f, plus a little of everything."""
    dim = join.out_features
    join.weight.normal_(std=noise / (2 * dim) ** 0.5)
    join.weight[:, dim:] += scale * torch.eye(dim, device=join.weight.device)
    join.bias.zero_()
