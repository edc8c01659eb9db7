"""Where the network looked, as small grids of bytes that a page can draw over the photo."""

from __future__ import annotations

import base64

import numpy as np
from numpy.typing import ArrayLike, NDArray


def to_bytes(attention: ArrayLike) -> NDArray[np.uint8]:
    """Stretch each map of attention (C, H, W) to 0..255: 255 (a − min) / (max − min); a flat map is 0
    everywhere.

    Attention over positions sums to one and class activations have any sign, so only the shape of a map is
    shown, never its height; the probability says how sure the network is.
    """
    maps = np.nan_to_num(np.asarray(attention, np.float64), posinf=0.0, neginf=0.0)
    low = maps.min(axis=(1, 2), keepdims=True)
    span = maps.max(axis=(1, 2), keepdims=True) - low
    # far below what 32 bits resolve: rounding, not looking
    flat = span <= 1e-6 * np.abs(maps).max(axis=(1, 2), keepdims=True)
    return np.round(np.where(flat, 0.0, 255 * (maps - low) / np.where(flat, 1.0, span))).astype(np.uint8)


def encode(grid: NDArray[np.uint8]) -> str:
    """Return the bytes of one map (H, W), row by row, in base64."""
    return base64.b64encode(np.ascontiguousarray(grid).tobytes()).decode("ascii")
