"""The most similar images by the backbone's features, in blocks of bounded memory.

The features are those of method ``auto``: square roots of the averaged map, principal directions, half
whitened (:mod:`sarb.auto.features`), compared by cosine. N images cost N² · 384 multiplications: 100,000
images 3.8 · 10¹², a few minutes on two cores, in at most 64 MB beside the features (150 MB).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sarb.auto.features import fit_projection
from sarb.auto.neighbours import bank_rows
from sarb.progress import Progress

Floats = NDArray[np.float32]

#: neighbours of an image that are looked at
COUNT = 10
#: images whose similarities are held in memory at once: queries, and those they are compared with
ROWS = 1024
COLUMNS = 8192


class Nearest(NamedTuple):
    """The most similar other images, most similar first: rows (N, k) and cosines (N, k)."""

    rows: NDArray[np.int64]
    cosines: Floats


def directions(pooled: Floats) -> Floats:
    """Averaged maps (N, D) -> unit vectors (N, d); the directions are fitted to at most 20,000 of the images."""
    projection = fit_projection(pooled[bank_rows(len(pooled))])
    parts = (pooled[start : start + COLUMNS] for start in range(0, len(pooled), COLUMNS))
    return np.concatenate([projection.directions(projection(part)).astype(np.float32) for part in parts])


def nearest(units: Floats, talk: Progress, count: int = COUNT) -> Nearest:
    """Find the ``count`` most similar of N unit vectors (N, d) for each; all others if there are fewer."""
    images = len(units)
    kept = max(0, min(count, images - 1))
    rows = np.zeros((images, kept), np.int64)
    cosines = np.full((images, kept), -np.inf, np.float32)
    with talk.bar("comparing images", images) as advance:
        for start in range(0, images if kept else 0, ROWS):
            part = slice(start, min(start + ROWS, images))
            for first in range(0, images, COLUMNS):
                _merge(units, part, slice(first, min(first + COLUMNS, images)), rows[part], cosines[part])
            advance(part.stop - part.start)
    return Nearest(rows, cosines)


def _merge(units: Floats, part: slice, others: slice, rows: NDArray[np.int64], cosines: Floats) -> None:
    """Put those of ``others`` that are more similar than the ones found so far into rows and cosines."""
    found = units[part] @ units[others].T
    own = np.arange(max(part.start, others.start), min(part.stop, others.stop))
    found[own - part.start, own - others.start] = -np.inf
    kept = cosines.shape[1]
    columns = np.argpartition(-found, min(kept, found.shape[1] - 1), axis=1)[:, :kept]
    values = np.concatenate([cosines, np.take_along_axis(found, columns, 1)], axis=1)
    places = np.concatenate([rows, columns + others.start], axis=1)
    order = np.argsort(-values, axis=1, kind="stable")[:, :kept]
    cosines[:] = np.take_along_axis(values, order, 1)
    rows[:] = np.take_along_axis(places, order, 1)
