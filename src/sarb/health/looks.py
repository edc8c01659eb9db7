"""Look at every image file once: a fingerprint, a few measures and a small grey copy. Pillow and NumPy only.

An image is judged in the size at which it is shown and recognised: at most ``SIDE`` pixels on the longer
side. What is sharp there is sharp enough.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from sarb.data.images import decode
from sarb.errors import ImageError
from sarb.files import open_regular
from sarb.progress import Progress

Floats = NDArray[np.float32]

#: longest side of the image that is measured
SIDE = 256
#: side of the small grey copy
SMALL = 48
#: side of the grid of mean colours, which is coarse so that a crop moves little from cell to cell
CELLS = 4
#: distance in pixels over which an edge of a sharp image is complete
EDGE = 4
#: weakest edge that is measured, in grey levels of 255, and the share of pixels with the strongest edges
WEAKEST = 12.0
STRONGEST = 0.02
#: percentiles of the luminance that say how dark and how bright an image is
BRIGHT_PART = 95
DARK_PART = 5
#: images that wait for a thread at a time
BLOCK = 1000


class Look(NamedTuple):
    """What is known about one image file.

    Attributes:
        digest: of the file's bytes.
        side: shorter side in pixels, at least ``SIDE`` standing for everything larger.
        sharpness: of the strongest edges, 0.25 (no sharp edge) to 1; nan without any edge.
        light: luminance 0..1 that 95 % of the pixels stay below.
        shade: luminance 0..1 that 95 % of the pixels exceed.
        small: (SMALL, SMALL) grey copy, uint8, squashed to a square.
        contrast: 0..1, how far any place of a small colour copy is from the median, in the channel that differs most.
        colours: (CELLS, CELLS, 3) mean colours without their luminance, in levels of 255.
    """

    digest: bytes
    side: int
    sharpness: float
    light: float
    shade: float
    small: NDArray[np.uint8]
    contrast: float
    colours: Floats


def look(path: Path) -> Look:
    """Read one image file; an :class:`ImageError` if that fails."""
    image = decode(path, draft=SIDE)
    with open_regular(path) as file:
        digest = hashlib.blake2b(file.read(), digest_size=16).digest()
    side = min(image.size)
    grey = image.convert("L")
    small = np.asarray(grey.resize((SMALL, SMALL), Image.Resampling.BOX, reducing_gap=2.0))
    grey.thumbnail((SIDE, SIDE), Image.Resampling.BICUBIC)
    pixels = np.asarray(grey, np.float32)
    shade, light = np.percentile(pixels, (DARK_PART, BRIGHT_PART)) / 255
    tones = np.asarray(image.resize((SMALL, SMALL), Image.Resampling.BOX, reducing_gap=2.0), np.float32)
    contrast = float(np.abs(tones - np.median(tones, (0, 1))).max()) / 255
    return Look(
        digest, side, sharpness(pixels), float(light), float(shade), small, contrast, mean_colours(tones)
    )


def mean_colours(tones: Floats) -> Floats:
    """Mean colours (CELLS, CELLS, 3) of a small copy (SMALL, SMALL, 3), each without its mean over the channels."""
    size = SMALL // CELLS
    cells = tones.reshape(CELLS, size, CELLS, size, 3).mean((1, 3))
    return np.asarray(cells - cells.mean(2, keepdims=True), np.float32)


def sharpness(grey: Floats) -> float:
    """How sudden the strongest edges of an image (H, W) are, in the sharper of the two directions.

    For an edge of height h = |I(x + EDGE) − I(x)|, it is the largest step between adjacent pixels on the way,
    divided by h: 1 if one step does it all, 1/EDGE if the way is even. It depends neither on the contrast
    nor on how much of the image is smooth. A photo with a sharp subject before a blurred background is sharp.
    """
    found = [_sudden(pixels) for pixels in (grey, grey.T)]
    return max((value for value in found if not np.isnan(value)), default=float("nan"))


def _sudden(pixels: Floats) -> float:
    """The same along the rows: upper quartile over the strongest edges, nan without any."""
    if pixels.shape[1] <= EDGE:
        return float("nan")
    steps = np.diff(pixels, axis=1)
    height = np.abs(pixels[:, EDGE:] - pixels[:, :-EDGE])
    count = max(1, round(STRONGEST * height.size))
    limit = max(WEAKEST, float(np.partition(height.ravel(), -count)[-count]))
    rows, columns = np.nonzero(height >= limit)
    if not len(rows):
        return float("nan")
    largest = np.max([np.abs(steps[rows, columns + place]) for place in range(EDGE)], axis=0)
    return float(np.percentile(np.minimum(largest / height[rows, columns], 1), 75))


def look_at_all(paths: Sequence[Path], talk: Progress) -> Iterator[Look | str]:
    """Yield a Look for each path in order, or the reason why the image cannot be read."""
    waiting = iter(paths)
    with talk.bar("looking at images", len(paths)) as advance, ThreadPoolExecutor(os.cpu_count()) as pool:
        while block := list(islice(waiting, BLOCK)):
            for result in pool.map(_look_or_reason, block):
                advance(1)
                yield result


def _look_or_reason(path: Path) -> Look | str:
    try:
        return look(path)
    except ImageError as error:
        return str(error)
