"""Write a wide table again, with new labels, in the form of the source."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from sarb.data.check.problems import Problems
from sarb.data.dataset import Data
from sarb.data.parse.text import usual_delimiter
from sarb.data.readers.parquet import need_pyarrow
from sarb.data.readers.table import ignored, open_rows
from sarb.data.readers.table_header import FILE_COLUMN, Columns, Layout
from sarb.data.writers.arrangement import without_drawn
from sarb.data.writers.csv_edit import CsvStyle, edited
from sarb.data.writers.edits import Edits
from sarb.data.writers.formats import typed
from sarb.data.writers.image_names import names_from
from sarb.data.writers.typed_edit import edit_jsonl, edit_parquet
from sarb.files import atomic_write

TYPED = (".parquet", ".jsonl")


def rewrite_table(data: Data, path: Path, options: Mapping[str, Any]) -> None:
    """Write all rows of the source to ``path``; only labels and names that differ are written anew.

    A file of the same kind as the source keeps its columns, their order and types, delimiter, quotes, line ends and
    character set. The files of a folder with one metadata file per split become one table with a split column.

    Args:
        data: the labels to write, with the lines and files they come from.
        path: the table.
        options: with which the source was read, and the table will be.
    """
    jobs = _jobs(data, path, options)
    source = next(iter(jobs))
    kinds = {file.suffix.lower() if file.suffix.lower() in TYPED else "text" for file in (source, path)}
    if len(jobs) > 1 or len(kinds) > 1 or _delimiter(source, options) != _delimiter(path, options):
        _write_grid(_grid(jobs), path, source, options)
        return
    job = jobs[source]
    if kinds == {".jsonl"}:
        edit_jsonl(source, path, job.edits, job.file_column, job.added, options.get("charset"))
    elif kinds == {".parquet"}:
        edit_parquet(source, path, job.edits, job.file_column, job.added)
    else:
        style = CsvStyle.of(source, _delimiter(source, options), options.get("charset"))
        style.write(path, edited(style, source, job.changes, [job.added] if job.added else []))


def _delimiter(path: Path, options: Mapping[str, Any]) -> str:
    return str(options.get("delimiter") or usual_delimiter(path))


@dataclass
class _Job:
    """One file to read: its columns, what is new in it, and the name of a split column to add, if any."""

    file: Path
    options: Mapping[str, Any]
    header: list[str]
    layout: Layout
    edits: Edits
    file_column: str
    added: str | None

    def __post_init__(self) -> None:
        place = dict(zip(self.layout.categories, self.layout.chosen, strict=True))
        self.columns = [place[name] for name in self.edits.categories]

    def changes(self, line: int, cells: list[str]) -> dict[int, str]:
        """Return column -> new text."""
        labels = self.edits.labels(line, [cells[column] for column in self.columns])
        new = {self.columns[place]: self.edits.spelled[label] for place, label in labels.items()}
        name = self.edits.name(line, cells[self.layout.file])
        if name is not None:
            new[self.layout.file] = name
        if self.added is not None:
            new[len(self.header)] = self.edits.splits.get(line, "train")
        return new

    def rows(self) -> Iterator[dict[str, str]]:
        """Yield the new rows as column -> cell."""
        header = [*self.header, *([self.added] if self.added else [])]
        rows = _open(self.file, self.options)
        next(rows)
        for line, cells in rows:
            row = [*cells, *([""] if self.added else [])]
            for column, text in self.changes(line, cells).items():
                row[column] = text
            yield dict(zip(header, row, strict=True))


def _open(file: Path, options: Mapping[str, Any]) -> Iterator[tuple[int, list[str]]]:
    ignore = ignored(str(options.get("ignore", "")))
    return open_rows(file, options.get("delimiter"), options.get("charset"), ignore)


def _jobs(data: Data, path: Path, options: Mapping[str, Any]) -> dict[Path, _Job]:
    """Return the work for each label file."""
    splits = dict(data.splits)
    names = dict(zip(splits, names_from(path, list(splits.values()), options.get("root")), strict=True))
    words = np.concatenate([np.full(len(part), split, "<U5") for split, part in splits.items()])
    written = without_drawn(data.notes, words)[0]
    own = dict(
        zip(splits, np.split(written, np.cumsum([len(part) for part in splits.values()])[:-1]), strict=True)
    )
    files: dict[Path, list[str]] = {}
    for split, part in splits.items():
        assert part.source is not None
        files.setdefault(part.source, []).append(split)
    from_folder = (
        data.origin is not None and data.origin.reader == "folder" and bool((written != "train").any())
    )
    jobs = {}
    for file, here in files.items():
        edits = Edits(
            [splits[split] for split in here],
            [names[split] for split in here],
            [str(own[split][0]) for split in here],
            data.notes,
        )
        jobs[file] = _job(file, edits, data.notes, options, from_folder)
    return jobs


def _job(
    file: Path, edits: Edits, notes: Mapping[str, Any], options: Mapping[str, Any], from_folder: bool
) -> _Job:
    header = next(_open(file, options))[1]
    split = str(options.get("split_column", "split"))
    file_column = str(notes.get("file_column", FILE_COLUMN))
    columns = Columns(file_column, split, ignored(str(options.get("ignore", ""))))
    layout = columns.find(file, header, Problems(file))
    exact = header[layout.file]
    return _Job(
        file, options, header, layout, edits, exact, split if from_folder and layout.split is None else None
    )


@dataclass
class _Grid:
    """A table as text, with the columns that hold codes."""

    header: list[str]
    rows: list[list[str]]
    codes: set[str]


def _grid(jobs: Mapping[Path, _Job]) -> _Grid:
    """Return the rows of all files under one header; a column that a file does not have is blank there."""
    rows = [row for job in jobs.values() for row in job.rows()]
    header = list(dict.fromkeys(name for row in rows for name in row))
    first = next(iter(jobs.values()))
    order = dict.fromkeys([*first.header, *header])
    return _Grid(
        list(order), [[row.get(name, "") for name in order] for row in rows], set(first.edits.categories)
    )


def _write_grid(grid: _Grid, path: Path, source: Path, options: Mapping[str, Any]) -> None:
    suffix = path.suffix.lower()
    if suffix == ".jsonl":
        with atomic_write(path) as file:
            file.writelines(f"{json.dumps(row, ensure_ascii=False)}\n" for row in _typed_rows(grid))
    elif suffix == ".parquet":
        pyarrow, parquet = need_pyarrow(path)
        with atomic_write(path, "wb") as file:
            parquet.write_table(_arrow_table(pyarrow, grid), file, write_page_checksum=True)
    else:
        delimiter = _delimiter(path, options)
        style = CsvStyle("\t" if delimiter == "tab" else delimiter)
        if source.suffix.lower() not in TYPED:
            like = CsvStyle.of(source, _delimiter(source, options), options.get("charset"))
            style = CsvStyle(style.delimiter, like.codec, like.byte_order_mark, like.line_end)
        style.write(path, map(style.row, [grid.header, *grid.rows]))


def _typed_rows(grid: _Grid) -> Iterator[dict[str, Any]]:
    for row in grid.rows:
        pairs = zip(grid.header, row, strict=True)
        yield {name: typed(cell) if name in grid.codes else cell for name, cell in pairs}


def _arrow_table(pyarrow: Any, grid: _Grid) -> Any:
    """Return codes as numbers or truth values where all of a column are, everything else as text."""
    columns: dict[str, Sequence[Any]] = {}
    for name, cells in zip(grid.header, zip(*grid.rows, strict=True), strict=True):
        values = [typed(cell) for cell in cells] if name in grid.codes else list(cells)
        kinds = {type(value) for value in values if value is not None}
        columns[name] = values if len(kinds) < 2 else [cell or None for cell in cells]
    return pyarrow.table(columns)
