"""Count labels in blocks: exact co-occurrence counts of categories, for any N and C.

Works on the values of a :class:`sarb.labels.LabelMatrix`, (N, C) in {-1, 0, +1}.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

#: up to ``ONE_CHUNK`` categories are counted in one go, more of them ``CHUNK`` at a time
ONE_CHUNK = 512
CHUNK = 128
#: images counted in one go; two counts below ``PACK`` share one float32, whose integers are exact up to 2²⁴
BLOCK = 1024
PACK = 2048


def pair_counts(values: NDArray[np.int8]) -> Iterator[tuple[slice, NDArray[np.float64], NDArray[np.float64]]]:
    """Yield the pair counts of all categories, some rows i at a time.

    Each item is ``rows``, a slice of the categories i; ``both`` (I, C), the number of images in which i and j
    are present; and ``given`` (I, C), the number of images in which i is present and j is known.
    """
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]  # comes with scikit-learn

    categories = values.shape[1]
    step = CHUNK if categories > ONE_CHUNK else max(1, categories)
    for rows in (slice(first, first + step) for first in range(0, categories, step)):
        # waking threads for small matrix products is up to 100 times slower when the cores are busy
        with threadpool_limits(1, "blas"):
            both, given = _chunk_counts(values, rows)
        yield rows, both, given


def _packed(block: NDArray[np.int8]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return present (b, C) in {0, 1} and known + PACK · present (b, C): one product then counts both."""
    values = block.astype(np.float32)
    present = np.maximum(values, 0)
    values *= values
    values += PACK * present
    return present, values


def _chunk_counts(values: NDArray[np.int8], chosen: slice) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the counts of :func:`pair_counts` for the rows i in ``chosen``, each (I, C)."""
    shape = values[:0, chosen].shape[1], values.shape[1]
    both = np.zeros(shape)
    given = np.zeros(shape)
    for block in _showing(values, chosen):
        present, packed = _packed(block)
        sums = present[:, chosen].T @ packed
        pairs = np.floor(sums / PACK)
        both += pairs
        given += sums - PACK * pairs
    return both, given


def _showing(values: NDArray[np.int8], chosen: slice) -> Iterator[NDArray[np.int8]]:
    """Yield blocks (b, C) of the images that show a chosen category.

    If a sample suggests that most images show one, the blocks cover all images: selecting costs more than it
    saves.
    """
    starts = range(0, len(values), BLOCK)
    sample = values[::64, chosen] > 0
    if np.count_nonzero(sample) >= len(sample):
        yield from (values[first : first + BLOCK] for first in starts)
        return
    parts = ((values[first : first + BLOCK, chosen] > 0).any(axis=1) for first in starts)
    images = np.flatnonzero(np.concatenate([*parts, np.zeros(0, np.bool_)]))
    yield from (values[images[first : first + BLOCK]] for first in range(0, len(images), BLOCK))


def rates(values: NDArray[np.int8]) -> NDArray[np.float64]:
    """Return present / known of each category, (C,); 0 for a category without a known entry."""
    counts = np.zeros((2, values.shape[1]))
    for first in range(0, len(values), BLOCK):
        counts += np.divmod(_packed(values[first : first + BLOCK])[1].sum(axis=0), PACK)
    rates: NDArray[np.float64] = counts[0] / np.maximum(counts[1], 1)
    return rates
