"""The native wide table, one column per category: CSV, TSV, Parquet or JSON lines."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sarb.data.assemble import SPLITS, assemble, declared_names, find_root
from sarb.data.check.problems import Problems, fault
from sarb.data.dataset import Data
from sarb.data.parse.codes import Codes
from sarb.data.parse.text import csv_rows, survey
from sarb.data.readers.parquet import nested_column, parquet_rows
from sarb.errors import did_you_mean

Rows = Iterator[tuple[int, list[str]]]
_SPACED = re.compile(r'"\s+:')
#: numbers stay as they are spelled, NaN is nothing
_JSON = json.JSONDecoder(
    parse_int=str, parse_float=str, parse_constant=lambda word: None if word == "NaN" else word
)
_TYPED: dict[Any, Any] = {None: "", True: "True", False: "False"}


def load_table(
    path: Path,
    *,
    encoding: str | None = None,
    root: Path | None = None,
    file_column: str = "file_name",
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
        encoding: what numeric codes mean: ``signed`` 1/-1/0, ``binary`` 1/0/blank, ``minus_one_unknown``
            1/0/-1. The words present/absent/unknown, yes/no/? and true/false need none.
        root: folder of the images; by default the table's own, or its ``images/`` when the files are only
            there.
        file_column: the column with the image names.
        split_column: the column that says train, test or valid.
        ignore: other columns to leave out, ``id,comment``.
        categories: the names there should be, ``a,b,c`` or a file with one per line; another column is an
            error.
        delimiter: of a CSV, one character or ``tab``.
        charset: of a CSV that is not UTF-8, such as ``latin-1``.
        check_files: look for the image files to find their folder.

    Raises:
        DataError: every fault of the file with line and column, at most 20 of a kind.
    """
    problems = Problems(path)
    columns = Columns(file_column, split_column, ignored(ignore))
    table = read_table(
        problems, path, columns, encoding, categories=categories, delimiter=delimiter, charset=charset
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
    """What a wide table says: labels (N, C), and ``splits`` (N,) of train, test, valid or nothing."""

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
) -> Table:
    """Read one file; what is wrong with its cells is noted, what makes it unreadable is raised."""
    rows = open_rows(path, delimiter, charset, columns.ignore)
    header = next(rows, (1, []))[1]
    if not header:
        raise fault(path, f"the file is empty; expected a header {columns.file},[{columns.split},]CATEGORY,…")
    layout = columns.find(path, header, problems)
    _check_declared(problems, declared_names(categories, path), layout.categories)
    names, splits, codes = read_cells(problems, layout, rows)
    values, notes = codes.decode(encoding)
    if not names and not problems.count:
        raise fault(path, "there is a header, but no row")
    return Table(names, splits, values, layout.categories, codes.lines, notes)


def ignored(option: str) -> list[str]:
    """Return the columns option ``ignore`` names."""
    return [name.strip() for name in option.split(",") if name.strip()]


def open_rows(path: Path, delimiter: str | None, charset: str | None, ignore: Collection[str] = ()) -> Rows:
    """Yield (line, cells as text), the header first; blank cells are empty strings. ``ignore`` may hold
    anything.
    """
    suffix = path.suffix.lower()
    if suffix == ".parquet":
        return parquet_rows(path, ignore)
    if suffix == ".jsonl":
        return _json_rows(path, charset, ignore)
    return csv_rows(path, delimiter or ("tab" if suffix == ".tsv" else ","), charset)


@dataclass
class Layout:
    """Where things are in a row."""

    width: int
    file: int
    split: int | None
    chosen: list[int]
    categories: list[str]

    def cells(self, row: list[str]) -> Iterable[str]:
        """Return the cells of the categories."""
        first = self.chosen[0]
        # the usual order, categories last, allows a fast slice
        return (
            row[first:]
            if self.chosen[-1] - first + 1 == len(self.chosen) == self.width - first
            else [row[place] for place in self.chosen]
        )


@dataclass
class Columns:
    """Names of the columns that are not categories."""

    file: str = "file_name"
    split: str = "split"
    ignore: Sequence[str] = field(default_factory=tuple)

    def find(self, path: Path, header: list[str], problems: Problems) -> Layout:
        """Find them in the header; category names are kept exactly as they are written."""
        if self.file not in header:
            header = [name.strip() if name.strip() in (self.file, self.split) else name for name in header]
        if self.file not in header:
            raise self._no_file_column(path, header)
        for name in self.ignore:
            if name not in header:
                problems.add(
                    f"option ignore names column '{name}', which is not there.{did_you_mean(name, header)}",
                    line=1,
                )
        taken = {self.file, self.split, *self.ignore}
        chosen = [place for place, name in enumerate(header) if name not in taken]
        _check_header(problems, header)
        if not chosen:
            problems.add("the header names no category", line=1, kind="bad-header")
        problems.raise_any()
        places = {name: place for place, name in reversed(list(enumerate(header)))}
        chosen = [place for place in chosen if header[place].strip() and places[header[place]] == place]
        if not chosen:
            raise fault(path, "the header names no category", line=1)
        names = [header[place] for place in chosen]
        return Layout(len(header), places[self.file], places.get(self.split), chosen, names)

    def _no_file_column(self, path: Path, header: list[str]) -> Exception:
        other = next((mark for mark in ";\t|" if len(header) == 1 and mark in header[0]), None)
        if other:
            option = "tab" if other == "\t" else f'"{other}"'
            return fault(
                path, f"no comma in the header; add -o delimiter={option}", line=1, kind="bad-header"
            )
        usual = [
            name for name in header if name.lower().strip() in ("image", "filename", "file", "path", "fname")
        ]
        near = did_you_mean(self.file, header) or (f" Did you mean '{usual[0]}'?" if usual else "")
        if near:
            name = near.split("'")[1]
            near = f" Rename '{name}' to '{self.file}', or add -o file_column={name!r}."
        few = ", ".join(name[:40] for name in header[:5]) + (", …" if len(header) > 5 else "")
        text = f"the header has no column '{self.file}', only {few}.{near}"
        return fault(path, text, line=1, kind="bad-header")


