"""Unlabelled clutter in the demo images: leaves, pebbles, scribbles, scraps, signs."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from sarb.data.demo.pen import Pen, around, mix


def leaf(pen: Pen) -> None:
    """A leaf with a vein."""
    p = pen.paint
    wide = pen.between(14, 30)
    angles = np.linspace(0, np.pi, 12)
    edge = [(float(t), float(np.sin(a))) for t, a in zip(np.linspace(6, 94, 12), angles, strict=True)]
    pen.shape([(x, 50 - wide * y) for x, y in edge] + [(x, 50 + wide * y) for x, y in reversed(edge)], p.main)
    pen.line([(2, 50), (86, 50)], mix(p.main, p.dark, 0.4), 4)


def pebble(pen: Pen) -> None:
    """A round lump with a highlight."""
    p = pen.paint
    corners = [
        (50 + (x - 50) * pen.between(0.7, 1.1), 55 + (y - 50) * pen.between(0.5, 0.9))
        for x, y in around(50, 50, 44, 11)
    ]
    pen.shape(corners, mix(p.main, p.dark, 0.2))
    pen.oval(42, 42, 14, 8, mix(p.main, p.light, 0.4))


def scribble(pen: Pen) -> None:
    """A few pencil strokes."""
    steps = pen.rng.normal(0, 22, (int(pen.rng.integers(4, 9)), 2)).cumsum(0)
    points = np.clip(steps - steps.mean(0) + 50, 4, 96)
    pen.line([(float(x), float(y)) for x, y in points], pen.paint.main, pen.between(3, 7))


def scrap(pen: Pen) -> None:
    """A torn piece of coloured paper."""
    count = int(pen.rng.integers(3, 7))
    corners = [
        (50 + (x - 50) * pen.between(0.5, 1), 50 + (y - 50) * pen.between(0.5, 1))
        for x, y in around(50, 50, 46, count, pen.between(0, 3))
    ]
    pen.shape(corners, pen.paint.main)
    if pen.chance(0.5):
        pen.line([corners[0], corners[count // 2]], pen.paint.accent, 5)


def letters(pen: Pen) -> None:
    """A printed letter, note or card suit."""
    symbols = "ABEGKRS358&?%§♠♣♥♪♫★✚✶➜"
    pen.glyph(symbols[pen.rng.integers(len(symbols))], pen.paint.main, 80)


def post(pen: Pen) -> None:
    """A thin pole or twig that may cover part of an object."""
    p = pen.paint
    lean = pen.between(-14, 14)
    pen.line([(50 - lean, 2), (50, 50), (50 + lean, 98)], mix(p.dark, p.main, 0.5), pen.between(5, 10))
    if pen.chance(0.6):
        pen.line([(50, 50), (50 + lean * 2.5, 26)], mix(p.dark, p.main, 0.5), 5)


def tuft(pen: Pen) -> None:
    """Blades of grass."""
    p = pen.paint
    for foot in np.linspace(20, 80, 7):
        tip = (foot + pen.between(-22, 22), pen.between(12, 56))
        pen.shape([(foot - 6, 96), (foot + 6, 96), tip], mix(p.main, p.dark, pen.between(0, 0.4)))


def bubbles(pen: Pen) -> None:
    """A few circles and rings."""
    p = pen.paint
    for _ in range(int(pen.rng.integers(2, 6))):
        x = pen.between(20, 80)
        y = pen.between(20, 80)
        radius = pen.between(7, 20)
        if pen.chance(0.5):
            pen.oval(x, y, radius, radius, p.main)
        else:
            pen.ring(x, y, radius, radius, p.accent, 5)


CLUTTER: tuple[Callable[[Pen], None], ...] = (leaf, pebble, scribble, scrap, letters, post, tuft, bubbles)
