"""Find the column with the image names of a table: by its name, or because all its values are files."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from sarb.data.check.problems import Problems, fault
from sarb.data.parse.messages import counted, few
from sarb.data.parse.rows import Rows
from sarb.data.readers.image_files import PROBES, folder_below, is_file, looks_like_image
from sarb.errors import data_option, near_name

#: names that other tools use for the column of image names
USUAL_FILE_COLUMNS = ("image", "filename", "file", "path", "fname")


@dataclass(frozen=True)
class Lookup:
    """A table in which the column of image names is looked for.

    Args:
        path: the table.
        header: its columns.
        reopen: reads it again, the header first.
        folders: where the images may be; empty if nobody should look for them.
        taken: columns that have another purpose.
    """

    path: Path
    header: Sequence[str]
    reopen: Callable[[], Rows]
    folders: Sequence[Path]
    taken: Collection[str]

    def find(self, problems: Problems, expected: Sequence[str], given: str | None = None) -> str:
        """Return the name of the column; report it if it is not one of the names that are expected.

        Args:
            problems: collects the problem, or the note that says which column was taken.
            expected: its usual names.
            given: the name that the user gave, which must be there.
        """
        names = {name.strip(): name for name in reversed(self.header)}
        here = [name for name in ([given] if given else expected) if name in names or name in self.header]
        if here:
            return here[0]
        counts, rows = self._count_files() if given is None else ({}, 0)
        whole = [name for name, count in counts.items() if count == rows]
        if len(whole) == 1:
            problems.add(
                f"the image names are read from column '{whole[0]}', the only one whose values are all files that "
                f"exist ({counted(rows, 'file')})",
                kind="read-as",
                level="note",
                line=1,
            )
            return whole[0]
        return self._report(problems, given or expected[0], counts, rows)

    def _report(self, problems: Problems, wanted: str, counts: dict[str, int], rows: int) -> str:
        """Report that the column is missing; return the one that it probably is, to go on with."""
        most = max(counts, key=counts.__getitem__, default=None)
        similar, example = (None, "") if most else self._named_like_images()
        usual = [name for name in self.header if name.lower().strip() in USUAL_FILE_COLUMNS]
        others = [name for name in self.header if name not in self.taken]
        near = most or similar or near_name(wanted, others) or (usual[0] if usual else None)
        text = f"the header has no column '{wanted}', only {few(self.header)}."
        if near is None:
            raise fault(self.path, text, line=1, kind="bad-header")
        found = f" {counts[near]:,} of its {rows:,} values are files that exist." if near in counts else ""
        if near == similar:
            found = f" Its values are names of images, such as '{example[:60]}'."
            below = folder_below(self.folders, example)
            if below is not None:
                found += f" They are in {below}: add {data_option('root', str(below))} as well."
        hint = f" Rename '{near}' to '{wanted}', or add {data_option('file_column', near)}."
        problems.add(f"{text}{hint}{found}", line=1, kind="bad-header")
        problems.raise_any()
        return near

    def _named_like_images(self) -> tuple[str | None, str]:
        """Return the column with the most values like ``a.jpg``, at least half of those looked at, and the first."""
        rows = self.reopen()
        next(rows, None)
        sample = [row for _, row in islice(rows, PROBES) if len(row) == len(self.header)]
        named: dict[str, list[str]] = {}
        for place, name in enumerate(self.header):
            if name not in self.taken:
                named[name] = [row[place] for row in sample if looks_like_image(row[place])]
        best = max(named, key=lambda name: len(named[name]), default=None)
        if best is None or not named[best] or 2 * len(named[best]) < len(sample):
            return None, ""
        return best, named[best][0]

    def _count_files(self) -> tuple[dict[str, int], int]:
        """Return how many values of each column are files, for columns that have any, and the number of rows."""
        if not self.folders:
            return {}, 0
        rows = self.reopen()
        next(rows, None)
        columns = [index for index, name in enumerate(self.header) if name not in self.taken]
        counts = dict.fromkeys(columns, 0)
        total = 0
        for _, row in rows:
            if len(row) != len(self.header):
                continue
            total += 1
            for column in columns:
                counts[column] += bool(row[column]) and any(
                    is_file(place, row[column]) for place in self.folders
                )
            if total == PROBES:  # a column of codes is not looked at any longer
                columns = [column for column in columns if counts[column]]
        return {self.header[column]: count for column, count in counts.items() if count}, total
