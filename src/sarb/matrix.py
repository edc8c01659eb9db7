"""What all (images × categories) matrices share: names that are checked, rows by index or mask, their file."""

from __future__ import annotations

import io
import math
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sarb.errors import DataError

#: entries per block of rows: half a megabyte of float64, which fits into the CPU cache
BLOCK = 1 << 16
#: bytes that a stored matrix may unpack to: this many, and this many per byte of its file
ROOM = 256 << 20
RATIO = 200


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


def packed(name: str, array: NDArray[Any], categories: Sequence[str], paths: Sequence[str]) -> bytes:
    """Return a matrix with its names as an ``.npz`` file that can be read without pickle."""
    buffer = io.BytesIO()
    parts: dict[str, Any] = {name: array, "categories": np.array(categories), "paths": np.array(paths)}
    np.savez_compressed(buffer, **parts)
    return buffer.getvalue()


def unpacked(file: str | Path, name: str, kinds: str) -> tuple[NDArray[Any], list[str], list[str]]:
    """Read what :func:`packed` made: matrix, categories, paths; an error names the file.

    Sizes are checked before anything is unpacked, so a small file cannot fill the memory.

    Args:
        file: the ``.npz`` file.
        name: of the matrix in it.
        kinds: NumPy's letters for the kinds of numbers it may have.
    """
    try:
        with zipfile.ZipFile(file) as archive:
            left = ROOM + RATIO * Path(file).stat().st_size
            names = []
            for part in ("categories", "paths"):
                names.append(_unpack(archive, part, "U", 1, left))
                left -= names[-1].nbytes
            array = _unpack(archive, name, kinds, 2, left)
        categories, paths = (part.tolist() for part in names)
        "".join(categories).encode()
    except DataError as error:
        raise DataError(f"{file}: {error}") from error
    except Exception as error:  # a damaged archive or header may raise anything, even a tokenizer error
        raise DataError(
            f"{file}: cannot read this file as a matrix of images × categories ({error})"
        ) from error
    if array.shape != (len(paths), len(categories)):
        raise DataError(
            f"{file}: '{name}' has shape {array.shape}, but there are {len(paths)} paths and "
            f"{len(categories)} categories"
        )
    return array, categories, paths


def _unpack(archive: zipfile.ZipFile, name: str, kinds: str, dimensions: int, room: int) -> NDArray[Any]:
    """One array of an archive, its header checked first."""
    entry = f"{name}.npy"
    if entry not in archive.namelist():
        raise DataError(f"'{name}' is missing")
    with archive.open(entry) as stream:
        shape, kind = _header(stream)
    size = math.prod(shape) * kind.itemsize
    if len(shape) != dimensions or (kind.kind not in kinds and size):  # NumPy stores no names as numbers
        raise DataError(f"'{name}' must have {dimensions} dimensions of kind {kinds}, got {shape} of {kind}")
    if size > room or archive.getinfo(entry).file_size > size + room:
        raise DataError(f"'{name}' would need {size:,} bytes, far more than this file can hold")
    with archive.open(entry) as stream:
        return np.asarray(np.lib.format.read_array(stream, allow_pickle=False))


def _header(stream: IO[bytes]) -> tuple[tuple[int, ...], np.dtype[Any]]:
    version = np.lib.format.read_magic(stream)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, _, kind = read(stream)
    return shape, kind
