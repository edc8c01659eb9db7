"""The strong view of an image: a crop as in training, two random changes of colour or sharpness, a hole."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageEnhance, ImageOps

from sarb.data.transforms import TrainTransform

Change = Callable[[Image.Image, float], Image.Image]

#: function (image, strength 0 to 1) -> image of the same size
CHANGES: dict[str, Change] = {
    "brighter": lambda image, strength: ImageEnhance.Brightness(image).enhance(1 + 0.9 * strength),
    "darker": lambda image, strength: ImageEnhance.Brightness(image).enhance(1 - 0.9 * strength),
    "more contrast": lambda image, strength: ImageEnhance.Contrast(image).enhance(1 + 0.9 * strength),
    "less contrast": lambda image, strength: ImageEnhance.Contrast(image).enhance(1 - 0.9 * strength),
    "more colour": lambda image, strength: ImageEnhance.Color(image).enhance(1 + 0.9 * strength),
    "less colour": lambda image, strength: ImageEnhance.Color(image).enhance(1 - 0.9 * strength),
    "sharper": lambda image, strength: ImageEnhance.Sharpness(image).enhance(1 + 0.9 * strength),
    "blurred": lambda image, strength: ImageEnhance.Sharpness(image).enhance(1 - 0.9 * strength),
    "posterised": lambda image, strength: ImageOps.posterize(image, 8 - round(4 * strength)),
    "solarised": lambda image, strength: ImageOps.solarize(image, round(256 * (1 - strength))),
    "stretched": lambda image, strength: ImageOps.autocontrast(image),
    "equalised": lambda image, strength: ImageOps.equalize(image),
}


@dataclass(frozen=True)
class StrongTransform(TrainTransform):
    """As :class:`TrainTransform`, then ``changes`` random changes, and a square hole of the mean colour.

    Args:
        changes: how many of ``CHANGES``, with random strength.
        hole: side of the hole, at most this share of S; its middle is anywhere.
    """

    changes: int = 2
    hole: float = 0.5

    def __call__(self, image: Image.Image, rng: np.random.Generator) -> NDArray[np.float32]:
        """Return float32 (3, S, S), contiguous; always draws the same amount of numbers."""
        box = self.box(image.width, image.height, rng)
        mirror = rng.random() < 0.5
        names = rng.choice(list(CHANGES), self.changes)
        strengths = rng.random(self.changes)
        side, middle_row, middle_column = rng.random(3)
        small = self._small(image, box)
        for name, strength in zip(names, strengths, strict=True):
            small = CHANGES[str(name)](small, float(strength))
        result = self._normalised(small, mirror and self.flip)
        half = side * self.hole * self.size / 2
        rows = self._span(middle_row, half)
        result[:, rows, self._span(middle_column, half)] = 0
        return result

    def _span(self, middle: float, half: float) -> slice:
        center = middle * self.size
        return slice(max(0, round(center - half)), max(0, round(center + half)))
