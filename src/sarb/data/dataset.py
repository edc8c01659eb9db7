"""Dataset and Data: what every reader returns."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sarb.errors import check_share
from sarb.labels import LabelMatrix
from sarb.matrix import chosen_rows

if TYPE_CHECKING:
    from PIL.Image import Image


@dataclass(frozen=True)
class Dataset:
    """Images and their labels.

    ``labels.paths`` are the image names as written in the source; ``root`` is the folder they are relative
    to. ``lines`` (N,) are their line numbers in the file ``source``, if it has lines; they are used in
    messages and to write images back in the same order. Iteration yields ``(image, labels)``: a Pillow RGB
    image and its row (C,) of -1/0/+1.
    """

    labels: LabelMatrix
    root: Path = field(default_factory=Path)
    name: str = "data"
    lines: NDArray[np.int64] | None = field(default=None, compare=False, repr=False)
    source: Path | None = field(default=None, compare=False, repr=False)

    @property
    def paths(self) -> list[Path]:
        """N image files."""
        return [self.root / path for path in self.labels.paths]

    @property
    def categories(self) -> tuple[str, ...]:
        """C names."""
        return self.labels.categories

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, index: int) -> tuple[Image, NDArray[np.int8]]:
        from sarb.data.decoding import decode  # keeps Pillow out of `load`

        return decode(self.root / self.labels.paths[index]), self.labels.values[index]

    def __iter__(self) -> Iterator[tuple[Image, NDArray[np.int8]]]:
        return (self[index] for index in range(len(self)))

    def hide(self, known: float = 1.0, seed: int = 0, single_positive: bool = False) -> Dataset:
        """Make labels unknown at random, see :meth:`LabelMatrix.hide`."""
        return replace(self, labels=self.labels.hide(known, seed, single_positive))

    def take(self, index: ArrayLike) -> Dataset:
        """Select images by ``index`` (integers or a mask)."""
        lines = None if self.lines is None else self.lines[chosen_rows(len(self), index)]
        return replace(self, labels=self.labels.take(index), lines=lines)

    def line(self, row: int) -> int | None:
        """Return the line number of an image in ``source``, or None."""
        return None if self.lines is None else int(self.lines[row])

    def split(self, fraction: float, seed: int = 0) -> tuple[Dataset, Dataset]:
        """Split off a seeded random ``fraction`` of the images; return (rest, part)."""
        check_share("fraction", fraction)
        order = np.random.RandomState(seed).permutation(len(self))
        count = round(fraction * len(self))
        return self.take(np.sort(order[count:])), self.take(np.sort(order[:count]))

    def fingerprint(self) -> str:
        """Return a hash of the image names, sizes and modification times (labels not included)."""
        digest = hashlib.sha256()
        for path in self.paths:
            try:
                stat = path.stat()
                digest.update(f"{path.resolve()}\0{stat.st_size}\0{stat.st_mtime_ns}\n".encode())
            except OSError as error:  # a missing file changes the fingerprint too
                digest.update(f"{path}\0{error.errno}\n".encode())
        return digest.hexdigest()[:16]


def joined(parts: Sequence[Dataset]) -> Dataset:
    """Put data sets with the same categories together, in the order of their lines where they have lines."""
    first = parts[0]
    names = [name for part in parts for name in part.labels.paths]
    root = first.root
    if any(part.root != root for part in parts):
        names = [str(path) for part in parts for path in part.paths]
        root = Path()
    labels = LabelMatrix(np.concatenate([part.labels.values for part in parts]), first.categories, names)
    lines = [part.lines for part in parts if part.lines is not None and part.source == first.source]
    if len(lines) < len(parts):
        return replace(first, labels=labels, root=root, lines=None)
    together = np.concatenate(lines)
    return replace(first, labels=labels, root=root, lines=together).take(np.argsort(together, kind="stable"))


@dataclass(frozen=True)
class Origin:
    """How ``load`` read a source, so that it can be written again in the same form.

    Args:
        reader: name of the reader.
        path: file or folder; None for a source without a path.
        options: as the user gave them.
        stamps: label file -> its size and modification time when it was read.
    """

    reader: str
    path: Path | None
    options: dict[str, Any]
    stamps: dict[Path, tuple[int, int]] = field(default_factory=dict)

    @staticmethod
    def stamp(file: Path) -> tuple[int, int] | None:
        """Return size and modification time of a file, None if it is gone."""
        try:
            stat = file.stat()
        except OSError:
            return None
        return stat.st_size, stat.st_mtime_ns


@dataclass(frozen=True)
class Data:
    """A data source: training and test images, an optional validation split, notes, and where it is from."""

    train: Dataset
    test: Dataset
    valid: Dataset | None = None
    name: str = "data"
    notes: dict[str, Any] = field(default_factory=dict)
    origin: Origin | None = field(default=None, compare=False, repr=False)

    @property
    def categories(self) -> tuple[str, ...]:
        """C names."""
        return self.train.categories

    @property
    def splits(self) -> dict[str, Dataset]:
        """The non-empty splits by name, in the order train, valid, test."""
        splits = {"train": self.train, "valid": self.valid, "test": self.test}
        return {name: dataset for name, dataset in splits.items() if dataset is not None and len(dataset)}

    @property
    def all(self) -> Dataset:
        """The images of all splits."""
        return joined(list(self.splits.values()))

    @property
    def found_options(self) -> dict[str, Any]:
        """Options that the reader found out, and that a file with other labels may need: 1 and 0 without a blank."""
        given = {} if self.origin is None else self.origin.options
        return (
            {"encoding": "binary"}
            if self.notes.get("encoding") == "binary" and not given.get("encoding")
            else {}
        )

    def hide(self, known: float = 1.0, seed: int = 0, single_positive: bool = False) -> Data:
        """Hide training and validation labels at random; test labels stay. See :meth:`LabelMatrix.hide`."""
        valid = self.valid.hide(known, seed + 1, single_positive) if self.valid is not None else None
        return replace(self, train=self.train.hide(known, seed, single_positive), valid=valid)