def read_cells(problems: Problems, layout: Layout, rows: Rows) -> tuple[list[str], list[str], Codes]:
    """Read all rows: image names, splits (train, test, valid or nothing), and the cells as spelled."""
    codes = Codes(problems, layout.categories)
    names: list[str] = []
    splits: list[str] = []
    for line, row in rows:
        if len(row) != layout.width:
            problems.add(f"{len(row)} fields, the header has {layout.width}", line=line, kind="bad-row")
            continue
        names.append(row[layout.file])
        splits.append(_split(problems, row, layout, line))
        codes.append(line, layout.cells(row))
    return names, splits, codes


def _split(problems: Problems, row: list[str], layout: Layout, line: int) -> str:
    if layout.split is None:
        return ""
    word = row[layout.split].strip().lower()
    if word not in SPLITS:
        problems.add(
            f"value {word!r}; expected train, test or valid.{did_you_mean(word, SPLITS)}",
            kind="bad-split",
            line=line,
            column="split",
            value=word,
            expected="train, test or valid",
        )
    return SPLITS.get(word, "")


def _check_header(problems: Problems, header: list[str]) -> None:
    places: dict[str, int] = {}
    for number, name in enumerate(header, 1):
        first = places.setdefault(name, number)
        if not name.strip():
            problems.add(f"column {number} has no name", line=1, kind="bad-header")
        elif first != number:
            problems.add(
                f"column '{name}' occurs twice, as number {first} and {number}",
                line=1,
                column=name,
                kind="bad-header",
            )


def _check_declared(problems: Problems, declared: list[str] | None, found: list[str]) -> None:
    for name in found if declared is not None else ():
        if name not in (declared or ()):
            problems.add(
                f"unknown category '{name}'.{did_you_mean(name, declared or ())} Leave it out with -o ignore={name!r}",
                kind="unknown-category",
                line=1,
                column=name,
                value=name,
            )
    for name in declared or ():
        if name not in found:
            problems.add(
                f"category '{name}' has no column.{did_you_mean(name, found)}",
                kind="missing-category",
                line=1,
            )


def _json_rows(path: Path, charset: str | None, ignore: Collection[str]) -> Rows:
    """Yield the keys of all lines as a header, then the lines; a key that a line lacks is blank there.

    The file is read twice, because a million objects take ten times the memory of their text.
    """
    codec = survey(path, charset)
    keys: dict[str, None] = {}
    for _, row in _json_lines(path, codec, ignore):
        if not row.keys() <= keys.keys():
            keys.update(dict.fromkeys(row))
    if keys:
        yield 1, list(keys)
    for number, row in _json_lines(path, codec, ignore):
        cells: list[Any] = [_TYPED.get(value, value) for value in map(row.get, keys)]
        yield number, cells


def _json_lines(path: Path, codec: str, ignore: Collection[str]) -> Iterator[tuple[int, dict[str, Any]]]:
    try:
        with path.open(encoding=codec, newline="\n") as file:
            for number, line in enumerate(file, 1):
                if line.strip():
                    yield number, _json_line(path, number, line, ignore)
    except UnicodeError as error:
        raise fault(path, f"not {codec} text ({error})", kind="bad-charset") from None
    except OSError as error:
        raise fault(path, f"cannot be read ({error.strerror})") from None


def _json_line(path: Path, number: int, line: str, ignore: Collection[str]) -> dict[str, Any]:
    try:
        row = _JSON.decode(line.rstrip())
        # the slow and careful ways are gone only where the text gives a reason
        if isinstance(row, dict) and (line.count('":') != len(row) or _SPACED.search(line)):
            json.loads(line, object_pairs_hook=_pairs)
        if "\\u" in line:
            json.dumps(row, ensure_ascii=False).encode()  # half of a surrogate pair is no text
    except json.JSONDecodeError as error:
        raise fault(
            path, f"not valid JSON, {error.msg}", line=number, column=error.colno, kind="bad-json"
        ) from None
    except (RecursionError, ValueError) as error:
        reason = "nested too deeply" if isinstance(error, RecursionError) else str(error)[:200]
        raise fault(path, f"not valid JSON, {reason}", line=number, kind="bad-json") from None
    if not isinstance(row, dict):
        raise fault(path, "expected an object {…} on every line", line=number, kind="bad-json")
    for key, value in row.items() if "[" in line or line.count("{") > 1 else ():
        if isinstance(value, dict | list):
            if key not in ignore:
                raise nested_column(path, key, "a list or an object", line=number)
            row[key] = None
    return row


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Refuse a key that occurs twice, of which JSON takes the last."""
    row = dict(pairs)
    if len(row) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(
            f"'{next(name for name in names if names.count(name) > 1)}' occurs twice in one object"
        )
    return row
