"""An informed start for small data: initial weights computed from the data instead of drawn at random.

With a few thousand images and a tenth of their labels, a randomly initialised head overfits before it learns
anything useful. With this start the network begins as a linear classifier on the whitened, averaged map, and
training moves each part away from there. The only label statistic used is the rate of known positives, or of what
a method learns from instead (:meth:`sarb.methods.base.Method.mean_targets`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from sarb.labels import LabelMatrix

#: number of grid cells used to estimate the principal directions
CELLS = 60_000


def prior_logits(labels: LabelMatrix) -> Tensor:
    """Log-odds (C,) of each category among its known labels, with p = (positives + 1)/(known + 20)."""
    return log_odds(shrunk(labels.positives, labels.known.sum(0)))


def shrunk(present: NDArray[Any], all_: NDArray[Any] | float) -> NDArray[np.float64]:
    """Rates (present + 1)/(all + 20), so that a category with few labels is neither certain nor impossible."""
    rates: NDArray[np.float64] = (present + 1) / (all_ + 20)
    return rates


def log_odds(rates: NDArray[np.float64]) -> Tensor:
    """Logits of rates (C,)."""
    return torch.from_numpy(np.log(rates / (1 - rates))).float()


@torch.no_grad()
def principal_directions(maps: Callable[[], Iterable[Tensor]], count: int) -> Tensor:
    """Leading principal directions (count, D) of the grid cells of maps (B, D, H, W), summed in float64."""
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
    # the sign of an eigenvector is arbitrary; fix it so that every machine starts alike
    sign = directions.gather(1, directions.abs().argmax(1, keepdim=True)).sign()
    return directions * sign


@torch.no_grad()
def start_projection(convolution: nn.Conv2d, maps: Callable[[], Iterable[Tensor]]) -> None:
    """Set a 1×1 convolution to the leading principal directions; with the batch norm after it, it whitens."""
    directions = principal_directions(maps, convolution.out_channels)
    convolution.weight[: len(directions), :, 0, 0] = directions.to(convolution.weight)


@torch.no_grad()
def start_join(join: nn.Linear, scale: float, noise: float = 0.1) -> None:
    """Set Linear(2D→D)([h, f]) to ``scale`` · f plus small random weights."""
    dim = join.out_features
    join.weight.normal_(std=noise / (2 * dim) ** 0.5)
    join.weight[:, dim:] += scale * torch.eye(dim, device=join.weight.device)
    join.bias.zero_()
