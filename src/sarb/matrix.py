"""What all (images × categories) matrices share: names that are checked, rows taken by index or mask."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sarb.errors import DataError

#: entries per block of rows: half a megabyte of float64, which fits into the CPU cache
BLOCK = 1 << 16


def checked_names(
    what: str, array: NDArray[Any], categories: Sequence[str], paths: Sequence[str | Path] | None
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return categories and paths as text, numbered paths by default; raise if they do not fit ``array``.

    Args:
        what: what an error message calls the matrix.
        array: (N, C).
        categories: C distinct names.
        paths: N paths, or None.
    """
    if array.ndim != 2:
        raise DataError(f"{what} must be a matrix (images × categories), got shape {array.shape}")
    names = tuple(str(name) for name in categories)
    file_names = (
        tuple(str(path) for path in paths) if paths is not None else tuple(map(str, range(len(array))))
    )
    if array.shape != (len(file_names), len(names)):
        raise DataError(
            f"{what} have shape {array.shape}, but there are {len(file_names)} paths "
            f"and {len(names)} categories"
        )
    if len(set(names)) != len(names):
        twice = sorted({name for name in names if names.count(name) > 1})
        raise DataError(f"duplicate category names: {', '.join(twice)}")
    return names, file_names


def chosen_rows(size: int, index: ArrayLike) -> NDArray[np.int64]:
    """Return the row numbers that ``index`` (integers, a mask, or empty) selects from ``size`` rows."""
    chosen = np.asarray(index)
    rows: NDArray[np.int64] = np.arange(size)[chosen if chosen.size else chosen.astype(np.int64)]
    return rows


def row_blocks(array: NDArray[Any]) -> Iterator[NDArray[Any]]:
    """Iterate over ``array`` (N, C) in blocks of rows (views), so that temporary arrays stay small."""
    step = max(1, BLOCK // max(1, array.shape[1]))
    return (array[first : first + step] for first in range(0, len(array), step))
