"""Which images a run has seen: those it was trained on, and those it held out for its test."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sarb.data import Dataset
from sarb.runs.folder import RunFolder

Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Seen:
    """The image files of a run, as real paths.

    Attributes:
        training: files it was trained on; empty for a model folder, and for a run from before sarb recorded
            the image folder.
        test: files it was tested on.
    """

    training: frozenset[str]
    test: frozenset[str]

    @classmethod
    def of(cls, run: RunFolder, root: Path | None = None) -> Seen:
        """Read the files of a run; ``root`` is the folder of its images, None takes the recorded one."""
        recorded = run.data_record.get("root")
        folder = root if root is not None else None if recorded is None else Path(recorded)
        training = run.train.paths if run.train is not None and folder is not None else ()
        test = run.test.paths if run.test is not None else ()
        return cls(
            _real(os.path.join(folder or "", path) for path in training),  # noqa: PTH118 - many paths
            _real(test),
        )

    def trained_on(self, dataset: Dataset) -> Mask:
        """(N,) which images of a data set the run was trained on."""
        return _among(dataset, self.training)

    def held_out(self, dataset: Dataset) -> Mask:
        """(N,) which images of a data set the run was tested on."""
        return _among(dataset, self.test)


def known_as(run: RunFolder, dataset: Dataset, *, own: bool) -> list[str]:
    """The name under which a run learned each image of a data set; empty for an image it was not trained on.

    Args:
        run: the run.
        dataset: the images.
        own: these are the run's own training images, so the names are the same wherever the files are now.
            Those of other data are compared by their real path: two tables may use a name for two images.
    """
    names = () if run.train is None else run.train.paths
    if own:
        trained = set(names)
        return [name if name in trained else "" for name in dataset.labels.paths]
    root = run.data_record.get("root")
    if root is None:
        return [""] * len(dataset)
    learned = {os.path.realpath(os.path.join(root, name)): name for name in names}  # noqa: PTH118 - many paths
    return [learned.get(os.path.realpath(path), "") for path in dataset.paths]


def _among(dataset: Dataset, files: frozenset[str]) -> Mask:
    if not files:
        return np.zeros(len(dataset), bool)
    return np.array([os.path.realpath(path) in files for path in dataset.paths], bool)


def _real(paths: Iterable[str]) -> frozenset[str]:
    return frozenset(map(os.path.realpath, paths))
