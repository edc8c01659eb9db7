"""Where the image files of a data set are."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

#: how many images to look for in a folder
PROBES = 100


def is_file(folder: Path, name: str) -> bool:
    """Whether the folder contains the file; an impossible file name is not an error."""
    # os.path, because Path.is_file raises if the name is too long
    return os.path.isfile(os.path.join(folder, name))  # noqa: PTH113, PTH118


def holds_any(folder: Path, names: Sequence[str]) -> bool:
    """Whether the folder contains one of the first images."""
    return any(is_file(folder, name) for name in names[:PROBES])


def first_holding(folders: Sequence[Path], names: Sequence[str]) -> Path:
    """Return the first folder that contains one of the images, else the first that exists, else the first."""
    existing = [folder for folder in folders if folder.is_dir()]
    return next((folder for folder in existing if holds_any(folder, names)), (existing or folders)[0])


def given_folder(root: Path, base: Path) -> Path:
    """Return the folder of option ``root``, relative to the working directory or else to ``base``."""
    folder = Path(root).expanduser()
    return folder if folder.is_dir() else base / folder
