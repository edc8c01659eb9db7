"""Outdoor objects of the demo images, one function per category; ``things`` has the indoor ones."""

from __future__ import annotations

import numpy as np

from sarb.data.demo.pen import Pen, around, mix


def airplane(pen: Pen) -> None:
    """Side view, nose to the right."""
    p = pen.paint
    slim = pen.between(10, 14)
    pen.shape([(48, 46), (60, 46), (42, 18), (34, 18)], mix(p.accent, p.dark, 0.35))
    pen.shape([(8, 24), (20, 24), (36, 46), (18, 52)], p.accent)
    pen.oval(52, 52, 44, slim, p.main)
    pen.shape([(42, 54), (64, 54), (38, 88), (26, 88)], p.accent)
    for x in range(42, 76, 9):
        pen.oval(x, 48, 2.6, 2.8, p.light)
    pen.pie(86, 50, 8, 7, (200, 350), p.dark)


def anchor(pen: Pen) -> None:
    """Ring, stock, shank and two flukes."""
    p = pen.paint
    thick = pen.between(7, 10)
    pen.ring(50, 17, 11, 11, p.main, thick * 0.75)
    pen.line([(50, 27), (50, 86)], p.main, thick)
    pen.line([(31, 38), (69, 38)], p.accent if pen.chance(0.5) else p.main, thick)
    pen.ring(50, 54, 36, 36, p.main, thick, [(12, 168)])
    pen.shape([(4, 66), (12, 44), (26, 62)], p.main)
    pen.shape([(96, 66), (88, 44), (74, 62)], p.main)


def ball(pen: Pen) -> None:
    """A beach ball, a football or a striped ball."""
    p = pen.paint
    pen.oval(50, 50, 42, 42, p.main)
    pattern = pen.rng.integers(3)
    if pattern == 0:
        for start in range(0, 360, 120):
            pen.pie(50, 50, 42, 42, (start, start + 60), p.accent)
        pen.oval(50, 50, 8, 8, p.light)
    elif pattern == 1:
        corners = around(50, 50, 15, 5, -np.pi / 2)
        pen.shape(corners, p.dark)
        for (x, y), (u, v) in zip(corners, around(50, 50, 36, 5, -np.pi / 2), strict=True):
            pen.line([(x, y), (u, v)], p.dark, 3)
            pen.oval(u, v, 6, 6, p.dark)
    else:
        pen.ring(8, 50, 46, 54, p.accent, 9, [(-48, 48)])
        pen.ring(92, 50, 46, 54, p.accent, 9, [(132, 228)])
    pen.oval(36, 30, 7, 5, mix(p.main, p.light, 0.7))


def balloon(pen: Pen) -> None:
    """A hot-air balloon with its basket."""
    p = pen.paint
    for x in (40, 60):
        pen.line([(x + (x - 50) * 1.4, 58), (x, 82)], p.dark, 1.8)
    pen.shape([(17, 48), (83, 48), (60, 72), (40, 72)], p.main)
    pen.oval(50, 38, 35, 34, p.main)
    pen.oval(50, 38, 21, 34, p.accent)
    pen.shape([(29, 42), (71, 42), (56, 72), (44, 72)], p.accent)
    pen.oval(50, 38, 8, 34, p.main if pen.chance(0.5) else p.light)
    pen.box(39, 81, 61, 96, mix(p.dark, p.accent, 0.35), 3)


def bicycle(pen: Pen) -> None:
    """Two wheels, a frame, a saddle and a handlebar."""
    p = pen.paint
    wheel = pen.between(19, 22)
    for x in (24, 76):
        pen.ring(x, 66, wheel, wheel, p.dark, 4.5)
        for u, v in around(x, 66, wheel - 3, 6):
            pen.line([(x, 66), (u, v)], mix(p.dark, p.light, 0.5), 1.2)
    pen.line([(24, 66), (38, 40), (66, 40), (48, 67), (24, 66)], p.main, 4.5)
    pen.line([(48, 67), (35, 32)], p.main, 4.5)
    pen.line([(76, 66), (63, 27)], p.main, 4.5)
    pen.line([(27, 31), (43, 31)], p.accent, 5.5)
    pen.line([(56, 26), (68, 25), (74, 32)], p.accent, 4.5)
    pen.oval(48, 67, 5, 5, p.accent)


