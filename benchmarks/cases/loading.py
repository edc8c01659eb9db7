"""Decoding and augmenting JPEGs, images per second of one core."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from benchmarks.harness import Case, lazy
from sarb.data.images import IMAGENET_MEAN, IMAGENET_STD, TrainTransform, decode
from sarb.loader import Pictures


class Folder:
    """JPEGs of 640×480 with photograph-like detail in a temporary folder that goes away with this object."""

    def __init__(self, count: int) -> None:
        self.folder = tempfile.TemporaryDirectory()
        random = np.random.default_rng(0)
        self.files = [Path(self.folder.name, f"{number}.jpg") for number in range(count)]
        for file in self.files:
            coarse = Image.fromarray(random.integers(0, 256, (30, 40, 3), np.uint8)).resize((640, 480))
            grain = random.normal(0, 6, (480, 640, 1))
            Image.fromarray((np.asarray(coarse) + grain).clip(0, 255).astype(np.uint8)).save(file, quality=90)


def literal(file: Path, size: int, random: np.random.Generator) -> NDArray[np.float32]:
    """The paper's words: decode, resize to R², crop, resize to S², flip, normalise; each step makes an image."""
    whole = round(size * 512 / 448)
    image = Image.open(file).convert("RGB").resize((whole, whole), Image.Resampling.BICUBIC)
    side = round((1.0, 0.875, 0.75, 0.625, 0.5)[int(random.integers(5))] * whole)
    left, top = (int(random.integers(whole - side + 1)) for _ in range(2))
    image = image.crop((left, top, left + side, top + side)).resize((size, size), Image.Resampling.BICUBIC)
    if random.random() < 0.5:
        image = image.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
    array = (np.array(image).astype(np.float32) - np.array(IMAGENET_MEAN)) / np.array(IMAGENET_STD)
    result: NDArray[np.float32] = array.transpose(2, 0, 1).astype(np.float32).copy()
    return result


def cases(quick: bool = False) -> list[Case]:
    """As the training loop reads them at 448 and 224, and with drafts."""
    count = 4 if quick else 64
    made = lazy(lambda: Folder(count))
    return [case for size in (448, 224) for case in (_pictures(made, count, size), _draft(made, count, size))]


def _pictures(made: Callable[[], Folder], count: int, size: int) -> Case:
    def ours() -> object:
        return Pictures(made().files, np.zeros((count, 1), np.int8), [TrainTransform(size)])[
            [(0, number) for number in range(count)]
        ]

    return _case("training loop's path", made, count, size, ours, lambda: [decode(file) for file in made().files])


def _draft(made: Callable[[], Folder], count: int, size: int) -> Case:
    transform = TrainTransform(size)

    def ours() -> object:
        random = np.random.default_rng(0)
        return [transform(decode(file, draft=size), random) for file in made().files]

    def floor() -> object:
        return [decode(file, draft=size) for file in made().files]

    return _case("JPEG drafts (not identical)", made, count, size, ours, floor)


def _case(
    kind: str,
    made: Callable[[], Folder],
    count: int,
    size: int,
    ours: Callable[[], object],
    floor: Callable[[], object],
) -> Case:
    def plain() -> object:
        random = np.random.default_rng(0)
        return np.stack([literal(file, size, random) for file in made().files])

    return Case(
        f"loading: {kind}, {count} JPEGs 640×480 to {size}",
        literal=plain,
        ours=ours,
        floor=floor,
        note="one core; literal: full decode, resize, crop, resize, flip, normalise; floor: the decoding alone",
        items=count,
    )
