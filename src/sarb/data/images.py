"""Everything about image files in one import: find them, decode them, turn them into a network's input.

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

#: file names that :func:`find_images` takes for images
SUFFIXES = (
    *(".jpg", ".jpeg", ".jpe", ".mpo"),
    *(".png", ".webp", ".tif", ".tiff", ".bmp", ".gif"),
    *(".ppm", ".pgm", ".pbm", ".pnm"),
)
#: above this share of unreadable images a run stops
MOST_UNREADABLE = 0.01


def find_images(paths: Iterable[str | Path]) -> list[Path]:
    """Expand folders to the image files in them, recursively and sorted, by suffix; hidden files are left
    out.

    Files are kept as given, existing or not (:func:`decode` says what is wrong with one); repeats are
    dropped.

    Raises:
        ImageError: a folder without any image.
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
            raise ImageError(f"{path}: no image in this folder (looked for {', '.join(SUFFIXES)})")
        found.update(dict.fromkeys(inside))
    return list(found)


def _is_image(file: str) -> bool:
    return file.lower().endswith(SUFFIXES) and not file.startswith(".")
