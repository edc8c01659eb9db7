"""Wide tables, with one column per category: CSV, TSV, Parquet or JSON lines."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sarb.data.assemble import assemble, declared_names, find_root, image_folders
from sarb.data.check.problems import Problems, fault
from sarb.data.dataset import Data
from sarb.data.parse.codes import Codes
from sarb.data.parse.rows import Rows, full_rows, other_delimiter, split_of
from sarb.data.parse.text import csv_rows, usual_delimiter
from sarb.data.readers.file_column import Lookup
from sarb.data.readers.json_lines import json_rows
from sarb.data.readers.parquet import parquet_rows
from sarb.data.readers.table_header import FILE_COLUMN, Columns, Layout, check_declared


def load_table(
    path: Path,
    *,
    encoding: str | None = None,
    root: Path | None = None,
    file_column: str | None = None,
    split_column: str = "split",
    ignore: str = "",
    categories: str | None = None,
    delimiter: str | None = None,
    charset: str | None = None,
    check_files: bool = True,
) -> Data:
    """Read a wide table: ``file_name``, optional ``split``, one column per category, in column order.

    Args:
        path: ``.csv``, ``.tsv``, ``.parquet`` or ``.jsonl``; any other suffix is read as CSV.
        encoding: what the codes mean: ``signed`` 1/-1/0, ``binary`` 1/0/blank, ``minus_one_unknown``
            1/0/-1, or words of your own, ``Ja/Nein``. The words present/absent/unknown, yes/no/? and true/false
            need no encoding, and neither do numbers that only one encoding has.
        root: folder of the images (default: the folder of the table, or its ``images/`` if they are only
            there).
        file_column: column with the image names (default: ``file_name``, or the only column whose values are
            all files that exist).
        split_column: column with train, test or valid.
        ignore: columns that are not categories, ``id,comment``.
        categories: expected categories, ``a,b,c`` or a file with one per line; any other column is an error.
        delimiter: delimiter of a CSV, one character or ``tab``.
        charset: character set of a CSV, if not UTF-8, for example ``latin-1``.
        check_files: look for the image files to find their folder.

    Raises:
        DataError: all problems in the file, with line and column, at most 20 of each kind.
    """
    problems = Problems(path)
    table = read_table(
        problems,
        path,
        Columns(file_column, split_column, ignored(ignore)),
        encoding,
        categories=categories,
        delimiter=delimiter,
        charset=charset,
        folders=image_folders(path, root) if check_files else [],
    )
    folder = find_root(path, table.names, root, check_files)
    return assemble(
        problems,
        table.names,
        table.values,
        table.categories,
        root=folder,
        splits=table.splits,
        lines=table.lines,
        notes=table.notes,
    )


@dataclass
class Table:
    """The content of a wide table: labels (N, C), and splits (N,) that may be empty strings."""

    names: list[str]
    splits: list[str]
    values: NDArray[np.int8]
    categories: list[str]
    lines: list[int]
    notes: dict[str, object]


def read_table(
    problems: Problems,
    path: Path,
    columns: Columns,
    encoding: str | None,
    *,
    categories: str | None = None,
    delimiter: str | None = None,
    charset: str | None = None,
    folders: Sequence[Path] = (),
) -> Table:
    """Read one file; collect problems with its cells, but raise if the file cannot be read at all.

    ``folders`` are the places in which image files are looked for, to find the column of their names.
    """

    def reopen() -> Rows:
        return open_rows(path, delimiter, charset, columns.ignore)

    rows = reopen()
    header = next(rows, (1, []))[1]
    if not header:
        expected = f"{columns.file or FILE_COLUMN},[{columns.split},]CATEGORY,…"
        raise fault(path, f"the file is empty; expected a header {expected}")
    mark = other_delimiter(problems, header)
    if mark is not None:  # only while gathering problems: go on as if the delimiter had been given
        delimiter = mark
        rows = reopen()
        header = next(rows)[1]
    lookup = Lookup(path, header, reopen, folders, {columns.split, *columns.ignore})
    columns = replace(columns, file=lookup.find(problems, [FILE_COLUMN], columns.file))
    layout = columns.find(path, header, problems)
    check_declared(problems, declared_names(categories, path), layout.categories)
    names, splits, codes = _read_cells(problems, layout, rows, columns)
    values, notes = codes.decode(encoding)
    if not names and not problems.count:
        raise fault(path, "has a header but no rows")
    notes["file_column"] = columns.file
    return Table(names, splits, values, layout.categories, codes.lines, notes)


def ignored(option: str) -> list[str]:
    """Return the columns that option ``ignore`` names."""
    return [name.strip() for name in option.split(",") if name.strip()]


def open_rows(path: Path, delimiter: str | None, charset: str | None, ignore: Collection[str] = ()) -> Rows:
    """Yield (line, cells as text), the header first; columns in ``ignore`` may hold any type."""
    suffix = path.suffix.lower()
    if suffix == ".parquet":
        return parquet_rows(path, ignore)
    if suffix == ".jsonl":
        return json_rows(path, charset, ignore)
    return csv_rows(path, delimiter or usual_delimiter(path), charset)


def _read_cells(
    problems: Problems, layout: Layout, rows: Rows, columns: Columns
) -> tuple[list[str], list[str], Codes]:
    """Read all rows: image names, splits and cells."""
    codes = Codes(problems, layout.categories, columns.ignore)
    names: list[str] = []
    splits: list[str] = []
    for line, row in full_rows(problems, rows, layout.width):
        names.append(row[layout.file])
        split = "" if layout.split is None else split_of(problems, row[layout.split], line, columns.split)
        splits.append(split)
        codes.append(line, layout.cells(row))
    return names, splits, codes
