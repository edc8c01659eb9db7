"""Turn an upright RGB image into network input: crop, resize, flip, normalise (Pillow and NumPy only)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from sarb.data.decoding import decode

IMAGENET_MEAN = (123.675, 116.28, 103.53)
IMAGENET_STD = (58.395, 57.12, 57.375)
LITE_MEAN = (127.0, 127.0, 127.0)
LITE_STD = (128.0, 128.0, 128.0)

Triple = tuple[float, float, float]
#: left, top, right, bottom in pixels
Box = tuple[float, float, float, float]


@dataclass(frozen=True)
class _Transform:
    size: int
    mean: Triple = IMAGENET_MEAN
    std: Triple = IMAGENET_STD

    def __post_init__(self) -> None:
        for key, value in vars(self).items():  # JSON has lists where the fields are tuples
            object.__setattr__(self, key, tuple(value) if isinstance(value, list) else value)

    def config(self) -> dict[str, Any]:
        """Return the arguments, ready for JSON: ``EvalTransform(**config)`` builds the same transform."""
        return {key: list(value) if isinstance(value, tuple) else value for key, value in vars(self).items()}

    def _apply(self, image: Image.Image, box: Box | None, mirror: bool) -> NDArray[np.float32]:
        """Resize ``box`` of the image to a square (bicubic); return (x - mean) / std, float32 (3, S, S)."""
        return self._normalised(self._small(image, box), mirror)

    def _small(self, image: Image.Image, box: Box | None) -> Image.Image:
        """Resize ``box`` of the image to S×S (bicubic)."""
        if image.mode != "RGB":
            image = decode(image)
        return image.resize((self.size, self.size), Image.Resampling.BICUBIC, box=box)

    def _normalised(self, small: Image.Image, mirror: bool) -> NDArray[np.float32]:
        """(x - mean) / std of an S×S image, float32 (3, S, S)."""
        result = np.empty((3, self.size, self.size), np.float32)
        # Channel by channel: reading every third byte of (S, S, 3) takes 2 to 8 times as long.
        for channel, plane in enumerate(small.split()):
            pixels = np.asarray(plane)[:, ::-1] if mirror else np.asarray(plane)
            np.subtract(pixels, np.float32(self.mean[channel]), out=result[channel], dtype=np.float32)
            result[channel] /= np.float32(self.std[channel])
        return result


@dataclass(frozen=True)
class EvalTransform(_Transform):
    """Resize to S×S and normalise: the transform for validation, prediction, serving and export.

    Args:
        size: S.
        mean: per channel, on the 0..255 scale.
        std: per channel, on the 0..255 scale.
        draft: decode a large JPEG at reduced size, but with at least this many pixels per output pixel along
            each side; 0 always decodes at full size.
    """

    draft: int = 2

    @property
    def least(self) -> int | None:
        """Smallest side to decode to, for :func:`sarb.data.images.decode`; None decodes at full size."""
        return self.draft * self.size or None

    def __call__(self, image: Image.Image, rng: np.random.Generator | None = None) -> NDArray[np.float32]:
        """Return float32 (3, S, S), contiguous; ``rng`` is ignored, it matches :class:`TrainTransform`."""
        return self._apply(image, None, False)


@dataclass(frozen=True)
class TrainTransform(_Transform):
    """The paper's augmentation at any size S: resize to R², crop a square, resize to S², flip.

    R = 512/448 · S. The crop side is R times one of ``crops`` (512, 448, 384, 320, 256 of 512), and its
    corner is a random pixel of the R² grid. It is done in **one** bicubic resize of the matching box of the
    original, which saves the intermediate image and its blur. The boxes are the paper's; the pixels differ
    only by interpolation.

    Args:
        size: S.
        mean: per channel, on the 0..255 scale.
        std: per channel, on the 0..255 scale.
        crops: crop sides to choose from, as fractions of R.
        flip: flip images horizontally with probability 0.5.
        draft: decode a large JPEG at reduced size, but with at least this many pixels per output pixel along
            each side of the smallest crop; 0 always decodes at full size.
    """

    crops: tuple[float, ...] = (1.0, 0.875, 0.75, 0.625, 0.5)
    flip: bool = True
    draft: int = 2

    @property
    def least(self) -> int | None:
        """Smallest side to decode to, for :func:`sarb.data.images.decode`; None decodes at full size."""
        return math.ceil(self.draft * self.size / min(self.crops)) or None

    def box(self, width: int, height: int, rng: np.random.Generator) -> Box:
        """Draw a crop box in pixels of an image of this size; one random number each for side, left, top."""
        whole = round(self.size * 512 / 448)
        side = round(self.crops[int(rng.integers(len(self.crops)))] * whole)
        left = int(rng.integers(whole - side + 1))
        top = int(rng.integers(whole - side + 1))
        across = width / whole
        down = height / whole
        right = min((left + side) * across, width)
        bottom = min((top + side) * down, height)
        return left * across, top * down, right, bottom

    def __call__(self, image: Image.Image, rng: np.random.Generator) -> NDArray[np.float32]:
        """Return float32 (3, S, S), contiguous; always draws four numbers, whatever the options."""
        box = self.box(image.width, image.height, rng)
        mirror = rng.random() < 0.5
        return self._apply(image, box, mirror and self.flip)
