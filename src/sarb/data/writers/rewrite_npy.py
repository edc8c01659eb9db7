"""Write an array of codes again, with new labels, in the form of the source."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sarb.data.dataset import Data
from sarb.data.parse.text import text_lines
from sarb.data.readers.npy import listed_lines
from sarb.data.writers.edits import Edits
from sarb.data.writers.formats import array_bytes, check_lines
from sarb.data.writers.image_names import names_from
from sarb.errors import DataError
from sarb.files import atomic_writes, naming
from sarb.labels import UNKNOWN, encoding_table


def rewrite_npy(data: Data, path: Path, options: Mapping[str, Any]) -> None:
    """Write the array with its new labels, and the text files that go with it.

    Args:
        data: the labels to write, with the rows they come from.
        path: the array.
        options: with which the source was read, and the array will be.
    """
    splits = list(data.splits.values())
    source = splits[0].source
    assert source is not None
    edits = Edits(splits, names_from(path, splits, options.get("root")), list(data.splits), data.notes)
    array = np.load(source, allow_pickle=False)
    lists = _lists(source, path, edits, options)
    new = _changed(array, edits, str(data.notes["encoding"]))
    for lines in lists.values():
        check_lines("image", lines)
    with atomic_writes(path, *lists, mode="wb") as (main, *sides):
        with naming(path):
            main.write(array_bytes(new))
        for lines, side in zip(lists.values(), sides, strict=True):
            side.writelines(f"{line}\n".encode() for line in lines)


def _changed(array: NDArray[Any], edits: Edits, encoding: str) -> NDArray[Any]:
    """Return the array with the codes of the labels that differ, as floats if a blank needs that."""
    wanted = np.zeros(array.shape, np.int8)
    old = np.zeros(array.shape, np.int8)
    known = np.zeros(len(array), bool)
    for line, row in edits.rows.items():
        wanted[line - 1] = edits.values[row]
        known[line - 1] = True
    numbers = {"true": 1.0, "false": 0.0}
    for code, label in encoding_table(encoding).items():
        number = numbers.get(code, _number(code))
        if number is not None:
            old[array == number] = label
    differ = (wanted != old) & known[:, None]
    if array.dtype.kind == "b" and (wanted[differ] == UNKNOWN).any():
        raise DataError("not written, an array of booleans cannot hold an unknown label; write a .csv file")
    if array.dtype.kind not in "fb" and edits.spelled[UNKNOWN] == "" and (wanted[differ] == UNKNOWN).any():
        array = array.astype(np.float32)
    new = array.copy()
    for label, text in edits.spelled.items():
        written = numbers.get(text.lower(), _number(text))
        new[differ & (wanted == label)] = np.nan if written is None else written
    return new


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _lists(source: Path, path: Path, edits: Edits, options: Mapping[str, Any]) -> dict[Path, list[str]]:
    """Return text file -> lines: the names, categories and splits that a reader will look for beside ``path``."""
    charset = options.get("charset")
    given = {name: options.get(name) for name in ("files", "categories", "splits")}
    found = {name: listed_lines(source, name, given[name], charset) for name in ("files", "splits")}
    content = {name: [line for _, line in listed.lines] for name, listed in found.items() if listed}
    names = [edits.rows.get(number) for number in range(1, len(content["files"]) + 1)]
    content["files"] = [
        old if row is None else edits.names[row] for old, row in zip(content["files"], names, strict=True)
    ]
    if not given["categories"] or (source.parent / str(given["categories"])).is_file():
        content["categories"] = list(edits.categories)
    written = {}
    for name, lines in content.items():
        file = path.parent / str(given[name]) if given[name] else path.with_name(f"{path.stem}.{name}.txt")
        if given[name] and file.exists():
            _check_same(file, lines, f"{name}={given[name]}", charset)
        else:
            written[file] = lines
    return written


def _check_same(file: Path, lines: list[str], option: str, charset: str | None) -> None:
    """Raise if a file that an option names, which is not ours to replace, holds something else."""
    if [line.strip() for _, line in text_lines(file, charset)] != [line.strip() for line in lines]:
        raise DataError(
            f"{file}: option {option} leads to this file, which does not fit an array there; "
            "write the array to the folder of its source"
        )
