"""How each table format is written; :mod:`sarb.data.writers.write` says what."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sarb.data.readers.list_delimiter import DELIMITERS
from sarb.data.readers.list_table import categories_file
from sarb.data.readers.parquet import need_pyarrow
from sarb.errors import DataError
from sarb.files import atomic_write
from sarb.labels import ABSENT, PRESENT, UNKNOWN, LabelMatrix

#: the order of the three texts of a category
LABELS = (ABSENT, UNKNOWN, PRESENT)
#: columns that are spelled together, and rows at a time: 3**5 texts are made once instead of five cells a row
GROUP = 5
BLOCK = 4096
#: rows of a row group of a Parquet file
ROW_GROUP = 100_000


@dataclass(frozen=True)
class Sheet:
    """What there is to write.

    Args:
        labels: (N, C) of all images, in the order of the source.
        splits: (N,) train, test or valid; None when reading draws the same splits again.
        encoding: what the codes mean.
        cells: label -> its code, as the source spells it.
        notes: of the source.
    """

    labels: LabelMatrix
    splits: list[str] | None
    encoding: str
    cells: dict[int, str]
    notes: Mapping[str, Any]

    def own_columns(self) -> list[str]:
        """Return the columns of a wide table that are not categories."""
        clash = sorted({"file_name", "split"} & set(self.labels.categories))
        if clash:
            raise DataError(
                f"not written, category '{clash[0]}' is named like a column; npy and list can hold it"
            )
        return ["file_name"] if self.splits is None else ["file_name", "split"]

    def heads(self) -> Iterator[tuple[str, ...]]:
        """Yield the cells of those columns."""
        columns = [self.labels.paths] if self.splits is None else [self.labels.paths, self.splits]
        return zip(*columns, strict=True)


def write_csv(sheet: Sheet, path: Path) -> dict[str, Any]:
    """Write a wide table as CSV, or TSV by its suffix: one column per category."""
    mark = "\t" if path.suffix.lower() == ".tsv" else ","
    header = [*sheet.own_columns(), *sheet.labels.categories]
    codes = [quoted(sheet.cells[label], mark) for label in LABELS]
    with atomic_write(path) as file:
        file.write(mark.join(quoted(name, mark) for name in header) + "\n")
        rows = joined(sheet.labels.values, [codes] * len(sheet.labels.categories), mark)
        for head, row in zip(sheet.heads(), rows, strict=True):
            file.write(f"{mark.join(quoted(text, mark) for text in head)}{mark}{row}\n")
    return {"encoding": sheet.encoding}


def write_jsonl(sheet: Sheet, path: Path) -> dict[str, Any]:
    """Write a wide table as JSON lines: one object per image, one key per category."""
    own = sheet.own_columns()
    categories = sheet.labels.categories
    cells = [
        [f"{_json(name)}: {_json(typed(sheet.cells[label]))}" for label in LABELS] for name in categories
    ]
    with atomic_write(path) as file:
        for head, row in zip(sheet.heads(), joined(sheet.labels.values, cells, ", "), strict=True):
            named = ", ".join(f"{_json(name)}: {_json(text)}" for name, text in zip(own, head, strict=True))
            file.write(f"{{{named}, {row}}}\n")
    return {"encoding": sheet.encoding}


def write_parquet(sheet: Sheet, path: Path) -> dict[str, Any]:
    """Write a wide table as Parquet: numeric codes as numbers with nulls, words as text."""
    pyarrow, parquet = need_pyarrow(path)
    own = sheet.own_columns()
    categories = sheet.labels.categories
    occurs = [(sheet.labels.values == label).any() for label in LABELS]
    texts = [sheet.cells[label] if here else "" for label, here in zip(LABELS, occurs, strict=True)]
    codes = _typed_codes(pyarrow, [typed(text) for text in texts])
    kinds = [pyarrow.string()] * len(own) + [codes.type] * len(categories)
    schema = pyarrow.schema(list(zip([*own, *categories], kinds, strict=True)))
    with (
        atomic_write(path, "wb") as file,
        parquet.ParquetWriter(file, schema, write_page_checksum=True) as writer,
    ):
        for start in range(0, len(sheet.labels), ROW_GROUP):
            rows = slice(start, start + ROW_GROUP)
            heads = [sheet.labels.paths[rows], *([] if sheet.splits is None else [sheet.splits[rows]])]
            places = np.ascontiguousarray(sheet.labels.values[rows].T - ABSENT)
            cells = [codes.take(pyarrow.array(column)) for column in places]
            arrays = [pyarrow.array(head, pyarrow.string()) for head in heads] + cells
            writer.write_table(pyarrow.Table.from_arrays(arrays, schema=schema))
    return {"encoding": sheet.encoding}


def _typed_codes(pyarrow: Any, codes: list[Any]) -> Any:
    """Return the codes of absent, unknown, present (3,) as the narrowest type that holds those that occur."""
    for kind, arrow in ((int, pyarrow.int8()), (float, pyarrow.float32()), (bool, pyarrow.bool_())):
        if all(code is None or type(code) is kind for code in codes):
            return pyarrow.array(codes, arrow)
    return pyarrow.array([None if code is None else str(code) for code in codes], pyarrow.string())


def write_folder(sheet: Sheet, path: Path) -> dict[str, Any]:
    """Write the metadata file of a Hugging Face ImageFolder; it belongs beside the images."""
    wide = {".csv": write_csv, ".jsonl": write_jsonl, ".parquet": write_parquet}
    return wide[path.suffix.lower()](sheet, path)


def write_list(sheet: Sheet, path: Path) -> dict[str, Any]:
    """Write the present labels of each image, ``fname,labels[,is_valid or split]``, and the categories
    beside.
    """
    categories = sheet.labels.categories
    values = sheet.labels.values
    absent, unknown = (int((values == label).sum()) for label in (ABSENT, UNKNOWN))
    if absent and unknown:
        raise DataError(
            f"not written, a list cannot tell {absent:,} absent from {unknown:,} unknown entries; "
            "csv, tsv, parquet, jsonl, folder and npy can"
        )
    check_lines("category", categories, stripped=True)
    rows, columns = np.nonzero(values == PRESENT)
    shown = np.split(columns, np.searchsorted(rows, np.arange(1, len(values))))
    mark = _usable(categories, max(map(len, shown), default=0), str(sheet.notes.get("label_delimiter", "")))
    column, words = _split_column(sheet.splits)
    with ExitStack() as files:
        main, side = _open_all(files, path, categories_file(path))
        main.write(f"fname,labels{column}\n")
        for name, places, word in zip(sheet.labels.paths, shown, words or [""] * len(shown), strict=True):
            cell = mark.join(categories[place] for place in places)
            main.write(f"{quoted(name, ',')},{quoted(cell, ',')}{word}\n")
        side.writelines(f"{name}\n" for name in categories)
    unlisted = "unknown" if unknown else "absent" if absent else str(sheet.notes.get("unlisted", "absent"))
    options = {"unlisted": unlisted, "label_delimiter": DELIMITERS.get(mark, mark) or "none"}
    return (
        {**options, "is_valid": "test"}
        if column == ",is_valid" and "test" in (sheet.splits or ())
        else options
    )


def _usable(categories: Sequence[str], most: int, own: str) -> str:
    """Return a delimiter that is in no category: the source's own, else a usual one, none if no image has
    two.
    """
    words = {word: mark for mark, word in DELIMITERS.items()}
    for mark in (words.get(own, own if len(own) == 1 else ""), " ", *DELIMITERS):
        if mark and not any(mark in name for name in categories):
            return mark
    if most < 2:
        return ""
    raise DataError(
        f"not written, a list needs a character between labels, and {', '.join(DELIMITERS.values())} are all in names "
        "of categories; csv, parquet and npy need none"
    )


def _split_column(splits: list[str] | None) -> tuple[str, list[str]]:
    """Return the column fastai knows where it can say it, for training images and one other kind, and its
    cells.
    """
    if splits is None:
        return "", []
    if len(set(splits)) < 3:
        return ",is_valid", [f",{word != 'train'}" for word in splits]
    return ",split", [f",{word}" for word in splits]


def write_npy(sheet: Sheet, path: Path) -> dict[str, Any]:
    """Write an array of codes, and beside it the names of its rows and columns, and the splits, as text."""
    labels = sheet.labels
    check_lines("image", labels.paths)
    check_lines("category", labels.categories, stripped=True)
    codes = np.array([float(sheet.cells[label] or "nan") for label in LABELS], np.float32)
    if not np.isnan(codes).any() or labels.known.all():
        codes = np.nan_to_num(codes).astype(np.int8)
    lists = {"files": labels.paths, "categories": labels.categories, "splits": sheet.splits}
    places = {name: path.with_name(f"{path.stem}.{name}.txt") for name in lists}
    with ExitStack() as files:
        named = [name for name, lines in lists.items() if lines is not None]
        main, *sides = _open_all(files, path, *(places[name] for name in named), binary=True)
        np.save(main, codes[labels.values - ABSENT], allow_pickle=False)
        for name, side in zip(named, sides, strict=True):
            side.writelines(f"{line}\n".encode() for line in lists[name] or ())
    if sheet.splits is None:
        places["splits"].unlink(missing_ok=True)  # it told the splits of the file that is now replaced
    return {"encoding": sheet.encoding}


def _open_all(files: ExitStack, *paths: Path, binary: bool = False) -> list[Any]:
    """Open files that appear together when all are written; the first, which names the set, appears last."""
    return [files.enter_context(atomic_write(path, "wb" if binary else "w")) for path in paths]


def check_lines(what: str, names: Sequence[str], stripped: bool = False) -> None:
    """Raise unless a text file can hold these names, one per line."""
    for number, name in enumerate(names):
        fault = "holds a line break" if "\n" in name or name.endswith("\r") else ""
        fault = "starts or ends with a space" if stripped and name != name.strip() else fault
        fault = "starts with a byte order mark" if not number and name.startswith("\ufeff") else fault
        if fault:
            raise DataError(
                f"not written, {what} {name!r} {fault}, which this format cannot hold; csv and parquet can"
            )


def quoted(text: str, mark: str) -> str:
    """Return a field of a CSV file."""
    special = mark in text or '"' in text or "\n" in text or "\r" in text
    return '"' + text.replace('"', '""') + '"' if special else text


def typed(code: str) -> str | int | float | bool | None:
    """Return a code as a typed file holds it, only where it is spelled the same when it is read: '1' is 1."""
    if code in ("", "True", "False"):
        return {"": None, "True": True, "False": False}[code]
    for kind in (int, float):
        try:
            if str(kind(code)) == code:
                return kind(code)
        except ValueError:
            continue
    return code


def joined(values: NDArray[np.int8], cells: Sequence[Sequence[str]], mark: str) -> Iterator[str]:
    """Yield each row of labels (N, C) as text; ``cells`` (C, 3) spells absent, unknown, present of each
    category.
    """
    made: dict[tuple[tuple[str, ...], ...], NDArray[np.object_]] = {}
    groups = []
    for start in range(0, len(cells), GROUP):
        choices = tuple(tuple(three) for three in cells[start : start + GROUP])
        if choices not in made:
            made[choices] = np.array([mark.join(choice) for choice in itertools.product(*choices)], object)
        groups.append((start, 3 ** np.arange(len(choices))[::-1], made[choices]))
    for first in range(0, len(values), BLOCK):
        block = values[first : first + BLOCK].astype(np.int64) - ABSENT
        texts = [
            texts[block[:, start : start + len(powers)] @ powers].tolist() for start, powers, texts in groups
        ]
        yield from map(mark.join, zip(*texts, strict=True))


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
