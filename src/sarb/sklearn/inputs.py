"""What users of scikit-learn pass as X and y, as a Dataset: pictures by path or in memory, codes with a
meaning.
"""

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

#: how NumPy and pandas spell a missing value
BLANKS = ("nan", "None", "<NA>", "NaT")


class InputError(DataError, ValueError):
    """X or y that cannot be used; also a ValueError, which is what scikit-learn's own tools expect."""


@dataclass(frozen=True)
class MemoryDataset(Dataset):
    """A data set of pictures in memory.

    ``images`` (N) are anything that :func:`sarb.data.images.decode` takes; they stand where a Dataset has
    its files, so the one loader reads both. The names in ``labels.paths`` are for messages only.
    """

    images: tuple[Any, ...] = field(default=(), repr=False, compare=False)

    @property
    def paths(self) -> list[Any]:
        """N pictures."""
        return list(self.images)

    def __getitem__(self, index: int) -> tuple[Image.Image, NDArray[np.int8]]:
        return decode(self.images[index]), self.labels.values[index]

    def take(self, index: ArrayLike) -> MemoryDataset:
        """Return the images ``index`` (integers or a mask)."""
        rows = chosen_rows(len(self), index)
        return replace(self, labels=self.labels.take(rows), images=tuple(self.images[row] for row in rows))

    def fingerprint(self) -> str:
        """Return a hash of the pixels, so that the feature cache knows the same pictures again."""
        digest = hashlib.sha256()
        for item in self.images:
            pixels = np.asarray(decode(item))
            digest.update(f"{pixels.shape}".encode())
            digest.update(pixels.tobytes())
        return digest.hexdigest()[:16]


def labelled(X: Any, y: Any, encoding: str | None, categories: Sequence[str] | None) -> Dataset:
    """Return X and y as a Dataset.

    Args:
        X: N pictures, see :func:`pictures`.
        y: (N, C) labels, see :func:`read_labels`.
        encoding: what the codes of y mean.
        categories: C names for a y that has none.
    """
    images = pictures(X)
    labels = read_labels(y, encoding, categories)
    if len(images) != len(labels):
        raise InputError(f"X has {len(images)} pictures, but y has {len(labels)} rows")
    if all(isinstance(image, str) for image in images):
        return Dataset(LabelMatrix(labels.values, labels.categories, images), name="X")
    names = [f"image {number}" for number in range(len(images))]
    return MemoryDataset(LabelMatrix(labels.values, labels.categories, names), name="X", images=tuple(images))


def pictures(X: Any) -> list[Any]:
    """Return N pictures: paths as text, Pillow images, arrays (H, W, 3).

    Args:
        X: list, array or pandas Series of paths; a column (N, 1) of them; list of Pillow images or of
            arrays; array (N, H, W, 3); a Dataset. Pixels are uint8, uint16 or bool.
    """
    if isinstance(X, Dataset):
        X = X.paths
    elif hasattr(X, "__array__"):
        X = _rows(np.asarray(X))
    if isinstance(X, str | bytes) or not isinstance(X, Sequence):
        sparse = "a sparse " if hasattr(X, "toarray") else ""
        raise InputError(
            f"X is a list or array of pictures, got {sparse}{type(X).__name__}; "
            "a single picture goes into a list: [X]"
        )
    if not X:
        raise InputError("X has 0 pictures, at least 1 is needed")
    return [_picture(item, number) for number, item in enumerate(X)]


def _rows(array: NDArray[Any]) -> list[Any]:
    if array.ndim == 2 and array.shape[1] == 1 and array.dtype.kind in "OUT":  # a column of a table
        array = array[:, 0]
    if array.ndim not in (1, 4):
        raise InputError(
            f"X has shape {array.shape}; expected N paths, shape (N,), "
            "or N pictures, shape (N, height, width, 3)"
        )
    return list(array)


def _picture(item: Any, number: int) -> Any:
    if isinstance(item, str | Path):
        return str(item)
    if isinstance(item, np.ndarray) and item.dtype.kind == "f":
        raise InputError(
            f"X[{number}] has pixels of {item.dtype}, which have no agreed range; "
            "from 0 to 1 they become uint8 by (255 * X).round().astype('uint8')"
        )
    if isinstance(item, Image.Image | np.ndarray):
        return item
    raise InputError(
        f"X[{number}] is {type(item).__name__}; "
        "expected a path, a Pillow image or an array (height, width, 3) of uint8"
    )


def read_labels(y: Any, encoding: str | None, categories: Sequence[str] | None) -> LabelMatrix:
    """Return y as labels; codes that can be read in several ways need an ``encoding``, as in a table.

    Args:
        y: a LabelMatrix; or (N, C) codes as an array, a list of rows or a DataFrame. Truth values and the
            words present/absent/unknown (yes/no/?) need no encoding. NaN, None and NA are blanks.
        encoding: ``signed`` 1/-1/0, ``binary`` 1/0/blank, ``minus_one_unknown`` 1/0/-1.
        categories: C names; those of a LabelMatrix or of the columns of a DataFrame come first.
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
        # True and False can be read in one way only, whatever the numbers of another y mean
        values, _ = codes.decode("words" if array.dtype == np.bool_ else encoding)
        codes.problems.raise_any()
        return LabelMatrix(values, names)
    except DataError as error:
        raise InputError(str(error), error.findings) from None


def _spelled(cell: Any) -> str:
    text = str(cell)
    return "" if text in BLANKS else text
