"""Indoor objects of the demo images, and the table of all categories."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from sarb.data.demo import objects as outdoors
from sarb.data.demo.pen import Pen, around, mix


def book(pen: Pen) -> None:
    """An open book, or a closed one from the front."""
    p = pen.paint
    if pen.chance(0.5):
        for side in (-1, 1):
            pen.shape([(50, 30), (50 + side * 46, 20), (50 + side * 46, 78), (50, 88)], p.main)
            pen.shape([(50, 28), (50 + side * 41, 17), (50 + side * 41, 72), (50, 82)], p.light)
            grey = mix(p.light, p.dark, 0.5)
            for drop in range(0, 40, 8):
                pen.line([(50 + side * 6, 37 + drop), (50 + side * 36, 29 + drop)], grey, 1.6)
        pen.line([(50, 28), (50, 86)], p.dark, 2)
        return
    pen.box(20, 8, 84, 94, p.light, 4)
    pen.box(16, 6, 80, 90, p.main, 4)
    pen.box(16, 6, 27, 90, mix(p.main, p.dark, 0.4), 3)
    pen.box(36, 22, 71, 42, p.accent, 2)
    pen.line([(40, 54), (68, 54)], p.accent, 3)
    pen.line([(58, 6), (58, 6)], p.accent, 6)


def chair(pen: Pen) -> None:
    """A kitchen chair seen at an angle."""
    p = pen.paint
    slats = int(pen.rng.integers(2, 4))
    wood = mix(p.main, p.dark, 0.35)
    for x, top, foot in ((68, 60, 88), (46, 60, 82)):
        pen.line([(x, top), (x, foot)], wood, 5)
    for x in (24, 56):
        pen.line([(x, 8 if x == 24 else 12), (x, 58)], p.main, 6)
    for slat in range(slats):
        y = 14 + slat * 34 / slats
        pen.shape([(24, y), (56, y + 4), (56, y + 12), (24, y + 8)], p.accent)
    pen.shape([(20, 54), (58, 56), (82, 66), (40, 66)], p.main)
    pen.shape([(40, 66), (82, 66), (82, 71), (40, 71)], wood)
    for x, top, foot in ((24, 58, 92), (43, 70, 97), (79, 70, 97)):
        pen.line([(x, top), (x, foot)], p.main, 6)


def clock(pen: Pen) -> None:
    """A wall clock, or an alarm clock with bells; any time of day."""
    p = pen.paint
    if pen.chance(0.45):
        for side in (-1, 1):
            pen.oval(50 + side * 27, 16, 14, 11, p.accent)
            pen.line([(50 + side * 22, 80), (50 + side * 32, 95)], p.dark, 6)
        pen.line([(50, 8), (50, 20)], p.dark, 5)
    pen.oval(50, 52, 40, 40, p.main)
    pen.oval(50, 52, 32, 32, p.light)
    for (x, y), (u, v) in zip(around(50, 52, 28, 12), around(50, 52, 24, 12), strict=True):
        pen.line([(x, y), (u, v)], p.dark, 2)
    for length, width, angle in ((16, 4.5, pen.between(0, 6.3)), (24, 3, pen.between(0, 6.3))):
        tip = (50 + length * float(np.cos(angle)), 52 + length * float(np.sin(angle)))
        pen.line([(50, 52), tip], p.dark, width)
    pen.oval(50, 52, 3.5, 3.5, p.accent)


def cup(pen: Pen) -> None:
    """A mug or a cup on a saucer, sometimes steaming."""
    p = pen.paint
    mug = pen.chance(0.5)
    if pen.chance(0.6):
        for x in (34, 48, 62):
            pen.line([(x, 30), (x + 4, 22), (x - 2, 14), (x + 3, 6)], p.light, 3)
    pen.ring(74, 54, 15, 14, p.main, 6)
    if mug:
        pen.box(20, 36, 76, 90, p.main, 6)
        pen.box(20, 56, 76, 68, p.accent)
    else:
        pen.oval(48, 90, 44, 7, p.accent)
        pen.pie(48, 38, 31, 52, (0, 180), p.main)
    half = 28 if mug else 31
    pen.oval(48, 38, half, 6, mix(p.main, p.light, 0.5))
    pen.oval(48, 39, half - 4, 4, p.dark)


def envelope(pen: Pen) -> None:
    """A closed envelope with a flap and a seal, or with a stamp and an address."""
    p = pen.paint
    pen.box(5, 20, 95, 82, p.main, 3)
    shade = mix(p.main, p.dark, 0.35)
    if pen.chance(0.65):
        pen.line([(7, 80), (40, 48)], shade, 2.5)
        pen.line([(93, 80), (60, 48)], shade, 2.5)
        pen.shape([(6, 21), (94, 21), (50, 58)], mix(p.main, p.light, 0.35))
        pen.line([(6, 21), (50, 58), (94, 21)], shade, 2.5)
        pen.oval(50, 55, 8, 8, p.accent)
        return
    pen.box(73, 27, 89, 46, p.accent)
    for y, right in ((46, 54), (56, 60), (66, 44)):
        pen.line([(16, y), (right, y)], p.dark, 2.5)


def fork(pen: Pen) -> None:
    """A fork with three or four tines, upright."""
    p = pen.paint
    tines = int(pen.rng.integers(3, 5))
    for x in np.linspace(34, 66, tines):
        pen.line([(float(x), 6), (float(x), 34)], p.main, 5)
    pen.pie(50, 30, 18.5, 20, (0, 180), p.main)
    pen.line([(50, 44), (50, 60)], p.main, 6)
    pen.line([(50, 62), (50, 94)], p.accent if pen.chance(0.5) else p.main, 9)


def lamp(pen: Pen) -> None:
    """A table lamp with a shade, or a jointed desk lamp."""
    p = pen.paint
    if pen.chance(0.5):
        pen.line([(50, 50), (50, 90)], p.dark, 5)
        pen.oval(50, 92, 22, 5, p.dark)
        pen.shape([(36, 10), (64, 10), (82, 52), (18, 52)], p.main)
        pen.shape([(46, 10), (54, 10), (59, 52), (41, 52)], p.accent)
        pen.line([(68, 52), (68, 66)], p.dark, 1.5)
        return
    pen.oval(36, 92, 24, 6, p.main)
    pen.line([(36, 90), (22, 54), (54, 26)], p.main, 5)
    pen.oval(22, 54, 5, 5, p.accent)
    pen.oval(66, 45, 9, 9, p.light)
    pen.shape([(50, 20), (62, 14), (92, 40), (56, 58)], p.accent)


def scissors(pen: Pen) -> None:
    """Half-open scissors, handles at the bottom."""
    p = pen.paint
    spread = pen.between(9, 20)
    for side in (-1, 1):
        blade = [(50 + side * spread, 3), (50 + side * 6, 56), (50 - side * 5, 58)]
        pen.shape(blade, mix(p.light, p.dark, 0.3))
        pen.line([(50 - side * 2, 54), (50 + side * 15, 70)], p.main, 6)
        pen.ring(50 + side * 19, 80, 14, 16, p.main, 6.5)
    pen.oval(50, 56, 4, 4, p.accent)


def telephone(pen: Pen) -> None:
    """An old telephone with a dial and a handset on top."""
    p = pen.paint
    pen.shape([(30, 36), (70, 36), (90, 88), (10, 88)], p.main)
    pen.box(10, 84, 90, 92, mix(p.main, p.dark, 0.35), 3)
    pen.box(34, 28, 40, 40, p.dark)
    pen.box(60, 28, 66, 40, p.dark)
    pen.ring(50, 44, 42, 30, p.accent, 10, [(205, 335)])
    pen.box(4, 26, 24, 42, p.accent, 6)
    pen.box(76, 26, 96, 42, p.accent, 6)
    pen.oval(50, 63, 18, 17, p.light)
    for x, y in around(50, 63, 12, 8):
        pen.oval(x, y, 2.6, 2.6, p.dark)
    pen.oval(50, 63, 5, 5, p.accent)


class Thing(NamedTuple):
    """How and where a category is drawn.

    ``zone``: "air" (upper part), "ground" (below the horizon) or "loose" (anywhere). ``tilt``: largest
    rotation in degrees. ``symbols``: characters that may be drawn instead, like a printed sign.
    """

    draw: Callable[[Pen], None]
    zone: str
    tilt: float
    size: float = 1.0
    symbols: str = ""


#: every category of the demo set, in the order of the label columns
THINGS: dict[str, Thing] = {
    "airplane": Thing(outdoors.airplane, "air", 35, 1.1, "✈"),
    "anchor": Thing(outdoors.anchor, "ground", 30, 0.9, "⚓"),
    "ball": Thing(outdoors.ball, "ground", 180, 0.65),
    "balloon": Thing(outdoors.balloon, "air", 15, 1.05),
    "bicycle": Thing(outdoors.bicycle, "ground", 15, 1.1),
    "book": Thing(book, "loose", 60, 0.85),
    "car": Thing(outdoors.car, "ground", 12, 1.2),
    "cat": Thing(outdoors.cat, "ground", 25, 0.85),
    "chair": Thing(chair, "ground", 15, 1.1),
    "clock": Thing(clock, "air", 20, 0.8),
    "cloud": Thing(outdoors.cloud, "air", 10, 1.1, "☁"),
    "cup": Thing(cup, "ground", 18, 0.8),
    "envelope": Thing(envelope, "loose", 60, 0.8, "✉"),
    "fish": Thing(outdoors.fish, "loose", 35, 0.9),
    "flower": Thing(outdoors.flower, "ground", 20, 0.9, "⚘✿"),
    "fork": Thing(fork, "loose", 90, 0.85),
    "house": Thing(outdoors.house, "ground", 8, 1.25),
    "kite": Thing(outdoors.kite, "air", 50, 0.95),
    "lamp": Thing(lamp, "ground", 12, 1.0),
    "moon": Thing(outdoors.moon, "air", 60, 0.8, "☾☽"),
    "mushroom": Thing(outdoors.mushroom, "ground", 20, 0.75),
    "rocket": Thing(outdoors.rocket, "air", 50, 1.0),
    "sailboat": Thing(outdoors.sailboat, "ground", 14, 1.15),
    "scissors": Thing(scissors, "loose", 120, 0.85, "✂✄"),
    "snowman": Thing(outdoors.snowman, "ground", 12, 1.1, "☃"),
    "sun": Thing(outdoors.sun, "air", 180, 0.85, "☀"),
    "telephone": Thing(telephone, "ground", 20, 0.85, "☎☏"),
    "traffic light": Thing(outdoors.traffic_light, "ground", 12, 1.1),
    "tree": Thing(outdoors.tree, "ground", 10, 1.25),
    "umbrella": Thing(outdoors.umbrella, "loose", 60, 1.1, "☂"),
}

CATEGORIES: tuple[str, ...] = tuple(THINGS)
