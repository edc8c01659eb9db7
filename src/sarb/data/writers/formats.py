"""One writer per table format; :mod:`sarb.data.writers.write` decides what to write."""

from __future__ import annotations

import io
import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sarb.data.readers.list_delimiter import DELIMITERS
from sarb.data.readers.list_table import categories_file
from sarb.data.readers.parquet import need_pyarrow
from sarb.errors import DataError
from sarb.files import atomic_write, atomic_writes, cell, naming
from sarb.labels import ABSENT, PRESENT, UNKNOWN, LabelMatrix

#: order of the three possible texts of a cell
LABELS = (ABSENT, UNKNOWN, PRESENT)
#: columns that are formatted together: 3**5 texts are made once, instead of five cells for each row
GROUP = 5
#: rows that are formatted at a time
BLOCK = 4096
#: rows in a row group of a Parquet file
ROW_GROUP = 100_000


@dataclass(frozen=True)
class Sheet:
    """The content of a table.

    Args:
        labels: (N, C), all images in the order of the source.
        splits: (N,) train, test or valid; None if reading draws the same splits again.
        encoding: name of the encoding.
        cells: label -> code, as written in the source.
        notes: notes of the source.
    """

    labels: LabelMatrix
    splits: list[str] | None
    encoding: str
    cells: dict[int, str]
    notes: Mapping[str, Any]

    def leading_columns(self) -> list[str]:
        """Return the names of the columns before the categories in a wide table."""
        clash = sorted({"file_name", "split"} & set(self.labels.categories))
        if clash:
            raise DataError(
                f"not written, category '{clash[0]}' has the name of another column; use npy or list"
            )
        return ["file_name"] if self.splits is None else ["file_name", "split"]

    def leading_cells(self) -> Iterator[tuple[str, ...]]:
        """Return the cells of those columns, row by row."""
        columns = [self.labels.paths] if self.splits is None else [self.labels.paths, self.splits]
        return zip(*columns, strict=True)


def write_csv(sheet: Sheet, path: Path) -> dict[str, Any]:
    """Write a wide table as CSV (or TSV, by its suffix), with one column per category."""
    delimiter = "\t" if path.suffix.lower() == ".tsv" else ","
    header = [*sheet.leading_columns(), *sheet.labels.categories]
    codes = [quoted(sheet.cells[label], delimiter) for label in LABELS]
    rows = joined(sheet.labels.values, [codes] * len(sheet.labels.categories), delimiter)
    with atomic_write(path) as file:
        file.write(delimiter.join(quoted(cell(name), delimiter) for name in header) + "\n")
        for leading, row in zip(sheet.leading_cells(), rows, strict=True):
            file.write(delimiter.join([*(quoted(cell(text), delimiter) for text in leading), row]) + "\n")
    guard = (
        {"excel_safe": "true"} if any(cell(name) != name for name in (*header, *sheet.labels.paths)) else {}
    )
    return {"encoding": sheet.encoding, **guard}


def write_jsonl(sheet: Sheet, path: Path) -> dict[str, Any]:
    """Write a wide table as JSON Lines: one object per image with one key per category."""
    columns = sheet.leading_columns()
    codes = [_json(typed(sheet.cells[label])) for label in LABELS]
    pairs = [[f"{_json(name)}: {code}" for code in codes] for name in sheet.labels.categories]
    rows = joined(sheet.labels.values, pairs, ", ")
    with atomic_write(path) as file:
        for leading, row in zip(sheet.leading_cells(), rows, strict=True):
            first = [f"{_json(name)}: {_json(text)}" for name, text in zip(columns, leading, strict=True)]
            file.write(f"{{{', '.join([*first, row])}}}\n")
    return {"encoding": sheet.encoding}