def car(pen: Pen) -> None:
    """Side view; a saloon or a van."""
    p = pen.paint
    van = pen.chance(0.35)
    cabin = [(14, 52), (16, 24), (70, 24), (84, 52)] if van else [(20, 52), (32, 28), (64, 28), (80, 52)]
    pen.shape(cabin, p.main)
    pen.box(5, 48, 96, 72, p.main, 8)
    left, right = (21, 66) if van else (35, 61)
    pen.shape([(left if van else 29, 48), (left, 31), (47, 31), (47, 48)], p.light)
    pen.shape([(51, 48), (51, 31), (right, 31), (right + 10, 48)], p.light)
    pen.box(5, 58, 96, 62, p.accent)
    pen.oval(92, 54, 3.5, 3.5, p.light)
    for x in (26, 75):
        pen.oval(x, 72, 12, 12, p.dark)
        pen.oval(x, 72, 5.5, 5.5, p.light)


def cat(pen: Pen) -> None:
    """A face with ears and whiskers."""
    p = pen.paint
    for side in (-1, 1):
        pen.shape([(50 + side * 38, 8), (50 + side * 38, 52), (50 + side * 8, 28)], p.main)
        pen.shape([(50 + side * 33, 19), (50 + side * 33, 40), (50 + side * 19, 30)], p.accent)
    pen.oval(50, 56, 40, 35, p.main)
    if pen.chance(0.5):
        for x in (42, 50, 58):
            pen.line([(x, 23), (x, 35)], p.accent, 4)
    pen.oval(50, 70, 18, 13, mix(p.main, p.light, 0.6))
    for side in (-1, 1):
        pen.oval(50 + side * 17, 50, 7, 8, p.light)
        pen.oval(50 + side * 16, 51, 3.6, 7, p.dark)
        for drop in (-5, 2, 9):
            pen.line([(50 + side * 16, 68 + drop * 0.3), (50 + side * 46, 66 + drop)], p.dark, 1.4)
    pen.shape([(45, 62), (55, 62), (50, 68)], p.dark)
    pen.ring(45, 69, 5, 6, p.dark, 1.8, [(20, 180)])
    pen.ring(55, 69, 5, 6, p.dark, 1.8, [(0, 160)])


def cloud(pen: Pen) -> None:
    """Round puffs on a flat base."""
    p = pen.paint
    tone = mix(p.main, p.light, pen.between(0.2, 0.7))
    for x, y, radius in ((24, 60, 17), (43, 45, 22), (64, 50, 19), (80, 62, 15)):
        grow = pen.between(0.9, 1.15)
        pen.oval(x, y, radius * grow, radius * grow, tone)
    pen.box(10, 56, 92, 77, tone, 10)
    pen.oval(40, 44, 12, 9, mix(tone, p.light, 0.6))


def fish(pen: Pen) -> None:
    """Swims to the right."""
    p = pen.paint
    high = pen.between(20, 29)
    pen.shape([(26, 50), (3, 26), (10, 50), (3, 74)], p.accent)
    pen.shape([(38, 50 - high * 0.7), (64, 50 - high * 0.7), (46, 50 - high * 1.5)], p.accent)
    pen.oval(56, 50, 38, high, p.main)
    if pen.chance(0.6):
        for x in (40, 54):
            pen.ring(x - 10, 50, 12, high * 0.85, p.accent, 4.5, [(-60, 60)])
    pen.shape([(52, 54), (36, 66), (50, 68)], p.accent)
    pen.oval(77, 43, 6, 6, p.light)
    pen.oval(78.5, 43, 3, 3, p.dark)
    pen.ring(93, 56, 9, 6, p.dark, 2, [(110, 190)])


def flower(pen: Pen) -> None:
    """Petals around a centre, on a stem with leaves."""
    p = pen.paint
    petals = int(pen.rng.integers(5, 9))
    stem = mix(p.accent, p.dark, 0.4)
    pen.line([(50, 40), (52, 70), (50, 97)], stem, 4)
    pen.shape([(51, 84), (66, 66), (80, 66), (70, 80)], stem)
    pen.shape([(51, 90), (36, 74), (22, 76), (34, 88)], stem)
    for x, y in around(50, 34, 19, petals, pen.between(0, 1)):
        pen.oval(x, y, 12.5, 12.5, p.main)
    pen.oval(50, 34, 11, 11, p.accent)


