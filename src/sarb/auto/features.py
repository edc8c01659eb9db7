"""Features of the probe: square root, PCA, unit mean square norm.

With p (D,) the averaged map of an image (several resolutions one after the other), r = sign(p) √|p|,
z = r − mean and V (D, d) the leading principal directions of the training images:

    x = scale · zᵀ V,   scale chosen so that the mean of ‖x‖² over the training images is 1.

Channels are not standardised: that lifts channels which hardly vary, and costs 1 to 2 mAP where labels are few.

The neighbours compare u = x / variance^¼, half-way between x and its whitened form, by cosine.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

#: principal directions that are kept
WIDTH = 384
#: a direction that varies less than this share of the largest is constant
CONSTANT = 1e-6


@dataclass(frozen=True)
class Projection:
    """A fitted map from pooled vectors (N, D) to features (N, d).

    Args:
        mean: (D,) of the square roots.
        components: (D, d) principal directions times the scale.
        quarter: (d,) variance^¼ of each feature over the training images.
    """

    mean: Floats
    components: Floats
    quarter: Floats

    @property
    def width(self) -> int:
        """Number of features d."""
        return int(self.components.shape[1])

    def __call__(self, pooled: NDArray[np.floating]) -> Floats:
        """Pooled vectors (N, D) -> features (N, d)."""
        out: Floats = (signed_root(pooled) - self.mean) @ self.components
        return out

    def directions(self, features: Floats) -> Floats:
        """Features (N, d) -> half-whitened unit vectors (N, d); a zero row stays zero."""
        half = features / self.quarter
        out: Floats = half / np.maximum(np.linalg.norm(half, axis=1, keepdims=True), 1e-12)
        return out


def signed_root(values: NDArray[np.floating]) -> Floats:
    """sign(v) √|v|, in float64."""
    exact = np.asarray(values, np.float64)
    return np.sign(exact) * np.sqrt(np.abs(exact))


def fit_projection(pooled: NDArray[np.floating], width: int = WIDTH) -> Projection:
    """Fit to the pooled vectors (N, D) of the training images; d = min(width, N − 1, D), at least 1.

    Eigenvectors have no sign of their own: the largest entry of each is made positive.
    """
    rows = signed_root(pooled)
    count, dim = rows.shape
    mean = rows.mean(0)
    centred = rows - mean
    kept = max(1, min(width, count - 1, dim))
    directions = _principal(centred, kept)
    features = centred @ directions
    norm = float((features**2).sum(1).mean())
    scale = 1 / np.sqrt(norm) if norm > 0 else 1.0
    variance = (scale * features).var(0)
    floor = CONSTANT * max(float(variance.max(initial=0.0)), 1e-12)
    return Projection(mean, scale * directions, np.maximum(variance, floor) ** 0.25)


def _principal(centred: Floats, count: int) -> Floats:
    """Leading principal directions (D, count) of centred rows (N, D), by the smaller of the two squares."""
    rows, dim = centred.shape
    if rows >= dim:
        _, vectors = np.linalg.eigh(centred.T @ centred)
        directions = vectors[:, ::-1][:, :count]
    else:
        _, _, right = np.linalg.svd(centred, full_matrices=False)
        directions = right[:count].T
    largest = np.take_along_axis(directions, np.abs(directions).argmax(0)[None], 0)
    return np.ascontiguousarray(directions * np.where(largest < 0, -1.0, 1.0))
