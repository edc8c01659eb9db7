"""Where the network looked, as small grids of bytes that the page draws over the photo."""

from __future__ import annotations

import base64

import numpy as np
from numpy.typing import ArrayLike, NDArray


def to_bytes(attention: ArrayLike) -> NDArray[np.uint8]:
    """Scale each attention map (C, H, W) to 0..255: 255 (a − min) / (max − min); a flat map becomes all 0.

    Attention over positions sums to one and class activations can have any sign, so only the shape of a map
    is shown, not its height; the probability tells how sure the network is.
    """
    maps = np.nan_to_num(np.asarray(attention, np.float64), posinf=0.0, neginf=0.0)
    low = maps.min(axis=(1, 2), keepdims=True)
    span = maps.max(axis=(1, 2), keepdims=True) - low
    # a range this small is float32 rounding, not attention
    flat = span <= 1e-6 * np.abs(maps).max(axis=(1, 2), keepdims=True)
    return np.round(np.where(flat, 0.0, 255 * (maps - low) / np.where(flat, 1.0, span))).astype(np.uint8)


def encode(grid: NDArray[np.uint8]) -> str:
    """Return the bytes of one map (H, W), row by row, in base64."""
    return base64.b64encode(np.ascontiguousarray(grid).tobytes()).decode("ascii")
