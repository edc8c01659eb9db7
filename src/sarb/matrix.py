"""What every (images × categories) matrix has in common: checked names, and rows chosen by index or mask."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sarb.errors import DataError

#: entries of a block of rows: half a megabyte of doubles, which stays in the cache
BLOCK = 1 << 16


def checked_names(
    what: str, array: NDArray[Any], categories: Sequence[str], paths: Sequence[str | Path] | None
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return categories and paths of ``array`` (N, C) as text, or say what does not fit; paths may be left
    out.
    """
    if array.ndim != 2:
        raise DataError(f"{what} must be a matrix (images × categories), got shape {array.shape}")
    names = tuple(str(name) for name in categories)
    file_names = (
        tuple(str(path) for path in paths) if paths is not None else tuple(map(str, range(len(array))))
    )
    if array.shape != (len(file_names), len(names)):
        raise DataError(
            f"{what} have shape {array.shape}, but there are {len(file_names)} paths and {len(names)} categories"
        )
    if len(set(names)) != len(names):
        twice = sorted({name for name in names if names.count(name) > 1})
        raise DataError(f"category names occur twice: {', '.join(twice)}")
    return names, file_names


def chosen_rows(size: int, index: ArrayLike) -> NDArray[np.int64]:
    """Return the numbers of the rows ``index`` (integers, a mask, or nothing) chooses out of ``size``."""
    chosen = np.asarray(index)
    rows: NDArray[np.int64] = np.arange(size)[chosen if chosen.size else chosen.astype(np.int64)]
    return rows


def row_blocks(array: NDArray[Any]) -> Iterator[NDArray[Any]]:
    """Views of the rows of ``array`` (N, C), in order, some at a time: what is made of them stays small."""
    step = max(1, BLOCK // max(1, array.shape[1]))
    return (array[first : first + step] for first in range(0, len(array), step))