def write_parquet(sheet: Sheet, path: Path) -> dict[str, Any]:
    """Write a wide table as Parquet: numeric codes as nullable numbers, words as text."""
    pyarrow, parquet = need_pyarrow(path)
    columns = sheet.leading_columns()
    texts = [sheet.cells[label] if (sheet.labels.values == label).any() else "" for label in LABELS]
    codes = _typed_codes(pyarrow, [typed(text) for text in texts])
    fields = [(name, pyarrow.string()) for name in columns]
    schema = pyarrow.schema([*fields, *((name, codes.type) for name in sheet.labels.categories)])
    with (
        atomic_write(path, "wb") as file,
        parquet.ParquetWriter(file, schema, write_page_checksum=True) as writer,
    ):
        for start in range(0, len(sheet.labels), ROW_GROUP):
            rows = slice(start, start + ROW_GROUP)
            leading = [column[rows] for column in (sheet.labels.paths, sheet.splits) if column is not None]
            code_numbers = np.ascontiguousarray(sheet.labels.values[rows].T - ABSENT)
            arrays = [pyarrow.array(column, pyarrow.string()) for column in leading]
            arrays += [codes.take(pyarrow.array(column)) for column in code_numbers]
            writer.write_table(pyarrow.Table.from_arrays(arrays, schema=schema))
    return {"encoding": sheet.encoding}


def _typed_codes(pyarrow: Any, codes: list[Any]) -> Any:
    """Return the codes of absent, unknown, present (3,) in the smallest type that holds them."""
    types = {int: pyarrow.int8(), float: pyarrow.float32(), bool: pyarrow.bool_()}
    for python_type, arrow_type in types.items():
        if all(code is None or type(code) is python_type for code in codes):
            return pyarrow.array(codes, arrow_type)
    return pyarrow.array([None if code is None else str(code) for code in codes], pyarrow.string())


def write_folder(sheet: Sheet, path: Path) -> dict[str, Any]:
    """Write the metadata file of a Hugging Face ImageFolder, which belongs next to the images."""
    wide = {".csv": write_csv, ".jsonl": write_jsonl, ".parquet": write_parquet}
    return wide[path.suffix.lower()](sheet, path)


def write_list(sheet: Sheet, path: Path) -> dict[str, Any]:
    """Write a list of the present labels, ``fname,labels[,is_valid or split]``, and a file of categories."""
    categories = sheet.labels.categories
    values = sheet.labels.values
    absent, unknown = (int((values == label).sum()) for label in (ABSENT, UNKNOWN))
    if absent and unknown:
        raise DataError(
            f"not written, a list cannot distinguish {absent:,} absent from {unknown:,} unknown entries; "
            "use csv, tsv, parquet, jsonl, folder or npy"
        )
    check_lines("category", categories, stripped=True)
    rows, columns = np.nonzero(values == PRESENT)
    present = np.split(columns, np.searchsorted(rows, np.arange(1, len(values))))
    most = max(map(len, present), default=0)
    delimiter = _usable(categories, most, str(sheet.notes.get("label_delimiter", "")))
    column, splits = _split_column(sheet)
    with atomic_writes(path, categories_file(path)) as (main, side):
        with naming(path):
            main.write(f"fname,labels{column}\n")
            for name, indices, split in zip(sheet.labels.paths, present, splits, strict=True):
                cell = delimiter.join(categories[index] for index in indices)
                main.write(f"{quoted(name, ',')},{quoted(cell, ',')}{split}\n")
        side.writelines(f"{name}\n" for name in categories)
    unlisted = "unknown" if unknown else "absent" if absent else str(sheet.notes.get("unlisted", "absent"))
    options = {"unlisted": unlisted, "label_delimiter": DELIMITERS.get(delimiter, delimiter) or "none"}
    if column == ",is_valid" and "test" in (sheet.splits or ()):
        options["is_valid"] = "test"
    return options


def _usable(categories: Sequence[str], most: int, preferred: str) -> str:
    """Return a delimiter that is in no category name; empty if none is left and no image needs one."""
    by_word = {word: delimiter for delimiter, word in DELIMITERS.items()}
    preferred = by_word.get(preferred, preferred if len(preferred) == 1 else "")
    for delimiter in (preferred, " ", *DELIMITERS):
        if delimiter and not any(delimiter in name for name in categories):
            return delimiter
    if most < 2:
        return ""
    raise DataError(
        f"not written, a list needs a delimiter, but category names contain all of "
        f"{', '.join(DELIMITERS.values())}; use csv, parquet or npy"
    )


