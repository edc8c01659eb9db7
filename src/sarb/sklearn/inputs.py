"""Convert X and y as scikit-learn users have them to a Dataset: images by path or in memory, and codes."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from PIL import Image

from sarb.data.check.problems import Problems
from sarb.data.dataset import Dataset
from sarb.data.images import decode
from sarb.data.parse.codes import Codes
from sarb.errors import DataError
from sarb.labels import LabelMatrix
from sarb.matrix import chosen_rows

#: texts of missing values in NumPy and pandas
BLANKS = ("nan", "None", "<NA>", "NaT")


class InputError(DataError, ValueError):
    """X or y cannot be used; it is also a ValueError, because scikit-learn's tools expect that."""


@dataclass(frozen=True)
class MemoryDataset(Dataset):
    """A data set of images in memory.

    ``images`` (N) are anything that :func:`sarb.data.images.decode` accepts. They take the place of the
    files of a Dataset, so that the same loader reads both. ``labels.paths`` is only used in messages.
    """

    images: tuple[Any, ...] = field(default=(), repr=False, compare=False)

    @property
    def paths(self) -> list[Any]:
        """N images."""
        return list(self.images)

    def __getitem__(self, index: int) -> tuple[Image.Image, NDArray[np.int8]]:
        return decode(self.images[index]), self.labels.values[index]

    def take(self, index: ArrayLike) -> MemoryDataset:
        """Select images by ``index`` (integers or a mask)."""
        rows = chosen_rows(len(self), index)
        return replace(self, labels=self.labels.take(rows), images=tuple(self.images[row] for row in rows))

    def fingerprint(self) -> str:
        """Return a hash of the pixels, so that the feature cache recognises the same images."""
        digest = hashlib.sha256()
        for item in self.images:
            pixels = np.asarray(decode(item))
            digest.update(f"{pixels.shape}".encode())
            digest.update(pixels.tobytes())
        return digest.hexdigest()[:16]


def labelled(X: Any, y: Any, encoding: str | None, categories: Sequence[str] | None) -> Dataset:
    """Return X and y as a Dataset.

    Args:
        X: N images, see :func:`pictures`.
        y: (N, C) labels, see :func:`read_labels`.
        encoding: encoding of the codes in y.
        categories: C names, if y has no names.
    """
    images = pictures(X)
    labels = read_labels(y, encoding, categories)
    if len(images) != len(labels):
        raise InputError(f"X has {len(images)} images, but y has {len(labels)} rows")
    if all(isinstance(image, str) for image in images):
        return Dataset(LabelMatrix(labels.values, labels.categories, images), name="X")
    names = [f"image {number}" for number in range(len(images))]
    return MemoryDataset(LabelMatrix(labels.values, labels.categories, names), name="X", images=tuple(images))


def pictures(X: Any) -> list[Any]:
    """Return a list of N images: paths as text, Pillow images, or arrays (H, W, 3).

    Args:
        X: list, array or pandas Series of paths; a column (N, 1) of paths; list of Pillow images or
            arrays; array (N, H, W, 3); a Dataset. Pixels are uint8, uint16 or bool.
    """
    if isinstance(X, Dataset):
        X = X.paths
    elif hasattr(X, "__array__"):
        X = _rows(np.asarray(X))
    if isinstance(X, str | bytes) or not isinstance(X, Sequence):
        sparse = "a sparse " if hasattr(X, "toarray") else ""
        raise InputError(
            f"X must be a list or array of images, got {sparse}{type(X).__name__}; "
            "put a single image into a list: [X]"
        )
    if not X:
        raise InputError("X has 0 images, at least 1 is needed")
    return [_picture(item, number) for number, item in enumerate(X)]


def _rows(array: NDArray[Any]) -> list[Any]:
    if array.ndim == 2 and array.shape[1] == 1 and array.dtype.kind in "OUT":  # a column of a table
        array = array[:, 0]
    if array.ndim not in (1, 4):
        raise InputError(
            f"X has shape {array.shape}; expected N paths, shape (N,), "
            "or N images, shape (N, height, width, 3)"
        )
    return list(array)


def _picture(item: Any, number: int) -> Any:
    if isinstance(item, str | Path):
        return str(item)
    if isinstance(item, np.ndarray) and item.dtype.kind == "f":
        raise InputError(
            f"X[{number}] has {item.dtype} pixels, which have no standard range; "
            "if they are from 0 to 1, convert them with (255 * X).round().astype('uint8')"
        )
    if isinstance(item, Image.Image | np.ndarray):
        return item
    raise InputError(
        f"X[{number}] is {type(item).__name__}; "
        "expected a path, a Pillow image or an array (height, width, 3) of uint8"
    )


def read_labels(y: Any, encoding: str | None, categories: Sequence[str] | None) -> LabelMatrix:
    """Return y as labels; ambiguous codes need an ``encoding``, as in a table.

    Args:
        y: a LabelMatrix; or (N, C) codes as an array, a list of rows or a DataFrame. Booleans and the words
            present/absent/unknown (yes/no/?) need no encoding. NaN, None and NA are blanks.
        encoding: ``signed`` 1/-1/0, ``binary`` 1/0/blank, ``minus_one_unknown`` 1/0/-1.
        categories: C names, if y is not a LabelMatrix or DataFrame with its own names.
    """
    if y is None:
        raise InputError("fit requires y to be passed, but the target y is None")
    if isinstance(y, LabelMatrix):
        return y
    array = np.asarray(y.toarray() if hasattr(y, "toarray") else y)
    if array.ndim != 2:
        raise InputError(f"y must be a matrix (images × categories), got shape {array.shape}")
    columns = getattr(y, "columns", categories)
    if columns is None:
        columns = [f"category {number}" for number in range(array.shape[1])]
    names = list(map(str, columns))
    if len(names) != array.shape[1]:
        raise InputError(
            f"y has {array.shape[1]} columns, but there are {len(names)} categories: {', '.join(names)}"
        )
    codes = Codes(Problems("y"), names)
    try:
        for line, row in enumerate(array.tolist(), 1):
            codes.append(line, map(_spelled, row))
        # booleans are unambiguous, so ``encoding`` does not apply to them
        values, _ = codes.decode("words" if array.dtype == np.bool_ else encoding)
        codes.problems.raise_any()
        return LabelMatrix(values, names)
    except DataError as error:
        raise InputError(str(error), error.findings) from None


def _spelled(cell: Any) -> str:
    text = str(cell)
    return "" if text in BLANKS else text
