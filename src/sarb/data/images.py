"""Image files in one import: find them, decode them, transform them into network input.

``decode`` is in :mod:`sarb.data.decoding`, the transforms are in :mod:`sarb.data.transforms`. Training and
serving share both.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from sarb.data.decoding import FORMATS, MAX_PIXELS, Source, decode
from sarb.data.transforms import (
    IMAGENET_MEAN,
    IMAGENET_STD,
    LITE_MEAN,
    LITE_STD,
    EvalTransform,
    TrainTransform,
)
from sarb.errors import ImageError

__all__ = [
    "FORMATS",
    "IMAGENET_MEAN",
    "IMAGENET_STD",
    "LITE_MEAN",
    "LITE_STD",
    "MAX_PIXELS",
    "MOST_UNREADABLE",
    "SUFFIXES",
    "EvalTransform",
    "Source",
    "TrainTransform",
    "decode",
    "find_images",
]

#: suffixes of the files that :func:`find_images` collects
SUFFIXES = (
    *(".jpg", ".jpeg", ".jpe", ".mpo"),
    *(".png", ".webp", ".tif", ".tiff", ".bmp", ".gif"),
    *(".ppm", ".pgm", ".pbm", ".pnm"),
)
#: a run stops when more than this share of its images cannot be read
MOST_UNREADABLE = 0.01


def find_images(paths: Iterable[str | Path]) -> list[Path]:
    """Replace each folder by the image files in it, recursively and sorted; skip hidden files.

    Paths of files are kept as they are, even if the file does not exist (:func:`decode` reports that).
    Duplicates are dropped.

    Raises:
        ImageError: a folder has no images.
    """
    found: dict[Path, None] = {}
    for path in map(Path, paths):
        if not path.is_dir():
            found[path] = None
            continue
        inside = sorted(
            Path(folder, file) for folder, _, files in os.walk(path) for file in files if _is_image(file)
        )
        if not inside:
            raise ImageError(f"{path}: no images in this folder (looked for {', '.join(SUFFIXES)})")
        found.update(dict.fromkeys(inside))
    return list(found)


def _is_image(file: str) -> bool:
    return file.lower().endswith(SUFFIXES) and not file.startswith(".")