def house(pen: Pen) -> None:
    """Walls, a roof, a door, windows and a chimney."""
    p = pen.paint
    top = pen.between(40, 48)
    pen.box(66, 14, 77, 44, mix(p.accent, p.dark, 0.4))
    pen.box(14, top, 86, 94, p.main)
    pen.shape([(4, top + 4), (50, 6), (96, top + 4)], p.accent)
    door = 24 if pen.chance(0.5) else 58
    pen.box(door, 66, door + 17, 94, mix(p.dark, p.accent, 0.3), 2)
    window = 56 if door < 50 else 22
    pen.box(window, 58, window + 22, 78, p.light)
    pen.line([(window + 11, 58), (window + 11, 78)], p.dark, 1.8)
    pen.line([(window, 68), (window + 22, 68)], p.dark, 1.8)
    pen.oval(50, 34, 7, 7, p.light)


def kite(pen: Pen) -> None:
    """A diamond with a cross and a tail of bows."""
    p = pen.paint
    pen.line([(50, 66), (58, 76), (46, 84), (56, 97)], p.dark, 1.8)
    for x, y in ((56, 76), (48, 85), (55, 95)):
        pen.shape([(x - 7, y - 4), (x + 7, y + 4), (x + 7, y - 4), (x - 7, y + 4)], p.accent)
    pen.shape([(50, 3), (80, 30), (50, 68), (20, 30)], p.main)
    pen.shape([(50, 3), (80, 30), (50, 30)], p.accent)
    pen.shape([(50, 68), (20, 30), (50, 30)], p.accent)
    pen.line([(50, 3), (50, 68)], p.dark, 1.6)
    pen.line([(20, 30), (80, 30)], p.dark, 1.6)


def moon(pen: Pen) -> None:
    """A crescent with craters."""
    p = pen.paint
    hollow = pen.between(0.35, 0.6)
    angles = np.linspace(-np.pi / 2, np.pi / 2, 28)
    outer = [(38 + 44 * float(np.cos(a)), 50 + 44 * float(np.sin(a))) for a in angles]
    inner = [(38 + 44 * (1 - hollow) * float(np.cos(a)), 50 + 44 * float(np.sin(a))) for a in angles[::-1]]
    pen.shape(outer + inner, p.main)
    for y, size in ((34, 4), (64, 5), (50, 3)):
        pen.oval(38 + 44 * (1 - hollow / 2) - abs(y - 50) * 0.2, y, size, size, mix(p.main, p.accent, 0.4))


def mushroom(pen: Pen) -> None:
    """A spotted cap on a stem."""
    p = pen.paint
    wide = pen.between(36, 46)
    pen.shape([(40, 50), (60, 50), (66, 92), (34, 92)], p.light)
    pen.oval(50, 91, 16, 5, p.light)
    pen.box(38, 56, 62, 61, mix(p.light, p.dark, 0.25), 2)
    pen.pie(50, 52, wide, 42, (180, 360), p.main)
    pen.oval(50, 52, wide, 6, mix(p.main, p.dark, 0.25))
    for x, y, size in ((34, 36, 6), (54, 24, 7), (70, 40, 5), (48, 42, 4)):
        pen.oval(x, y, size, size * 0.9, p.accent)


def rocket(pen: Pen) -> None:
    """Stands upright, fire below."""
    p = pen.paint
    pen.shape([(40, 76), (60, 76), (55, 86), (50, 98), (45, 86)], p.accent)
    for side in (-1, 1):
        pen.shape([(50 + side * 14, 50), (50 + side * 34, 80), (50 + side * 12, 74)], p.accent)
    hull = [(50, 3), (60, 16), (67, 38), (67, 58), (60, 78), (40, 78), (33, 58), (33, 38), (40, 16)]
    pen.shape(hull, p.main)
    pen.shape([(50, 3), (60, 16), (63, 24), (37, 24), (40, 16)], p.accent)
    pen.oval(50, 42, 10, 10, p.dark)
    pen.oval(50, 42, 7, 7, p.light)
    pen.line([(50, 62), (50, 82)], p.dark, 4)


def sailboat(pen: Pen) -> None:
    """A hull, a mast and two sails."""
    p = pen.paint
    pen.line([(48, 6), (48, 76)], p.dark, 3.5)
    pen.shape([(52, 8), (52, 68), (90, 68)], p.main)
    pen.shape([(44, 18), (44, 68), (14, 68)], mix(p.main, p.light, 0.5))
    if pen.chance(0.5):
        pen.shape([(52, 40), (52, 50), (78, 50), (72, 40)], p.accent)
    pen.shape([(48, 4), (48, 13), (34, 8)], p.accent)
    pen.shape([(6, 74), (94, 74), (80, 94), (20, 94)], p.accent)
    pen.box(9, 77, 91, 81, p.light)


