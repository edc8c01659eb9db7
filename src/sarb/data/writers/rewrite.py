"""Write labels again so that they are read like their source: same reader, same options.

A table stays a table, a list a list, an array an array: only what is new differs. All other formats become a
table of words, which needs no option.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from sarb.data.dataset import Data, Origin
from sarb.data.readers.list_table import categories_file
from sarb.data.writers.image_names import names_from, real_file
from sarb.data.writers.rewrite_list import rewrite_list
from sarb.data.writers.rewrite_npy import rewrite_npy
from sarb.data.writers.rewrite_table import rewrite_table
from sarb.data.writers.write import SIDES, check_files, target, write
from sarb.errors import DataError
from sarb.files import is_stdout
from sarb.labels import LabelMatrix

#: reader -> formats in which it can be written again
SAME = {
    "table": ("csv", "tsv", "jsonl", "parquet"),
    "folder": ("csv", "tsv", "jsonl", "parquet"),
    "list": ("csv", "tsv"),
    "npy": ("npy",),
}
_WRITERS = {"table": rewrite_table, "folder": rewrite_table, "list": rewrite_list, "npy": rewrite_npy}


class Reading(NamedTuple):
    """How to read a file that was written.

    Attributes:
        source: for ``sarb.load`` and ``--data``.
        options: of that source.
        foreign: name of the reader of the labels, if they could not be written in its form.
    """

    source: str
    options: dict[str, Any]
    foreign: str = ""

    def command(self, *words: str) -> str:
        """Return a command line that reads the file, ``sarb train --data FILE -o …``."""
        options = [word for key, value in self.options.items() for word in ("-o", f"{key}={value}")]
        return shlex.join([*words, self.source, *options])


def rewrite(data: Data, path: str | Path, *, overwrite: bool = False) -> Reading:
    """Write labels to ``path`` in the form of their source; return how to read them.

    ``sarb.load(reading.source, **reading.options)`` gives the same images, found from where the file lies, with
    these labels and in the same splits.

    Args:
        data: from ``sarb.load``, with other labels.
        path: the file; it is written completely or not at all. Its suffix says how a table is stored.
        overwrite: replace an existing file. The source itself is never replaced.

    Raises:
        DataError: the file must not be replaced, or the source has changed since it was read.
    """
    path, form = target(path, None)
    origin = data.origin
    if origin is None or not _keeps_form(origin, form):
        return _elsewhere(data, path, overwrite)
    if is_stdout(path) and origin.reader == "list":
        raise DataError(f"{path}: a list is written with a file of its categories, so it cannot be printed")
    check_files(data, written_files(data, path), overwrite)
    _check_unchanged(origin)
    _WRITERS[origin.reader](data, path, origin.options)
    return reading(data, path)


def written_files(data: Data, path: Path) -> list[Path]:
    """Return the files that :func:`rewrite` writes for ``path``: the file itself, and those beside it."""
    path, form = target(path, None)
    reader = data.origin.reader if data.origin else ""
    if form == "npy":
        return [path, *(path.with_name(path.stem + side) for side in SIDES["npy"])]
    same_list = reader == "list" and form in SAME["list"]
    return [path, *([categories_file(path)] if same_list else [])]


def reading(data: Data, path: str | Path) -> Reading:
    """Return how to read what :func:`rewrite` writes to ``path``, apart from options of drawn splits."""
    path, form = target(path, None)
    origin = data.origin
    if origin is None or not _keeps_form(origin, form):
        return Reading(str(path), {}, "" if origin is None else origin.reader)
    # a folder and a table have the same options, and a single file is a table
    options = {**origin.options, **data.found_options}
    return Reading(f"list:{path}" if origin.reader == "list" else str(path), options)


def _keeps_form(origin: Origin, form: str) -> bool:
    """Whether labels can be written in the form of their source; names with apostrophes of ours are written anew."""
    return form in SAME.get(origin.reader, ()) and not origin.options.get("excel_safe")


def default_suffix(data: Data) -> str:
    """Return the suffix of a file that stays in the form of the source."""
    source = data.train.source
    suffix = "" if source is None else source.suffix.lower()
    forms = SAME.get(data.origin.reader if data.origin else "", ())
    return suffix if suffix[1:] in forms else ".csv"


def _check_unchanged(origin: Origin) -> None:
    for file, stamp in origin.stamps.items():
        if Origin.stamp(file) != stamp:
            raise DataError(f"{file}: has changed since it was read; start again to use the new labels")


def _elsewhere(data: Data, path: Path, overwrite: bool) -> Reading:
    """Write a table that needs no option, with image names that hold from where it lies."""
    options: Mapping[str, Any] = data.origin.options if data.origin else {}
    parts = list(data.splits.values())
    names = names_from(path, parts, None)
    if options.get("root"):  # the names hold with and without this option
        names = [[real_file(file) for file in part.paths] for part in parts]
    changed: dict[str, Any] = {}
    for split, part_names in zip(data.splits, names, strict=True):
        part = data.splits[split]
        labels = LabelMatrix(part.labels.values, part.categories, part_names)
        changed[split] = replace(part, labels=labels, root=path.parent)
    written = write(
        replace(data, **changed),
        path,
        encoding=None if path.suffix == ".npy" else "words",
        overwrite=overwrite,
    )
    drawn = {name: value for name, value in written.items() if name in ("test", "valid", "split_seed")}
    needed = {"encoding": written["encoding"]} if path.suffix == ".npy" else {}
    return Reading(str(path), {**needed, **drawn}, data.origin.reader if data.origin else "")
