"""The header of a wide table: find the image, split and category columns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from sarb.data.check.problems import Problems, fault
from sarb.data.parse.rows import first_columns
from sarb.errors import data_option, did_you_mean

#: usual name of the column of image names
FILE_COLUMN = "file_name"


@dataclass
class Layout:
    """Column indices, and the C categories."""

    width: int
    file: int
    split: int | None
    chosen: list[int]
    categories: list[str]

    def cells(self, row: list[str]) -> Iterable[str]:
        """Return the cells of the categories."""
        first = self.chosen[0]
        # if the categories are the last columns, as usual, a slice is faster
        if self.chosen[-1] - first + 1 == len(self.chosen) == self.width - first:
            return row[first:]
        return [row[index] for index in self.chosen]


@dataclass
class Columns:
    """Names of the columns that are not categories."""

    file: str | None = None
    split: str = "split"
    ignore: Sequence[str] = field(default_factory=tuple)

    def find(self, path: Path, header: list[str], problems: Problems) -> Layout:
        """Find the columns in the header, of which ``file`` is known; category names are kept as written."""
        assert self.file is not None
        if self.file not in header:
            header = [name.strip() if name.strip() in (self.file, self.split) else name for name in header]
        for name in (name for name in self.ignore if name not in header):
            text = f"option ignore: there is no column '{name}'.{did_you_mean(name, header)}"
            problems.add(text, line=1)
        taken = {self.file, self.split, *self.ignore}
        chosen = [index for index, name in enumerate(header) if name not in taken]
        _check_header(problems, header)
        if not chosen:
            problems.add("the header contains no category", line=1, kind="bad-header")
        problems.raise_any()
        first = first_columns(header)
        # only while gathering problems: go on without nameless and repeated columns
        chosen = [index for index in chosen if header[index].strip() and first[header[index]] == index]
        if not chosen:
            raise fault(path, "the header contains no category", line=1)
        names = [header[index] for index in chosen]
        return Layout(len(header), first[self.file], first.get(self.split), chosen, names)


def _check_header(problems: Problems, header: list[str]) -> None:
    first = first_columns(header)
    for index, name in enumerate(header):
        if not name.strip():
            problems.add(f"column {index + 1} has no name", line=1, kind="bad-header")
        elif first[name] != index:
            text = f"column '{name}' occurs twice, as columns {first[name] + 1} and {index + 1}"
            problems.add(text, line=1, column=name, kind="bad-header")


def check_declared(problems: Problems, declared: list[str] | None, columns: list[str]) -> None:
    """Report differences between the category columns and the declared categories."""
    if declared is None:
        return
    for name in (name for name in columns if name not in declared):
        near = did_you_mean(name, declared)
        text = f"unknown category '{name}'.{near} Exclude the column with {data_option('ignore', name)}"
        problems.add(text, kind="unknown-category", line=1, column=name, value=name)
    for name in (name for name in declared if name not in columns):
        text = f"category '{name}' has no column.{did_you_mean(name, columns)}"
        problems.add(text, kind="missing-category", line=1)
