"""Names of images that lead to the same files from where a new table lies."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from sarb.data.assemble import find_root, image_folders
from sarb.data.dataset import Dataset
from sarb.errors import DataError


def names_from(path: Path, parts: Sequence[Dataset], root: str | Path | None) -> list[list[str]]:
    """Return the image names to write to the table ``path``, for each part of the data.

    Names stay as they are if they lead to the same files; otherwise they are relative to the folder that a reader
    will use, or absolute if that folder does not exist.

    Args:
        path: the table to write.
        parts: the images.
        root: option ``root`` with which the table will be read.
    """
    root = None if root is None else Path(root)
    names = [list(part.labels.paths) for part in parts]
    used = _root(path, [name for part in names for name in part], root)
    if used is not None and all(_real(str(part.root)) == _real(str(used)) for part in parts):
        return names
    folder = image_folders(path, root)[0]
    if root is None or folder.is_dir():
        relative = [[_relative(file, folder) for file in part.paths] for part in parts]
        if _root(path, [name for part in relative for name in part], root) == folder:
            return relative
    return [[real_file(file) for file in part.paths] for part in parts]


def real_file(file: Path) -> str:
    """Return an absolute path without ``..`` and without links to folders."""
    return os.path.join(_real(str(file.parent)), file.name)  # noqa: PTH118 - pathlib is slow


def _root(path: Path, names: Sequence[str], root: Path | None) -> Path | None:
    """Return the image folder that a reader finds, None if it finds two."""
    try:
        return find_root(path, names, root)
    except DataError:
        return None


def _relative(file: Path, folder: Path) -> str:
    try:
        return Path(os.path.relpath(real_file(file), _real(str(folder)))).as_posix()
    except ValueError:  # on another drive
        return real_file(file)


def _real(folder: str) -> str:
    return _real_absolute(os.path.abspath(folder))  # noqa: PTH100 - the working folder may change, so it is no key


@cache
def _real_absolute(folder: str) -> str:
    return os.path.realpath(folder)
