"""Writing labels as a table: what ``sarb.load`` reads from the file is what was written.

The file keeps the source's own codes and their spelling, the order of images and categories, and their exact
names.
"""

from __future__ import annotations

import itertools
import os
import re
import shlex
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sarb.data.assemble import assemble, find_root, finish
from sarb.data.check.problems import DataWarning, Problems
from sarb.data.dataset import Data, Dataset
from sarb.data.readers.folder import METADATA
from sarb.data.writers.formats import Sheet
from sarb.errors import DataError
from sarb.labels import ENCODINGS, MEANINGS, LabelMatrix, encoding_table, normalise_code, own_spelling
from sarb.registry import find

#: format -> "module:function" that writes it
WRITERS: dict[str, str] = {
    "csv": "sarb.data.writers.formats:write_csv",
    "tsv": "sarb.data.writers.formats:write_csv",
    "jsonl": "sarb.data.writers.formats:write_jsonl",
    "parquet": "sarb.data.writers.formats:write_parquet",
    "folder": "sarb.data.writers.formats:write_folder",
    "list": "sarb.data.writers.formats:write_list",
    "npy": "sarb.data.writers.formats:write_npy",
}
#: format -> ends of the files that lie beside the one that is named
SIDES = {"list": (".categories.txt",), "npy": (".files.txt", ".categories.txt", ".splits.txt")}


def write(
    data: Data,
    path: str | Path,
    to: str | None = None,
    encoding: str | None = None,
    *,
    overwrite: bool = False,
) -> dict[str, Any]:
    """Write data as a table; return the options with which ``sarb.load("READER:path", **options)`` gives it
    again.

    Matrix, names, categories, order and splits are the same. Where the splits have different folders, the
    names begin with the folder, relative to what the folders have in common.

    Args:
        data: what to write.
        path: the file; it is written whole or not at all.
        to: a key of ``WRITERS``; by default the suffix of ``path``.
        encoding: of the codes; by default the source's own, ``binary`` for a source without codes.
        overwrite: replace an existing file. The source itself is never replaced.

    Raises:
        DataError: the format cannot hold the data, or the file must not be replaced; nothing is written.
    """
    place, form = target(path, to)
    writer = find("format to write", WRITERS, form)
    _check_place(
        data, [place, *(place.with_name(place.stem + side) for side in SIDES.get(form, ()))], overwrite
    )
    chosen, cells = _spelling(data.notes, form, encoding)
    sheet, root, drawn = _arranged(data, place)
    try:
        options = {**writer(replace(sheet, encoding=chosen, cells=cells), place), **drawn}
    except OSError as error:
        raise DataError(f"{place}: cannot be written ({error.strerror})") from None
    found = place.parent if form == "folder" else _found_root(place, sheet.labels.paths)
    return (
        options if found is not None and found.resolve() == root.resolve() else {**options, "root": str(root)}
    )


def convert(
    source: str | Path,
    out: str | Path,
    to: str | None = None,
    encoding: str | None = None,
    *,
    overwrite: bool = False,
    options: Mapping[str, Any] | None = None,
) -> str:
    """Read a source with its options and write it in another format; return the command that reads it
    again.
    """
    from sarb.data import load

    written = write(load(source, **(options or {})), out, to, encoding, overwrite=overwrite)
    place, form = target(out, to)
    said = "".join(f" -o {shlex.quote(f'{name}={value}')}" for name, value in written.items())
    return f"sarb data check {shlex.quote(f'{reader_of(form)}:{place}')}{said}"


def reader_of(form: str) -> str:
    """Return the reader of a format that is written."""
    return {"list": "list", "npy": "npy", "folder": "folder"}.get(form, "table")


def target(path: str | Path, to: str | None) -> tuple[Path, str]:
    """Return the file to write and its format, or say why they do not fit."""
    path = Path(path).expanduser()
    suffix = path.suffix.lower()
    if to is None:
        to = "folder" if path.is_dir() else suffix[1:]
        if to not in WRITERS:
            raise DataError(f"{path}: the suffix does not say the format; add --to {'|'.join(WRITERS)}")
    find("format to write", WRITERS, to)
    if to == "folder":
        path = path if suffix else path / METADATA[0]
        if path.name not in METADATA:
            raise DataError(
                f"{path}: in a folder the file is named {', '.join(METADATA[:-1])} or {METADATA[-1]}"
            )
    elif suffix != (wanted := {"list": ".csv"}.get(to, f".{to}")):
        raise DataError(f"{path}: a file of format {to} is named {path.stem}{wanted}")
    return path, to


def _check_place(data: Data, files: Sequence[Path], overwrite: bool) -> None:
    sources = [dataset.source for dataset in data.splits.values() if dataset.source is not None]
    for file in files:
        if file.exists() and any(source.exists() and file.samefile(source) for source in sources):
            raise DataError(
                f"{file}: this is the source itself, which is never changed; write to another file"
            )
    existing = [file for file in files if file.exists()]
    if existing and not overwrite:
        raise DataError(
            f"{existing[0]}: exists already; add --overwrite (Python: overwrite=True) to replace it"
        )
    if any(file.is_dir() for file in existing):
        raise DataError(f"{existing[0]}: is a folder")


