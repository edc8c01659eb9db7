"""Drawing primitives and colours of the demo images: shapes in a 100 × 100 square, drawn enlarged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFont

Colour = tuple[int, int, int]
Points = Sequence[tuple[float, float]]

#: colours for all categories: the colour of an object must not reveal its category
PALETTE: tuple[Colour, ...] = (
    (214, 64, 69),
    (236, 112, 78),
    (244, 162, 97),
    (240, 196, 83),
    (250, 224, 140),
    (138, 177, 125),
    (76, 145, 98),
    (42, 112, 96),
    (42, 157, 143),
    (96, 190, 196),
    (92, 156, 210),
    (58, 98, 168),
    (58, 70, 130),
    (120, 94, 168),
    (176, 126, 190),
    (216, 130, 160),
    (240, 178, 186),
    (150, 92, 70),
    (190, 142, 98),
    (120, 124, 132),
    (200, 204, 206),
    (246, 238, 222),
)


@dataclass(frozen=True)
class Paint:
    """The colours of one object: two from the palette, a near-black and a near-white."""

    main: Colour
    accent: Colour
    dark: Colour
    light: Colour


def jitter(colour: Colour, rng: np.random.Generator, amount: int = 16) -> Colour:
    """Shift a colour a little in each channel."""
    red, green, blue = (min(255, max(0, value + int(rng.integers(-amount, amount + 1)))) for value in colour)
    return red, green, blue


def mix(first: Colour, second: Colour, share: float) -> Colour:
    """Blend two colours; ``share`` 0 gives the first."""
    red, green, blue = (round(a + (b - a) * share) for a, b in zip(first, second, strict=True))
    return red, green, blue


def distance(first: Colour, second: Colour) -> int:
    """Return the sum of the channel differences of two colours."""
    return sum(abs(a - b) for a, b in zip(first, second, strict=True))


def pick_paint(rng: np.random.Generator, avoid: Colour) -> Paint:
    """Choose random colours for one object that stand out against a background of colour ``avoid``."""
    main = accent = avoid
    while distance(main, avoid) < 110:
        main = jitter(PALETTE[rng.integers(len(PALETTE))], rng)
    while distance(accent, main) < 110 or distance(accent, avoid) < 60:
        accent = jitter(PALETTE[rng.integers(len(PALETTE))], rng)
    return Paint(main, accent, jitter((44, 42, 58), rng, 12), jitter((246, 241, 230), rng, 8))


@cache
def symbol_font(pixels: int) -> ImageFont.FreeTypeFont:
    """Return DejaVu Sans, which ships with matplotlib, without importing matplotlib."""
    spec = find_spec("matplotlib")
    if spec is None or not spec.submodule_search_locations:
        raise ModuleNotFoundError("matplotlib is needed for the symbol font of the demo data set")
    folder = Path(spec.submodule_search_locations[0])
    return ImageFont.truetype(str(folder / "mpl-data" / "fonts" / "ttf" / "DejaVuSans.ttf"), pixels)


class Pen:
    """Draws on a transparent square of ``side`` pixels; positions and lengths are in percent of the side."""

    def __init__(self, side: int, paint: Paint, rng: np.random.Generator) -> None:
        self.image = Image.new("RGBA", (side, side))
        self.draw = ImageDraw.Draw(self.image)
        self.unit = side / 100
        self.paint = paint
        self.rng = rng

    def between(self, low: float, high: float) -> float:
        """Return a random number, so that no two objects of a category look the same."""
        return float(self.rng.uniform(low, high))

    def chance(self, share: float) -> bool:
        """Return True with probability ``share``."""
        return bool(self.rng.random() < share)

    def shape(self, points: Points, colour: Colour) -> None:
        """Fill a polygon."""
        self.draw.polygon([(x * self.unit, y * self.unit) for x, y in points], fill=colour)

    def oval(self, x: float, y: float, wide: float, high: float, colour: Colour) -> None:
        """Fill an ellipse with centre (x, y) and half-axes ``wide`` and ``high``."""
        self.draw.ellipse(self._around(x, y, wide, high), fill=colour)

    def box(
        self, left: float, top: float, right: float, bottom: float, colour: Colour, corner: float = 0
    ) -> None:
        """Fill a rectangle, optionally with rounded corners."""
        pixels = [value * self.unit for value in (left, top, right, bottom)]
        self.draw.rounded_rectangle(pixels, corner * self.unit, fill=colour)

    def line(self, points: Points, colour: Colour, width: float) -> None:
        """Draw a line with round joints and ends."""
        scaled = [(x * self.unit, y * self.unit) for x, y in points]
        self.draw.line(scaled, fill=colour, width=max(1, round(width * self.unit)), joint="curve")
        for x, y in (points[0], points[-1]):
            self.oval(x, y, width / 2, width / 2, colour)

    def ring(
        self,
        x: float,
        y: float,
        wide: float,
        high: float,
        colour: Colour,
        width: float,
        turn: Points = ((0, 360),),
    ) -> None:
        """Draw arcs of an ellipse; ``turn`` has start and end angles, clockwise from three o'clock."""
        bounds = self._around(x, y, wide, high)
        for start, end in turn:
            self.draw.arc(bounds, start, end, fill=colour, width=round(width * self.unit))

    def pie(
        self, x: float, y: float, wide: float, high: float, turn: tuple[float, float], colour: Colour
    ) -> None:
        """Fill a slice of an ellipse."""
        self.draw.pieslice(self._around(x, y, wide, high), *turn, fill=colour)

    def cut(self, x: float, y: float, wide: float, high: float) -> None:
        """Erase an ellipse from the drawing."""
        self.draw.ellipse(self._around(x, y, wide, high), fill=(0, 0, 0, 0))

    def sweep(self, top: float, bottom: float, first: Colour, last: Colour) -> None:
        """Fill the whole width with a vertical gradient between two heights."""
        rows = max(1, round((bottom - top) * self.unit))
        ramp = np.linspace(first, last, rows).round().astype(np.uint8)[:, None]
        self.image.paste(Image.fromarray(ramp).resize((self.image.width, rows)), (0, round(top * self.unit)))

    def glyph(self, character: str, colour: Colour, high: float = 92) -> None:
        """Draw one character in the middle, with its longer side about ``high``."""
        left, top, right, bottom = symbol_font(100).getbbox(character)
        font = symbol_font(max(8, round(100 * high * self.unit / max(right - left, bottom - top, 1))))
        self.draw.text((50 * self.unit, 50 * self.unit), character, fill=colour, font=font, anchor="mm")

    def _around(self, x: float, y: float, wide: float, high: float) -> list[float]:
        return [value * self.unit for value in (x - wide, y - high, x + wide, y + high)]


def around(x: float, y: float, radius: float, count: int, start: float = 0.0) -> list[tuple[float, float]]:
    """Return ``count`` points on a circle, evenly spaced from the angle ``start`` (radians)."""
    angles = start + 2 * np.pi * np.arange(count) / count
    return [(x + radius * float(np.cos(angle)), y + radius * float(np.sin(angle))) for angle in angles]
