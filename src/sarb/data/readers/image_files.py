"""Where the image files of a data set are."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

#: how many images to look for in a folder
PROBES = 100
#: endings of image names, in lower case
SUFFIXES = (".jpg", ".jpeg", ".png", ".webp", ".gif", ".bmp", ".tif", ".tiff", ".ppm")
#: how far below a folder, and in how many folders, an image is looked for that is not in it
DEPTH = 3
MOST_FOLDERS = 500


def is_file(folder: Path, name: str) -> bool:
    """Whether the folder contains the file; an impossible file name is not an error."""
    # os.path, because Path.is_file raises if the name is too long
    return os.path.isfile(os.path.join(folder, name))  # noqa: PTH113, PTH118


def holds_any(folder: Path, names: Sequence[str]) -> bool:
    """Whether the folder contains one of the first images."""
    return any(is_file(folder, name) for name in names[:PROBES])


def looks_like_image(name: str) -> bool:
    """Whether a name ends like that of an image."""
    return name.strip().lower().endswith(SUFFIXES)


def folder_below(folders: Sequence[Path], name: str) -> Path | None:
    """Return the first folder below these that contains the file; None if there is none nearby."""
    if os.path.isabs(name) or ".." in name:  # noqa: PTH117  a table must not make us look elsewhere
        return None
    level = list(folders)
    seen = 0
    for _ in range(DEPTH):
        below: list[Path] = []
        for folder in level:
            with suppress(OSError):  # not a folder, or not readable
                below += sorted(entry for entry in folder.iterdir() if entry.is_dir())
            if seen + len(below) > MOST_FOLDERS:
                break
        seen += len(below)
        for folder in below[:MOST_FOLDERS]:
            if is_file(folder, name):
                return folder
        level = below if seen <= MOST_FOLDERS else []
    return None


def first_holding(folders: Sequence[Path], names: Sequence[str]) -> Path:
    """Return the first folder that contains one of the images, else the first that exists, else the first."""
    existing = [folder for folder in folders if folder.is_dir()]
    return next((folder for folder in existing if holds_any(folder, names)), (existing or folders)[0])


def given_folder(root: Path, base: Path) -> Path:
    """Return the folder of option ``root``, relative to the working directory or else to ``base``."""
    folder = Path(root).expanduser()
    return folder if folder.is_dir() else base / folder
