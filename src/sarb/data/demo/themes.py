"""Themes of the demo images: a background each, and the objects that occur there."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from sarb.data.demo.pen import Colour, Pen, jitter, mix

#: (top, bottom) colours of the sky: noon, haze, evening, overcast
SKIES: tuple[tuple[Colour, Colour], ...] = (
    ((112, 178, 226), (208, 232, 240)),
    ((164, 204, 222), (244, 234, 214)),
    ((118, 124, 178), (246, 190, 150)),
    ((150, 164, 178), (214, 218, 220)),
)


def sky(pen: Pen, horizon: float) -> None:
    """A gradient down to the horizon, sometimes with pale streaks."""
    top, bottom = SKIES[pen.rng.integers(len(SKIES))]
    pen.sweep(0, horizon + 1, jitter(top, pen.rng), jitter(bottom, pen.rng))
    for _ in range(int(pen.rng.integers(0, 4))):
        y = pen.between(4, horizon)
        x = pen.between(0, 100)
        wide = pen.between(8, 30)
        pen.oval(x, y, wide, pen.between(0.6, 1.6), mix(bottom, (255, 255, 255), 0.5))


def hills(pen: Pen, horizon: float, colour: Colour, count: int = 3) -> None:
    """Round hills that reach a little above the horizon."""
    for _ in range(count):
        shade = mix(colour, pen.paint.dark, pen.between(0, 0.25))
        pen.oval(pen.between(0, 100), horizon + 12, pen.between(20, 50), pen.between(12, 28), shade)


def harbour(pen: Pen, horizon: float) -> None:
    """Sky, sea with waves and a strip of sand."""
    sky(pen, horizon)
    sea = jitter((64, 138, 170), pen.rng, 24)
    sand = jitter((228, 204, 156), pen.rng, 20)
    pen.sweep(horizon, 101, mix(sea, (255, 255, 255), 0.25), sea)
    shore = pen.between(78, 96)
    for _ in range(14):
        x = pen.between(-5, 100)
        y = pen.between(horizon + 2, shore)
        pen.ring(x, y, 5, 2, mix(sea, (255, 255, 255), 0.5), 0.9, [(190, 350)])
    edge = [(x, shore + 2.5 * float(np.sin(x / 9 + shore))) for x in range(0, 101, 4)]
    pen.shape([*edge, (101, 101), (0, 101)], sand)


def street(pen: Pen, horizon: float) -> None:
    """A row of buildings, a pavement and a road."""
    sky(pen, horizon)
    left = -4.0
    while left < 100:
        wide = pen.between(12, 24)
        top = pen.between(14, horizon - 12)
        wall = mix(jitter((176, 160, 160), pen.rng, 40), (210, 214, 220), 0.35)
        pen.box(left, top, left + wide, horizon + 2, wall)
        pane = mix(wall, (250, 236, 190) if pen.chance(0.5) else pen.paint.dark, 0.4)
        for x in np.arange(left + 3, left + wide - 3, 5):
            for y in np.arange(top + 4, horizon - 3, 8):
                pen.box(x, y, x + 2.4, y + 3.6, pane)
        left += wide
    road = jitter((104, 106, 114), pen.rng, 18)
    pen.sweep(horizon, 101, mix(road, (190, 190, 190), 0.5), road)
    pen.box(0, horizon + 10, 100, horizon + 11.5, mix(road, (255, 255, 255), 0.6))
    for x in np.arange(pen.between(-10, 0), 100, 20):
        pen.shape([(x, 80), (x + 11, 80), (x + 10, 83), (x - 1, 83)], (232, 226, 206))


def kitchen(pen: Pen, horizon: float) -> None:
    """Tiles above, a wooden table below."""
    tile = jitter(((206, 222, 214), (236, 222, 200), (200, 212, 228))[pen.rng.integers(3)], pen.rng, 14)
    pen.sweep(0, horizon + 1, tile, mix(tile, pen.paint.dark, 0.12))
    step = pen.between(9, 15)
    joint = mix(tile, (255, 255, 255), 0.6)
    for start in np.arange(pen.between(0, step), 100, step):
        pen.box(start, 0, start + 0.7, horizon, joint)
        if start < horizon:
            pen.box(0, start, 100, start + 0.7, joint)
    planks(pen, horizon, jitter((196, 146, 100), pen.rng, 26))


def planks(pen: Pen, horizon: float, wood: Colour) -> None:
    """A wooden surface from the horizon down."""
    pen.sweep(horizon, 101, mix(wood, pen.paint.light, 0.2), mix(wood, pen.paint.dark, 0.15))
    pen.box(0, horizon, 100, horizon + 1.8, mix(wood, pen.paint.dark, 0.35))
    for y in np.arange(horizon + 9, 100, 9):
        pen.box(0, y, 100, y + 0.5, mix(wood, pen.paint.dark, 0.3))
    for _ in range(8):
        x = pen.between(0, 90)
        y = pen.between(horizon + 3, 99)
        pen.box(x, y, x + pen.between(6, 18), y + 0.4, mix(wood, pen.paint.dark, 0.22))


def office(pen: Pen, horizon: float) -> None:
    """A plain wall with a window or a pin board, and a desk."""
    wall = jitter(((214, 216, 208), (190, 206, 212), (224, 208, 196))[pen.rng.integers(3)], pen.rng, 12)
    pen.sweep(0, horizon + 1, wall, mix(wall, pen.paint.dark, 0.1))
    left = pen.between(4, 56)
    wide = pen.between(26, 38)
    frame = mix(wall, (255, 255, 255), 0.6)
    pen.box(left - 2, 6, left + wide + 2, horizon - 10, frame)
    pen.box(left, 8, left + wide, horizon - 12, (168, 202, 224) if pen.chance(0.5) else (198, 164, 122))
    pen.box(left + wide / 2 - 0.8, 8, left + wide / 2 + 0.8, horizon - 12, frame)
    desk = jitter(((150, 112, 84), (206, 188, 160), (116, 124, 136))[pen.rng.integers(3)], pen.rng, 14)
    pen.sweep(horizon, 101, mix(desk, pen.paint.light, 0.25), desk)
    pen.box(0, horizon, 100, horizon + 1.5, mix(desk, pen.paint.dark, 0.3))
    x = pen.between(10, 60)
    pen.shape([(x, 76), (x + 30, 73), (x + 34, 93), (x + 2, 97)], mix(desk, (255, 255, 255), 0.55))


def park(pen: Pen, horizon: float) -> None:
    """Hills, a meadow and a path."""
    sky(pen, horizon)
    grass = jitter((128, 172, 96), pen.rng, 26)
    hills(pen, horizon, mix(grass, (140, 180, 190), 0.35))
    pen.sweep(horizon, 101, mix(grass, pen.paint.light, 0.15), mix(grass, pen.paint.dark, 0.15))
    if pen.chance(0.6):
        x = pen.between(20, 80)
        foot = pen.between(10, 90)
        pen.shape([(x, horizon), (x + 4, horizon), (foot + 16, 101), (foot - 16, 101)], (222, 202, 164))
    for _ in range(26):
        x = pen.between(0, 100)
        y = pen.between(horizon + 2, 99)
        pen.line([(x, y), (x + pen.between(-1, 1), y - 2)], mix(grass, pen.paint.dark, 0.3), 0.6)


def winter(pen: Pen, horizon: float) -> None:
    """A pale sky, snowy hills and falling flakes."""
    pen.sweep(0, horizon + 1, jitter((150, 172, 204), pen.rng, 20), jitter((222, 226, 236), pen.rng, 10))
    hills(pen, horizon, jitter((196, 208, 224), pen.rng, 10))
    pen.sweep(horizon, 101, jitter((236, 240, 246), pen.rng, 8), jitter((206, 216, 232), pen.rng, 10))
    for _ in range(40):
        size = pen.between(0.4, 1.2)
        pen.oval(pen.between(0, 100), pen.between(0, 100), size, size, (255, 255, 255))


def night(pen: Pen, horizon: float) -> None:
    """A dark sky full of small stars above dark hills."""
    pen.sweep(0, 101, jitter((24, 28, 66), pen.rng, 12), jitter((82, 80, 132), pen.rng, 22))
    for _ in range(45):
        size = pen.between(0.25, 0.8)
        pen.oval(pen.between(0, 100), pen.between(0, horizon), size, size, (246, 240, 210))
    hills(pen, horizon + 4, jitter((44, 56, 84), pen.rng, 12), 4)
    pen.sweep(horizon + 2, 101, jitter((44, 58, 78), pen.rng, 10), jitter((30, 40, 60), pen.rng, 8))


def playroom(pen: Pen, horizon: float) -> None:
    """Striped wallpaper, a wooden floor and a rug."""
    papers = ((236, 206, 196), (196, 216, 200), (236, 222, 178), (204, 200, 226))
    wall = jitter(papers[pen.rng.integers(len(papers))], pen.rng, 12)
    pen.sweep(0, horizon + 1, wall, mix(wall, pen.paint.dark, 0.06))
    wide = pen.between(4, 9)
    for x in np.arange(0, 100, 2 * wide):
        pen.box(x, 0, x + wide, horizon, mix(wall, (255, 255, 255), 0.35))
    planks(pen, horizon, jitter((206, 166, 122), pen.rng, 18))
    rug = jitter((184, 120, 120), pen.rng, 50)
    pen.oval(pen.between(30, 70), 86, 34, 10, rug)
    pen.box(0, horizon - 2, 100, horizon, (244, 240, 232))


def paper(pen: Pen, horizon: float) -> None:
    """Plain coloured paper, which says nothing about the objects to expect."""
    tone = mix(jitter(pen.paint.main, pen.rng), (235, 230, 220), 0.55)
    pen.sweep(0, 101, mix(tone, (255, 255, 255), 0.2), mix(tone, pen.paint.dark, 0.12))
    for _ in range(int(pen.rng.integers(0, 5))):
        x = pen.between(0, 100)
        radius = pen.between(6, 30)
        pen.oval(x, pen.between(0, 100), radius, radius, mix(tone, pen.paint.accent, 0.12))


class Theme(NamedTuple):
    """A background, the range of its horizon in percent, its share of the images, and weights of objects."""

    background: Callable[[Pen, float], None]
    horizon: tuple[float, float]
    share: float
    likes: dict[str, float]


THEMES: dict[str, Theme] = {
    "harbour": Theme(harbour, (38, 55), 0.15, {
        "sailboat": 9, "anchor": 4, "fish": 7, "umbrella": 5, "ball": 3, "sun": 5,
        "cloud": 7, "kite": 2,
    }),
    "street": Theme(street, (50, 62), 0.16, {
        "car": 10, "bicycle": 5, "traffic light": 6, "house": 5, "tree": 9, "cat": 2,
        "umbrella": 3, "cloud": 4,
    }),
    "kitchen": Theme(kitchen, (48, 62), 0.13, {
        "cup": 10, "fork": 6, "clock": 4, "chair": 6, "fish": 2, "mushroom": 3,
        "lamp": 2, "flower": 3, "cat": 2,
    }),
    "office": Theme(office, (52, 64), 0.13, {
        "book": 9, "envelope": 4, "telephone": 5, "scissors": 3, "lamp": 5, "clock": 4,
        "cup": 6, "chair": 4,
    }),
    "park": Theme(park, (40, 56), 0.18, {
        "tree": 14, "flower": 8, "mushroom": 3, "ball": 4, "kite": 4, "bicycle": 4,
        "sun": 5, "cloud": 6, "balloon": 2,
    }),
    "winter": Theme(winter, (42, 58), 0.10, {
        "snowman": 7, "tree": 11, "house": 7, "cloud": 4, "cat": 2, "moon": 2,
        "lamp": 1, "airplane": 1,
    }),
    "night": Theme(night, (72, 84), 0.08, {
        "moon": 6, "rocket": 5, "airplane": 4, "balloon": 4, "cloud": 5, "house": 4,
        "tree": 4, "cat": 2,
    }),
    "playroom": Theme(playroom, (52, 64), 0.07, {
        "ball": 6, "rocket": 3, "cat": 7, "book": 6, "chair": 5, "kite": 3,
        "telephone": 1, "airplane": 3, "car": 4, "snowman": 1, "balloon": 2, "scissors": 1,
    }),
}  # fmt: skip
