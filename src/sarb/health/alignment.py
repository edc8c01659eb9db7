"""Is one small grey picture a part of another, perhaps mirrored? A search over windows, by correlation.

The windows are all rectangles whose sides are 80 to 100 % of the picture's, in steps of 5 %. Each is shrunk to
GRID × GRID cells. Shrinking is linear, so all windows of a picture are two matrix products. The differences of
adjacent cells are compared, not the cells: pictures of sky above land have similar cells.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sarb.health.looks import SMALL

Floats = NDArray[np.float32]

#: cells per side that are compared
GRID = 16
#: the sides of a window are multiples of 1/STEPS, at least SMALLEST of them
STEPS = 20
SMALLEST = 16
#: a picture whose adjacent cells differ less than this, in grey levels, shows nothing that could be compared
FLAT = 0.5


class Match(NamedTuple):
    """The best of all comparisons: correlation −1..1, and whether one picture is mirrored."""

    correlation: float
    mirrored: bool


def compare(first: NDArray[np.uint8], second: NDArray[np.uint8]) -> Match:
    """Compare two pictures (SMALL, SMALL): each window of either with the whole of the other, and its mirror."""
    matches = []
    for windowed, whole in ((first, second), (second, first)):
        slopes = windows(windowed)
        for mirrored in (False, True):
            target = windows(whole[:, ::-1] if mirrored else whole, only_whole=True)[0]
            matches.append(Match(float((slopes @ target).max()), mirrored))
    return max(matches, key=lambda match: match.correlation)


def windows(picture: NDArray[np.uint8], only_whole: bool = False) -> Floats:
    """Differences of adjacent cells (W, d) of all windows, the whole picture first; norm 1, or 0 if it is flat."""
    shrink = _SHRINK[: 1 if only_whole else None]
    count = len(shrink)
    rows = shrink.reshape(count * GRID, SMALL)
    blocks = (rows @ picture.astype(np.float32) @ rows.T).reshape(count, GRID, count, GRID)
    cells = blocks.transpose(0, 2, 1, 3).reshape(count * count, GRID, GRID)
    slopes = np.concatenate([np.diff(cells, axis=axis).reshape(len(cells), -1) for axis in (1, 2)], axis=1)
    norms = np.linalg.norm(slopes, axis=1, keepdims=True)
    visible = norms >= FLAT * np.sqrt(slopes.shape[1])
    out: Floats = np.where(visible, slopes / np.maximum(norms, 1e-6), 0).astype(np.float32)
    return out


def _shrink(start: float, stop: float) -> Floats:
    """Weights (GRID, SMALL) that average the pixels of GRID equal cells between two shares of a side."""
    edges = np.linspace(start, stop, GRID + 1) * SMALL
    pixels = np.arange(SMALL)
    overlap = np.minimum(edges[1:, None], pixels + 1) - np.maximum(edges[:-1, None], pixels)
    weights = np.maximum(overlap, 0)
    return np.asarray(weights / weights.sum(1, keepdims=True), np.float32)


#: (intervals, GRID, SMALL), the whole side first
_SHRINK = np.stack(
    [
        _shrink(start / STEPS, (start + length) / STEPS)
        for length in range(STEPS, SMALLEST - 1, -1)
        for start in range(STEPS - length + 1)
    ]
)
