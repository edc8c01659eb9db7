"""The native wide CSV: ``file_name``, optional ``split``, one column per category."""

from __future__ import annotations

import csv
from array import array
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sarb.data.checks import Problems, missing_files, say_missing
from sarb.data.dataset import Data, Dataset
from sarb.errors import ConfigError, DataError, check_share, did_you_mean
from sarb.labels import ENCODINGS, LabelMatrix, encoding_table, normalise_code, readings

SPLITS = {"train": "train", "test": "test", "valid": "valid", "val": "valid", "validation": "valid"}


def load_table(
    path: Path,
    *,
    encoding: str | None = None,
    root: Path | None = None,
    test: float = 0.2,
    valid: float = 0.0,
    split_seed: int = 0,
    delimiter: str = ",",
    check_files: bool = True,
) -> Data:
    """Read a wide CSV; categories are in column order.

    Args:
        path: the CSV, UTF-8.
        encoding: what numeric codes mean: ``signed`` 1/-1/0, ``binary`` 1/0/blank, ``minus_one_unknown`` 1/0/-1.
            The words present/absent/unknown and yes/no/? need none.
        root: folder of the images; by default the CSV's own, or its ``images/`` when the files are only there.
        test: share of the images split off for testing when no row says ``test``.
        valid: share of the training images split off for validation when no row says ``valid``.
        split_seed: seed of these two splits.
        delimiter: one character, or ``tab``.
        check_files: look for every image file.

    Raises:
        DataError: every fault of the file with line and column, at most 20 at once.
    """
    check_share("option test", test)
    check_share("option valid", valid)
    path = Path(path)
    if encoding is not None:
        encoding_table(encoding)
    table = _read(path, "\t" if delimiter == "tab" else delimiter)
    if valid and "valid" in table.splits:
        table.problems.add(f"rows say split=valid, so option valid={valid:g} cannot apply; leave it out")
    values = table.decode(encoding)
    folder = _image_root(table, root, check_files)
    table.problems.raise_any()
    everything = Dataset(LabelMatrix(values, table.categories, table.names), folder, path.stem)
    return _divide(everything, np.array(table.splits, dtype=str), test, valid, split_seed)


@dataclass
class _Table:
    """What was read: cell ``flat[n * C + c]`` is an index into ``spellings``."""

    path: Path
    categories: list[str]
    problems: Problems
    names: list[str] = field(default_factory=list)
    splits: list[str] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)
    flat: array[int] = field(default_factory=lambda: array("i"))
    spellings: dict[str, int] = field(default_factory=lambda: _Numbered())

    def decode(self, encoding: str | None) -> NDArray[np.int8]:
        """Return labels (N, C); cells that cannot be read are noted as problems."""
        cells = np.asarray(self.flat, np.int32).reshape(len(self.names), len(self.categories))
        times = np.bincount(cells.ravel(), minlength=len(self.spellings)).tolist()
        codes: Counter[str] = Counter()
        for spelling, number in self.spellings.items():
            codes[normalise_code(spelling)] += times[number]
        encoding = encoding or self.guess(codes, cells)
        meaning = encoding_table(encoding)
        known = [normalise_code(spelling) in meaning for spelling in self.spellings]
        if not all(known):
            self.note_bad(
                np.argwhere(~np.array(known)[cells]), cells, f"expected for encoding {encoding}: {_codes(encoding)}"
            )
        lookup = np.array([meaning.get(normalise_code(spelling), 0) for spelling in self.spellings], np.int8)
        return lookup[cells] if cells.size else np.zeros(cells.shape, np.int8)

    def guess(self, codes: Counter[str], cells: NDArray[np.int32]) -> str:
        """Return the encoding where the cells leave no doubt; raise with the possible readings otherwise."""
        words = [code for code in codes if code and code in ENCODINGS["words"]]
        if words or not set(codes) - {""}:
            return "words"
        possible = readings(codes)
        if possible:
            shown = "".join(f"\n  {_option(name)}: {_counts(count)}" for name, count in possible.items())
            raise DataError(f"{self.path}: say what its codes mean, they can be read as{shown}")
        numeric = {code for name, table in ENCODINGS.items() if name != "words" for code in table}
        strange = [normalise_code(spelling) not in numeric for spelling in self.spellings]
        if any(strange):
            self.note_bad(
                np.argwhere(np.array(strange)[cells]), cells, "expected 1, 0, -1, blank, or present/absent/unknown"
            )
            self.problems.raise_any()
        seen = ", ".join(f"{code or 'blank'} ({count} times)" for code, count in codes.items())
        each = "".join(f"\n  {_option(name)}: {_codes(name)}" for name in ENCODINGS if name != "words")
        raise DataError(f"{self.path}: no encoding has all its codes {seen}; declare one to see the other cells{each}")

    def note_bad(self, where: NDArray[np.intp], cells: NDArray[np.int32], expected: str) -> None:
        spelled = list(self.spellings)
        for row, column in where[: self.problems.limit].tolist():
            value, category = spelled[cells[row, column]], self.categories[column]
            self.problems.add(f"line {self.lines[row]}, column '{category}': value {value!r}; {expected}")
        self.problems.count += max(0, len(where) - self.problems.limit)


class _Numbered(dict[str, int]):
    """Gives every new key the next number."""

    def __missing__(self, key: str) -> int:
        self[key] = number = len(self)
        return number


def _option(encoding: str) -> str:
    return f'-o encoding={encoding} (Python: encoding="{encoding}")'


def _counts(count: dict[str, int]) -> str:
    return ", ".join(f"{number} {meaning}" for meaning, number in count.items())