def snowman(pen: Pen) -> None:
    """Three balls, a hat, a nose and twigs for arms."""
    p = pen.paint
    body = mix(p.main, p.light, pen.between(0.3, 0.8))
    for side in (-1, 1):
        pen.line([(50 + side * 18, 56), (50 + side * 42, 40), (50 + side * 46, 30)], p.dark, 2.5)
    pen.oval(50, 76, 25, 22, body)
    pen.oval(50, 54, 19, 17, body)
    pen.oval(50, 32, 15, 14, body)
    pen.box(34, 18, 66, 23, p.dark, 2)
    pen.box(40, 3, 60, 20, p.dark, 2)
    pen.box(40, 14, 60, 18, p.accent)
    pen.box(36, 42, 64, 48, p.accent, 3)
    pen.shape([(50, 32), (50, 37), (68, 37)], p.accent)
    for x, y in ((44, 29), (56, 29), (50, 56), (50, 64), (50, 76)):
        pen.oval(x, y, 2.2, 2.2, p.dark)


def sun(pen: Pen) -> None:
    """A disc with rays, sometimes smiling."""
    p = pen.paint
    rays = int(pen.rng.integers(8, 14))
    turn = pen.between(0, 1)
    inner = around(50, 50, 29, rays * 2, turn)
    for ray, tip in enumerate(around(50, 50, 48, rays, turn + np.pi / rays / 2)):
        pen.shape([inner[2 * ray], tip, inner[2 * ray + 1]], p.accent)
    pen.oval(50, 50, 26, 26, p.main)
    if pen.chance(0.5):
        for x in (41, 59):
            pen.oval(x, 46, 3, 4, p.dark)
        pen.ring(50, 52, 12, 10, p.dark, 2.5, [(20, 160)])


def traffic_light(pen: Pen) -> None:
    """Three lamps in a box on a pole; one is lit."""
    p = pen.paint
    lit = int(pen.rng.integers(3))
    pen.box(46, 60, 54, 98, mix(p.dark, p.light, 0.3))
    pen.box(30, 4, 70, 76, p.main, 9)
    pen.box(34, 8, 66, 72, mix(p.dark, p.main, 0.15), 7)
    for lamp, y in enumerate((19, 40, 61)):
        pen.oval(50, y, 9, 9, p.accent if lamp == lit else mix(p.dark, p.accent, 0.45))
    pen.oval(47, (19, 40, 61)[lit] - 3, 3, 3, p.light)


def tree(pen: Pen) -> None:
    """A fir or a round tree."""
    p = pen.paint
    pen.box(44, 60, 56, 97, mix(p.dark, p.accent, 0.35))
    if pen.chance(0.5):
        for top, base, wide in ((40, 82, 38), (22, 60, 31), (4, 38, 23)):
            shade = mix(p.main, p.dark, (base - 38) / 260)
            pen.shape([(50, top), (50 + wide, base), (50 - wide, base)], shade)
        return
    for x, y, radius in ((30, 46, 19), (70, 46, 19), (50, 26, 22), (50, 52, 21)):
        pen.oval(x, y, radius * pen.between(0.9, 1.1), radius, p.main)
    for _ in range(int(pen.rng.integers(0, 6))):
        pen.oval(pen.between(26, 74), pen.between(18, 60), 3.4, 3.4, p.accent)


def umbrella(pen: Pen) -> None:
    """A canopy with coloured panels, a stick and a hook."""
    p = pen.paint
    pen.line([(50, 4), (50, 84)], p.dark, 3.5)
    pen.ring(58, 84, 9, 11, p.dark, 3.5, [(0, 180)])
    pen.pie(50, 50, 45, 42, (180, 360), p.main)
    pen.pie(50, 50, 27, 42, (180, 360), p.accent)
    pen.pie(50, 50, 10, 42, (180, 360), p.main)
    for x, wide in ((14, 9), (31.5, 8.5), (50, 10), (68.5, 8.5), (86, 9)):
        pen.cut(x, 50.5, wide, 5)
    pen.line([(50, 46), (50, 84)], p.dark, 3.5)
