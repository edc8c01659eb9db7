"""Write labels as a table from which ``sarb.load`` reads the same data again.

The file keeps the source's codes as they are written there, the order of images and categories, and their
exact names.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sarb.data.assemble import find_root
from sarb.data.dataset import Data
from sarb.data.loading import load
from sarb.data.readers.folder import METADATA
from sarb.data.writers.arrangement import arrange
from sarb.data.writers.formats import Sheet
from sarb.errors import DataError, named, setting
from sarb.files import is_excel_safe, is_stdout
from sarb.labels import ENCODINGS, MEANINGS, encoding_table, normalise_code, own_spelling
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
#: encodings of numbers
NUMERIC = tuple(name for name in ENCODINGS if name != "words")
#: formats that can be printed, the usual one first
PRINTED = ("csv", "jsonl")
#: format -> suffixes of the files that are written next to the main file
SIDES = {"list": (".categories.txt",), "npy": (".files.txt", ".categories.txt", ".splits.txt")}


def write(
    data: Data,
    path: str | Path,
    to: str | None = None,
    encoding: str | None = None,
    *,
    overwrite: bool = False,
) -> dict[str, Any]:
    """Write data as a table; return the options with which ``sarb.load`` reads it again.

    ``sarb.load("READER:path", **options)`` gives the same data: labels, names, categories, order and
    splits. If the splits are in different folders, image names start with the folder, relative to the common
    parent of all folders.

    Args:
        data: what to write.
        path: the file; it is written completely or not at all.
        to: a key of ``WRITERS``; by default the suffix of ``path``.
        encoding: encoding of the labels; by default that of the source, ``binary`` if it has none.
        overwrite: replace an existing file. The source itself is never replaced.

    Raises:
        DataError: the format cannot store the data, or the file must not be replaced; nothing is written.
        OSError: the disk is full, say; it names the file, and nothing is written.
    """
    path, form = target(path, to)
    _check_excel_safe(path, form)
    writer = find("format to write", WRITERS, form)
    sides = [path.with_name(path.stem + side) for side in SIDES.get(form, ())]
    check_files(data, [path, *sides], overwrite)
    chosen, cells = _spelling(data.notes, form, encoding)
    table = arrange(data, path)
    sheet = Sheet(table.labels, table.splits, chosen, cells, data.notes)
    options = {**writer(sheet, path), **table.options}
    root = path.parent if form == "folder" else _default_root(path, table.labels.paths)
    # a reader looks for the images by the names in the table, which have no apostrophe on the disk
    if root is None or root.resolve() != table.root.resolve() or "excel_safe" in options:
        options["root"] = str(table.root)
    return options


def convert(
    source: str | Path,
    out: str | Path,
    to: str | None = None,
    encoding: str | None = None,
    *,
    overwrite: bool = False,
    options: Mapping[str, Any] | None = None,
    known: float = 1.0,
    single_positive: bool = False,
    mask_seed: int = 0,
) -> str:
    """Read a source and write it in another format; return the command that reads the result.

    ``known``, ``single_positive`` and ``mask_seed`` hide labels as ``sarb train`` does: the same ones, so training on
    what was written gives the same model.
    """
    data = load(source, **(options or {}))
    if known < 1 or single_positive:
        data = data.hide(known, mask_seed, single_positive)
    written = write(data, out, to, encoding, overwrite=overwrite)
    path, form = target(out, to)
    words = [word for name, value in written.items() for word in ("-o", f"{name}={value}")]
    name = "FILE" if is_stdout(path) else path
    return shlex.join(["sarb", "data", "check", f"{reader_of(form)}:{name}", *words])


def reader_of(form: str) -> str:
    """Return the reader for a format."""
    return form if form in ("list", "npy", "folder") else "table"


def target(path: str | Path, to: str | None) -> tuple[Path, str]:
    """Return the file to write and its format; raise DataError if they do not match."""
    path = Path(path).expanduser()
    suffix = path.suffix.lower()
    if is_stdout(path):
        if to not in (None, *PRINTED):
            raise DataError(f"{path}: format {to} cannot be printed, only {' or '.join(PRINTED)}")
        return path, to or PRINTED[0]
    if to is None:
        to = "folder" if path.is_dir() else suffix[1:]
        if to not in WRITERS:
            raise DataError(f"{path}: expected a file that ends in .csv, .tsv, .jsonl, .parquet or .npy")
    find("format to write", WRITERS, to)
    if to == "folder":
        path = path if suffix else path / METADATA[0]
        if path.name not in METADATA:
            raise DataError(
                f"{path}: the file in a folder must be named {', '.join(METADATA[:-1])} or {METADATA[-1]}"
            )
    elif suffix != (wanted := {"list": ".csv"}.get(to, f".{to}")):
        raise DataError(f"{path}: a file of format {to} must be named {path.stem}{wanted}")
    return path, to


def _check_excel_safe(path: Path, form: str) -> None:
    if is_excel_safe() and (form == "list" or path.suffix.lower() not in (".csv", ".tsv", "")):
        raise DataError(f"{named('excel_safe')} is for wide tables in CSV and TSV; remove it to write {path}")


def check_files(data: Data, files: Sequence[Path], overwrite: bool) -> None:
    """Raise if one of the files is the source, or exists and must not be replaced."""
    sources = [dataset.source for dataset in data.splits.values() if dataset.source is not None]
    files = [file for file in files if not is_stdout(file)]
    for file in files:
        if file.exists() and any(source.exists() and file.samefile(source) for source in sources):
            raise DataError(
                f"{file}: this is the source itself, which is never changed; write to another file"
            )
    existing = [file for file in files if file.exists()]
    if existing and not overwrite:
        raise DataError(f"{existing[0]}: exists already; add {setting('overwrite')} to replace it")
    if any(file.is_dir() for file in existing):
        raise DataError(f"{existing[0]}: is a folder, not a file")


def _spelling(notes: Mapping[str, Any], form: str, encoding: str | None) -> tuple[str, dict[int, str]]:
    """Return the encoding and label -> code, those of the source unless ``encoding`` says otherwise."""
    if encoding is not None:
        encoding_table(encoding)
        if form == "list":
            raise DataError(f"a list holds names, not codes; remove {named('encoding')}")
        if form == "npy" and encoding not in NUMERIC:
            raise DataError(
                "an .npy file holds numbers, not words; choose signed, binary or minus_one_unknown"
            )
    source = str(notes.get("encoding", ""))
    usable = ("/" in source or source in ENCODINGS) and not (form == "npy" and source not in NUMERIC)
    chosen = encoding or (source if usable else "binary")
    codes = notes.get("codes") if chosen == source else None
    labels = encoding_table(chosen)
    if not codes or any(
        labels.get(normalise_code(codes.get(word, " "))) != label for word, label in MEANINGS.items()
    ):
        codes = own_spelling(chosen, {})
    return chosen, {label: codes[word] for word, label in MEANINGS.items()}


def _default_root(path: Path, names: Sequence[str]) -> Path | None:
    """Return the image folder that a reader uses by default, None if it is ambiguous."""
    try:
        return find_root(path, names[:100], None)
    except DataError:
        return None