def _codes(encoding: str) -> str:
    return ", ".join(repr(code) if code else "blank" for code in ENCODINGS[encoding])


def _rows(path: Path, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Yield (line number, fields) of the lines that are not blank."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.reader(file, delimiter=delimiter)
            for row in reader:
                if row:
                    yield reader.line_num, row
    except UnicodeDecodeError:
        raise DataError(f"{path}, line {_undecodable_line(path)}: not UTF-8 text; save the file as UTF-8") from None
    except csv.Error as error:
        raise DataError(f"{path}: not a CSV file ({error})") from None
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror})") from None


def _undecodable_line(path: Path) -> int:
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            try:
                line.decode("utf-8")
            except UnicodeDecodeError:
                return number
    return 1


def _read(path: Path, delimiter: str) -> _Table:
    if len(delimiter) != 1:
        raise ConfigError([f"option delimiter is one character or 'tab', got {delimiter!r}"])
    rows = _rows(path, delimiter)
    header = [name.strip() for name in next(rows, (0, []))[1]]
    if not header:
        raise DataError(f"{path}: the file is empty; expected a header file_name,[split,]CATEGORY,…")
    _check_header(path, header)
    at, split_at = header.index("file_name"), header.index("split") if "split" in header else None
    chosen = [i for i in range(len(header)) if i not in (at, split_at)]
    # the usual order, file_name and split first, allows a fast slice
    start = len(header) - len(chosen) if chosen == list(range(len(header) - len(chosen), len(header))) else None
    table = _Table(path, [header[i] for i in chosen], Problems(path))
    seen: dict[str, int] = {}
    for line, row in rows:
        if len(row) != len(header):
            table.problems.add(f"line {line}: {len(row)} fields, the header has {len(header)}")
            continue
        name, split = row[at].strip(), "" if split_at is None else row[split_at].strip().lower()
        _check_row(table.problems, line, name, split, seen, split_at is not None)
        table.names.append(name)
        table.splits.append(SPLITS.get(split, ""))
        table.lines.append(line)
        table.flat.extend(
            map(table.spellings.__getitem__, row[start:] if start is not None else [row[i] for i in chosen])
        )
    if not table.names and not table.problems.count:
        raise DataError(f"{path}: there is a header, but no row")
    return table


def _check_header(path: Path, header: list[str]) -> None:
    if "file_name" not in header:
        other = next((mark for mark in ";\t" if len(header) == 1 and mark in header[0]), None)
        if other:
            option = "tab" if other == "\t" else '";"'
            raise DataError(f"{path}, line 1: no comma in the header; add -o delimiter={option}")
        near = did_you_mean("file_name", header).replace("Did you mean", "Rename").replace("?", " to 'file_name'.")
        few = ", ".join(header[:5]) + (", …" if len(header) > 5 else "")
        raise DataError(f"{path}, line 1: the header has no column 'file_name', only {few}.{near}")
    problems = Problems(f"{path}, line 1")
    for number, name in enumerate(header, 1):
        if not name:
            problems.add(f"column {number} has no name")
        elif name in header[: number - 1]:
            problems.add(f"column '{name}' occurs twice, as number {header.index(name) + 1} and {number}")
    if not set(header) - {"file_name", "split"}:
        problems.add("the header names no category")
    problems.raise_any()


def _check_row(problems: Problems, line: int, name: str, split: str, seen: dict[str, int], has_split: bool) -> None:
    if not name:
        problems.add(f"line {line}, column 'file_name': empty")
    elif (first := seen.setdefault(name, line)) != line:
        problems.add(f"file_name '{name}' occurs twice, on lines {first} and {line}")
    if has_split and split not in SPLITS:
        problems.add(f"line {line}, column 'split': value {split!r}; expected train, test or valid")


def _image_root(table: _Table, root: Path | None, check_files: bool) -> Path:
    """Return the folder of the CSV or its ``images/``, wherever the files are; raise when both would do."""
    here, below = table.path.parent, table.path.parent / "images"
    asked = table.names if check_files else table.names[:1]
    places = [Path(root).expanduser()] if root is not None else [here, below]
    missing = {place: missing_files(place, asked) if place.is_dir() else asked for place in places}
    found = [place for place in places if len(missing[place]) < len(asked)]
    # an absolute name is found from anywhere and says nothing about the folder
    if len(found) == 2 and not all(Path(name).is_absolute() for name in asked):
        raise DataError(f"{table.path}: image files are found in {here} and in {below}; add -o root=DIR to say which")
    chosen = found[0] if found else places[0]
    if check_files and missing[chosen]:
        hint = "" if found or root is not None else "; add -o root=DIR if they are elsewhere"
        table.problems.add(say_missing(missing[chosen], len(asked), chosen) + hint)
    return chosen


def _divide(everything: Dataset, splits: NDArray[np.str_], test: float, valid: float, seed: int) -> Data:
    """Divide by the split column; split off at random what no row names."""
    notes: dict[str, object] = {"test_split": "split column"}
    if (splits == "test").any():
        train, held = everything.take((splits != "test") & (splits != "valid")), everything.take(splits == "test")
    else:
        train, held = everything.take(splits != "valid").split(test, seed)
        notes["test_split"] = f"random share {test:g}, seed {seed}"
    validation = everything.take(splits == "valid") if (splits == "valid").any() else None
    if validation is None and valid:
        train, validation = train.split(valid, seed)
        notes["valid_split"] = f"random share {valid:g}, seed {seed}"
    return Data(train, held, validation, everything.name, notes)