def _split_column(sheet: Sheet) -> tuple[str, list[str]]:
    """Return header and cells of the split column: fastai's ``is_valid`` for two splits, else ``split``."""
    if sheet.splits is None:
        return "", [""] * len(sheet.labels)
    if len(set(sheet.splits)) < 3:
        return ",is_valid", [f",{split != 'train'}" for split in sheet.splits]
    return ",split", [f",{split}" for split in sheet.splits]


def write_npy(sheet: Sheet, path: Path) -> dict[str, Any]:
    """Write an array of codes, and text files with the names of its rows and columns and the splits."""
    labels = sheet.labels
    check_lines("image", labels.paths)
    check_lines("category", labels.categories, stripped=True)
    codes = np.array([float(sheet.cells[label] or "nan") for label in LABELS], np.float32)
    if not np.isnan(codes).any() or labels.known.all():
        codes = np.nan_to_num(codes).astype(np.int8)
    lists = {"files": labels.paths, "categories": labels.categories}
    if sheet.splits is not None:
        lists["splits"] = tuple(sheet.splits)
    beside = (_side_file(path, name) for name in lists)
    with atomic_writes(path, *beside, mode="wb") as (main, *sides):
        with naming(path):
            main.write(array_bytes(codes[labels.values - ABSENT]))
        for lines, side in zip(lists.values(), sides, strict=True):
            side.writelines(f"{line}\n".encode() for line in lines)
    if sheet.splits is None:
        # a file of splits from before belongs to the replaced array
        _side_file(path, "splits").unlink(missing_ok=True)
    return {"encoding": sheet.encoding}


def array_bytes(array: NDArray[Any]) -> bytes:
    """The content of an ``.npy`` file; NumPy's own writing to a full disk does not say that it is full."""
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=False)
    return buffer.getvalue()


def _side_file(path: Path, name: str) -> Path:
    return path.with_name(f"{path.stem}.{name}.txt")


def check_lines(thing: str, names: Sequence[str], stripped: bool = False) -> None:
    """Raise unless a text file can hold these names, one per line."""
    for number, name in enumerate(names):
        fault = "contains a line break" if "\n" in name or name.endswith("\r") else ""
        fault = "starts or ends with a space" if stripped and name != name.strip() else fault
        fault = "starts with a byte order mark" if not number and name.startswith("\ufeff") else fault
        if fault:
            raise DataError(
                f"not written, {thing} {name!r} {fault}, which this format cannot store; use csv or parquet"
            )


def quoted(text: str, delimiter: str) -> str:
    """Quote a CSV field if necessary."""
    special = delimiter in text or '"' in text or "\n" in text or "\r" in text
    return '"' + text.replace('"', '""') + '"' if special else text


def typed(code: str) -> str | int | float | bool | None:
    """Convert a code to a typed value, such as '1' to 1, if the text of the value is the same code."""
    if code in ("", "True", "False"):
        return {"": None, "True": True, "False": False}[code]
    for number in (int, float):
        try:
            if str(number(code)) == code:
                return number(code)
        except ValueError:
            continue
    return code


def joined(values: NDArray[np.int8], cells: Sequence[Sequence[str]], delimiter: str) -> Iterator[str]:
    """Yield the rows of labels (N, C) as text; ``cells`` (C, 3): texts for absent, unknown, present."""
    known_texts: dict[tuple[tuple[str, ...], ...], NDArray[np.object_]] = {}
    groups = []
    for start in range(0, len(cells), GROUP):
        choices = tuple(tuple(spellings) for spellings in cells[start : start + GROUP])
        if choices not in known_texts:
            products = itertools.product(*choices)
            known_texts[choices] = np.array([delimiter.join(choice) for choice in products], object)
        powers = 3 ** np.arange(len(choices))[::-1]
        groups.append((slice(start, start + len(choices)), powers, known_texts[choices]))
    for first in range(0, len(values), BLOCK):
        digits = values[first : first + BLOCK].astype(np.int64) - ABSENT
        texts = [texts[digits[:, columns] @ powers].tolist() for columns, powers, texts in groups]
        yield from map(delimiter.join, zip(*texts, strict=True))


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
