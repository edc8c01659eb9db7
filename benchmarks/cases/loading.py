"""Decoding and augmenting JPEGs: images per second on one core."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from benchmarks.harness import Case, lazy
from sarb.batches.loader import Pictures
from sarb.data.images import IMAGENET_MEAN, IMAGENET_STD, TrainTransform, decode


class Folder:
    """JPEGs with photograph-like detail in a temporary folder, which is deleted with this object."""

    def __init__(self, count: int, width: int = 640, height: int = 480) -> None:
        self.folder = tempfile.TemporaryDirectory()
        random = np.random.default_rng(0)
        self.files = [Path(self.folder.name, f"{number}.jpg") for number in range(count)]
        for file in self.files:
            coarse = Image.fromarray(random.integers(0, 256, (30, 40, 3), np.uint8)).resize((width, height))
            grain = random.normal(0, 6, (height, width, 1))
            Image.fromarray((np.asarray(coarse) + grain).clip(0, 255).astype(np.uint8)).save(file, quality=90)


def literal(file: Path, size: int, random: np.random.Generator) -> NDArray[np.float32]:
    """Decode, resize to R², crop, resize to S², flip, normalise as in the paper; each step makes an image."""
    whole = round(size * 512 / 448)
    image = Image.open(file).convert("RGB").resize((whole, whole), Image.Resampling.BICUBIC)
    side = round((1.0, 0.875, 0.75, 0.625, 0.5)[int(random.integers(5))] * whole)
    left = int(random.integers(whole - side + 1))
    top = int(random.integers(whole - side + 1))
    image = image.crop((left, top, left + side, top + side)).resize((size, size), Image.Resampling.BICUBIC)
    if random.random() < 0.5:
        image = image.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
    array = (np.array(image).astype(np.float32) - np.array(IMAGENET_MEAN)) / np.array(IMAGENET_STD)
    result: NDArray[np.float32] = array.transpose(2, 0, 1).astype(np.float32).copy()
    return result


def cases(quick: bool = False) -> list[Case]:
    """Small photos at 448 and 224, and large photos at 224, which are decoded at reduced size."""
    few, many = (2, 4) if quick else (8, 64)
    small = lazy(lambda: Folder(many))
    large = lazy(lambda: Folder(few, 4000, 3000))
    return [
        _case(small, many, "640×480", 448),
        _case(small, many, "640×480", 224),
        _case(large, few, "4000×3000", 224),
    ]


def _case(made: Callable[[], Folder], count: int, pixels: str, size: int) -> Case:
    transform = TrainTransform(size)

    def plain() -> object:
        random = np.random.default_rng(0)
        return np.stack([literal(file, size, random) for file in made().files])

    def ours() -> object:
        source = Pictures(made().files, np.zeros((count, 1), np.int8), [transform])
        return source[[(0, number) for number in range(count)]]

    return Case(
        f"loading: training loop's path, {count} JPEGs {pixels} to {size}",
        literal=plain,
        ours=ours,
        floor=lambda: [decode(file, transform.least) for file in made().files],
        note="one core; literal: full decode, resize, crop, resize, flip, normalise; "
        "floor: the decoding alone, as small as docs/images.md allows",
        items=count,
    )
