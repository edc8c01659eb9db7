"""Position embeddings of a vision transformer for another grid: bicubic interpolation as products of matrices.

Y = A X Bᵀ, as PyTorch's ``interpolate`` gives it, where row i of A has the cubic kernel's weights around
(i + ½) · n / m. As a product of matrices it exports everywhere. Without antialiasing PyTorch takes the kernel with
a = −0.75 and repeats the border; with it, a = −0.5, a kernel that widens where the grid shrinks, and weights that are
normalised at the border.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor


def resampled(
    positions: Tensor, old: tuple[int, int], new: tuple[int, int], antialias: bool = False
) -> Tensor:
    """Position embeddings for a new grid.

    Args:
        positions: (1, Q + h·w, D); the first Q belong to no patch and stay as they are.
        old: (h, w).
        new: (H, W).
        antialias: as in ``torch.nn.functional.interpolate``.

    Returns:
        (1, Q + H·W, D).
    """
    new = (int(new[0]), int(new[1]))  # while a model is traced, sizes are tensors
    if tuple(old) == new:
        return positions
    first = int(positions.shape[1]) - old[0] * old[1]
    grid = positions[:, first:].reshape(*old, -1)
    down = torch.from_numpy(_weights(old[0], new[0], antialias)).to(grid)
    across = torch.from_numpy(_weights(old[1], new[1], antialias)).to(grid)
    found = torch.einsum("ph,hwd,qw->pqd", down, grid, across).reshape(1, new[0] * new[1], -1)
    return torch.cat([positions[:, :first], found], 1)


@cache
def _weights(before: int, after: int, antialias: bool) -> NDArray[np.float32]:
    """The matrix A (after, before)."""
    ratio = before / after
    wide = max(ratio, 1.0) if antialias else 1.0
    centres = (np.arange(after) + 0.5) * ratio
    weights = np.zeros((after, before))
    reach = 2 * int(np.ceil(wide)) + 1
    for offset in range(-reach, reach + 1):
        cells = np.floor(centres).astype(int) + offset
        values = _cubic((cells + 0.5 - centres) / wide, -0.5 if antialias else -0.75)
        inside = (cells >= 0) & (cells < before)
        values = np.where(inside | (not antialias), values, 0.0)
        np.add.at(weights, (np.arange(after), np.clip(cells, 0, before - 1)), values)
    result: NDArray[np.float32] = (weights / weights.sum(1, keepdims=True)).astype(np.float32)
    return result


def _cubic(distance: NDArray[np.float64], a: float) -> NDArray[np.float64]:
    """Keys' cubic convolution kernel."""
    x = np.abs(distance)
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    far = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
    return np.where(x <= 1, near, np.where(x < 2, far, 0.0))