def _spelling(notes: Mapping[str, Any], form: str, encoding: str | None) -> tuple[str, dict[int, str]]:
    """Return the encoding and label -> code: the source's own, unless another encoding is asked for."""
    if encoding is not None:
        encoding_table(encoding)
        if form == "list":
            raise DataError("a list holds names, no codes; leave out --encoding")
        if form == "npy" and encoding == "words":
            raise DataError(
                "an .npy file holds numbers, no words; choose signed, binary or minus_one_unknown"
            )
    own = notes.get("encoding")
    chosen = encoding or (own if own in ENCODINGS and not (form == "npy" and own == "words") else "binary")
    codes = notes.get("codes") if chosen == own else None
    table = encoding_table(chosen)
    if not codes or any(
        table.get(normalise_code(codes.get(word, " "))) != label for word, label in MEANINGS.items()
    ):
        codes = own_spelling(chosen, {})
    return chosen, {label: codes[word] for word, label in MEANINGS.items()}


def _arranged(data: Data, path: Path) -> tuple[Sheet, Path, dict[str, Any]]:
    """Put the splits together again; return them, the folder of the images and the options that draw the
    splits.
    """
    root, parts = _names(data)
    order = _order(list(data.splits.values()))
    values = np.concatenate([dataset.labels.values for dataset in data.splits.values()])[order]
    names = [name for part in parts.values() for name in part]
    labels = LabelMatrix(values, data.categories, [names[row] for row in order])
    words = np.repeat(np.array(list(parts), "<U5"), [len(part) for part in parts.values()])[order]
    for said, options in (_drawn(data.notes, words), (words, {} if "test" in parts else {"test": 0})):
        sheet = Sheet(labels, said.tolist() if (said != "train").any() else None, "", {}, data.notes)
        if _read_again(sheet, path, options) == parts:
            break
    return sheet, root, options


def _names(data: Data) -> tuple[Path, dict[str, tuple[str, ...]]]:
    """Return the one folder of all images, and split -> their names in it."""
    if not len(data.train):
        raise DataError("not written, there is no image to train on")
    if not data.categories or not all(name.strip() for name in data.categories):
        raise DataError(
            "not written, " + ("a category has no name" if data.categories else "there is no category")
        )
    roots = {dataset.root for dataset in data.splits.values()}
    if len(roots) == 1:
        return data.train.root, {name: dataset.labels.paths for name, dataset in data.splits.items()}
    common = Path(os.path.commonpath([root.absolute() for root in roots]))
    parts = {}
    for split, dataset in data.splits.items():
        below = dataset.root.absolute().relative_to(common)
        parts[split] = tuple(
            name if Path(name).is_absolute() else f"{below / name}" for name in dataset.labels.paths
        )
    return common, parts


def _order(parts: Sequence[Dataset]) -> NDArray[np.int64]:
    """Return the rows of the splits, one after the other, in the order of the source, as far as it is
    known.
    """
    lines = [
        dataset.lines for dataset in parts if dataset.lines is not None and (np.diff(dataset.lines) > 0).all()
    ]
    if len(lines) == len(parts) and len({dataset.source for dataset in parts}) == 1:
        return np.argsort(np.concatenate(lines), kind="stable")
    return np.arange(sum(map(len, parts)))


def _drawn(notes: Mapping[str, Any], words: NDArray[np.str_]) -> tuple[NDArray[np.str_], dict[str, Any]]:
    """Return the splits (N,) the source itself says, and the options that draw the others as they were
    drawn.
    """
    options: dict[str, Any] = {}
    said = words.copy()
    pool = int((words == "train").sum())
    for name in ("valid", "test"):  # the validation images were drawn last, from what was left
        match = re.fullmatch(r"random share (\S+), seed (\d+)", str(notes.get(f"{name}_split", "")))
        if match:
            count = int((words == name).sum())
            share = float(match[1])
            pool += count
            # the note has six digits of the share
            options[name] = share if round(share * pool) == count else count / max(1, pool)
            options["split_seed"] = int(match[2])
            said[words == name] = "train"
    usual = {"test": 0.2, "split_seed": 0}
    return said, {name: value for name, value in options.items() if usual.get(name) != value}


def _read_again(sheet: Sheet, path: Path, options: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    """Return the names of the images of each split as a reader will divide them."""
    labels = sheet.labels
    for name in itertools.chain(labels.categories, labels.paths):
        if not name.isascii() and name.encode("utf-8", "ignore").decode() != name:
            raise DataError(f"{path}: not written, {name!r} is not Unicode text")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DataWarning)
            data = assemble(
                Problems(path),
                labels.paths,
                labels.values,
                labels.categories,
                root=Path(),
                splits=sheet.splits,
            )
            data = finish(data, **options, check_files=False)
    except DataError as error:
        raise DataError(f"{path}: not written, it could not be read again: {error}", error.findings) from None
    return {name: dataset.labels.paths for name, dataset in data.splits.items()}


def _found_root(path: Path, names: Sequence[str]) -> Path | None:
    """Return the folder of the images a reader will find by itself."""
    try:
        return find_root(path, names[:100], None)
    except DataError:
        return None
