"""The user's labels as one table, whatever the splits, and the way back to a file."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sarb.data import Data, load
from sarb.data.writers.image_names import real_file
from sarb.data.writers.rewrite import Reading, default_suffix, reading, rewrite
from sarb.data.writers.write import target
from sarb.errors import DataError, SarbError
from sarb.labels import UNKNOWN, LabelMatrix


class Table:
    """All splits of a data source, stacked.

    Attributes:
        labels: (N, C) of all images; ``labels.paths`` are unique names, which the journal uses.
        files: N image files.
    """

    def __init__(self, data: Data) -> None:
        self.data = data
        parts = list(data.splits.values())
        self.files = [path for part in parts for path in part.paths]
        names = [name for part in parts for name in part.labels.paths]
        if len(set(names)) < len(names):  # splits with folders of their own may use a name twice
            names = [str(path) for path in self.files]
        if len(set(names)) < len(names):
            repeated = Counter(names).most_common(1)[0][0]
            raise DataError(
                f"{repeated}: is in the labels more than once, so an answer about it would be ambiguous"
            )
        self.labels = LabelMatrix(
            np.concatenate([part.labels.values for part in parts]), data.categories, names
        )

    def default_out(self) -> Path:
        """Return ``reviewed.csv`` next to the labels, or ``reviewed`` with the suffix of their file."""
        name = f"reviewed{default_suffix(self.data)}"
        origin = self.data.origin
        place = origin.path if origin and origin.reader == "folder" else self.data.train.source
        if place is None:
            return self.data.train.root / name
        return (place if place.is_dir() else place.parent) / name

    def write(self, values: NDArray[np.int8], out: Path) -> Reading:
        """Write these labels (N, C) in the form of their source; return how to read the file."""
        changed: dict[str, Any] = {}
        start = 0
        for name, part in self.data.splits.items():
            rows = values[start : start + len(part)]
            changed[name] = replace(part, labels=LabelMatrix(rows, part.categories, part.labels.paths))
            start += len(part)
        return rewrite(replace(self.data, **changed), out, overwrite=True)

    def check_out(self, out: Path, explained: NDArray[np.bool_]) -> None:
        """Refuse to replace a file that holds labels which this review did not write.

        Args:
            out: the file to be replaced.
            explained: (N, C, 3) whether absent, unknown, present is to be expected: from the source, or from
                any answer so far.
        """
        hint = "move it away, or choose another --out"
        try:
            written = Table(self._read(out))
        except SarbError as error:
            raise DataError(
                f"{out}: exists already and cannot be read as a review; {hint} ({error})"
            ) from None
        row_of = {real_file(file): row for row, file in enumerate(self.files)}
        files = [real_file(file) for file in written.files]
        if written.labels.categories != self.labels.categories or set(files) != set(row_of):
            raise DataError(
                f"{out}: exists already, and its images or categories differ from those of the labels; {hint}"
            )
        values = written.labels.values
        rows = np.array([row_of[file] for file in files], np.int64)
        codes = values[:, :, None].astype(np.int64) + 1
        allowed = np.take_along_axis(explained[rows], codes, axis=2)[:, :, 0]
        unexplained = np.argwhere(~allowed & (values != UNKNOWN))
        if len(unexplained):
            row, column = unexplained[0]
            raise DataError(
                f"{out}: {len(unexplained):,} of its labels come neither from the source nor from an answer, "
                f"for example '{written.labels.categories[column]}' of {written.labels.paths[row]}; {hint}"
            )

    def _read(self, out: Path) -> Data:
        """Read what :meth:`write` wrote; images that are missing by now do not matter."""
        how = reading(self.data, out)
        options = {**how.options, "check_files": False}
        if "file_column" in self.data.notes and not how.foreign:  # it may have been found by its files
            options["file_column"] = self.data.notes["file_column"]
        return load(how.source, **options)


def check_target(out: Path) -> Path:
    """Return the path of a review's file; raise if a review cannot be written there."""
    path, form = target(out, None)
    if form == "folder":
        raise DataError(f"{out}: a review must be a file, not a folder")
    return path
