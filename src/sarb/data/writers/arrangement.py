"""Merge the splits of a data source into one table, with the options that divide it in the same way."""

from __future__ import annotations

import itertools
import os
import re
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sarb.data.assemble import assemble, finish
from sarb.data.check.problems import DataWarning, Problems
from sarb.data.dataset import Data, Dataset
from sarb.errors import DataError
from sarb.labels import LabelMatrix


class Arranged(NamedTuple):
    """All images of a source in one table.

    ``splits`` (N,) are train, test or valid; None if reading with ``options`` gives the same splits again.
    All names are relative to the folder ``root``.
    """

    labels: LabelMatrix
    splits: list[str] | None
    root: Path
    options: dict[str, Any]


def arrange(data: Data, path: Path) -> Arranged:
    """Merge the splits in the order of the source, to be written to ``path``."""
    root, names = _names(data)
    order = _order(list(data.splits.values()))
    values = np.concatenate([dataset.labels.values for dataset in data.splits.values()])[order]
    all_names = [name for split_names in names.values() for name in split_names]
    labels = LabelMatrix(values, data.categories, [all_names[row] for row in order])
    words = np.repeat(np.array(list(names), "<U5"), [len(split_names) for split_names in names.values()])
    words = words[order]
    all_written = (words, {} if "test" in names else {"test": 0})
    for splits, options in (without_drawn(data.notes, words), all_written):
        written = splits.tolist() if (splits != "train").any() else None
        if _read_again(labels, written, path, options) == names:
            break
    return Arranged(labels, written, root, options)


def _names(data: Data) -> tuple[Path, dict[str, tuple[str, ...]]]:
    """Return the common folder of all images, and split -> image names relative to it."""
    if not len(data.train):
        raise DataError("not written, there are no training images")
    if not data.categories:
        raise DataError("not written, there are no categories")
    if not all(name.strip() for name in data.categories):
        raise DataError("not written, a category has no name")
    roots = {dataset.root for dataset in data.splits.values()}
    if len(roots) == 1:
        return data.train.root, {name: dataset.labels.paths for name, dataset in data.splits.items()}
    common = Path(os.path.commonpath([root.absolute() for root in roots]))
    names = {}
    for split, dataset in data.splits.items():
        below = dataset.root.absolute().relative_to(common)
        names[split] = tuple(
            name if Path(name).is_absolute() else f"{below / name}" for name in dataset.labels.paths
        )
    return common, names


def _order(datasets: Sequence[Dataset]) -> NDArray[np.int64]:
    """Return the permutation of the concatenated splits that restores the order of the source, if known."""
    lines = [
        dataset.lines
        for dataset in datasets
        if dataset.lines is not None and (np.diff(dataset.lines) > 0).all()
    ]
    if len(lines) == len(datasets) and len({dataset.source for dataset in datasets}) == 1:
        return np.argsort(np.concatenate(lines), kind="stable")
    return np.arange(sum(map(len, datasets)))


def without_drawn(
    notes: Mapping[str, Any], words: NDArray[np.str_]
) -> tuple[NDArray[np.str_], dict[str, Any]]:
    """Return the splits (N,) that are in the source itself, and the options that draw the random ones."""
    options: dict[str, Any] = {}
    splits = words.copy()
    pool = int((words == "train").sum())
    for name in ("valid", "test"):  # the validation images were drawn last, from the remaining ones
        match = re.fullmatch(r"random share (\S+), seed (\d+)", str(notes.get(f"{name}_split", "")))
        if match:
            count = int((words == name).sum())
            share = float(match[1])
            pool += count
            # the note keeps only six digits of the share
            options[name] = share if round(share * pool) == count else count / max(1, pool)
            options["split_seed"] = int(match[2])
            splits[words == name] = "train"
    defaults = {"test": 0.2, "split_seed": 0}
    return splits, {name: value for name, value in options.items() if defaults.get(name) != value}


def _read_again(
    labels: LabelMatrix, splits: list[str] | None, path: Path, options: Mapping[str, Any]
) -> dict[str, tuple[str, ...]]:
    """Return the image names of each split as a reader would divide them."""
    for name in itertools.chain(labels.categories, labels.paths):
        if not name.isascii() and name.encode("utf-8", "ignore").decode() != name:
            raise DataError(f"{path}: not written, {name!r} is not valid Unicode text")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DataWarning)
            data = assemble(
                Problems(path), labels.paths, labels.values, labels.categories, root=Path(), splits=splits
            )
            data = finish(data, **options, check_files=False)
    except DataError as error:
        message = f"{path}: not written, because it could not be read again: {error}"
        raise DataError(message, error.findings) from None
    return {name: dataset.labels.paths for name, dataset in data.splits.items()}
