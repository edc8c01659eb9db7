"""Compose one demo image: background, objects and clutter, occlusion, light."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from PIL import Image, ImageFilter, ImageOps

from sarb.data.demo.clutter import CLUTTER
from sarb.data.demo.pen import Colour, Paint, Pen, pick_paint
from sarb.data.demo.themes import THEMES, Theme, paper
from sarb.data.demo.things import CATEGORIES, THINGS, Thing

#: probability of 1, 2, … 6 objects
OBJECT_COUNTS = (0.13, 0.25, 0.27, 0.20, 0.10, 0.05)
#: an object counts as present if at least this share of it is visible
LEAST_VISIBLE = 0.25
STRANGER_SHARE = 0.07  # of objects that do not belong to the theme
PAPER_SHARE = 0.15  # of images with plain paper as background
SYMBOL_SHARE = 0.12  # of objects drawn as a printed symbol, if their category has one
SHADOW = [round(alpha * 0.3) for alpha in range(256)]

#: left, top, right, bottom in pixels; right and bottom are exclusive
Box = tuple[int, int, int, int]


class Placed(NamedTuple):
    """A drawn object: RGBA ``patch`` with its top left corner at (left, top); clutter has no category."""

    category: str | None
    patch: Image.Image
    left: int
    top: int


def visible_shares(placed: Sequence[Placed], size: int) -> list[float]:
    """Return the visible share of each object; later objects cover earlier ones.

    Share = Σ α·Π(1 - α of objects above) inside the image / Σ α everywhere, with α in [0, 1] per pixel.
    """
    free = np.ones((size, size), np.float32)
    shares = []
    for _, patch, left, top in reversed(placed):
        alpha = np.asarray(patch.getchannel("A"), np.float32) / 255
        rows = slice(max(0, top), max(0, top + alpha.shape[0]))
        columns = slice(max(0, left), max(0, left + alpha.shape[1]))
        window = free[rows, columns]
        inside = alpha[max(0, -top) :, max(0, -left) :][: window.shape[0], : window.shape[1]]
        shares.append(float((inside * window).sum() / max(float(alpha.sum()), 1e-6)))
        window *= 1 - inside
    return shares[::-1]


def present_categories(placed: Sequence[Placed], size: int) -> set[str]:
    """Return the categories with at least one object that is visible enough."""
    shares = visible_shares(placed, size)
    return {
        item.category
        for item, share in zip(placed, shares, strict=True)
        if item.category and share >= LEAST_VISIBLE
    }


def make_patch(
    draw: Callable[[Pen], None], pixels: int, tilt: float, paint: Paint, rng: np.random.Generator
) -> Image.Image:
    """Draw one object of about ``pixels`` pixels, randomly rotated by up to ``tilt`` degrees and mirrored."""
    enlarged = 3 if pixels < 70 else 2  # large objects need less for smooth edges
    pen = Pen(pixels * enlarged, paint, rng)
    draw(pen)
    image = ImageOps.mirror(pen.image) if rng.random() < 0.5 else pen.image
    angle = float(rng.uniform(-tilt, tilt))
    # premultiply once for both steps; Pillow would convert back and forth in each
    turned = image.convert("RGBa").rotate(angle, Image.Resampling.BILINEAR, expand=True)
    return finish(turned.reduce(enlarged).convert("RGBA"), paint, rng)


def finish(patch: Image.Image, paint: Paint, rng: np.random.Generator) -> Image.Image:
    """Shade an object from top to bottom, and give it a dark, light or no outline."""
    top, bottom = rng.uniform(0.78, 1.18, 2)
    ramp = np.linspace(top, bottom, patch.height, dtype=np.float32)[:, None, None]
    pixels = np.asarray(patch, np.float32)
    shaded = np.concatenate([np.clip(pixels[..., :3] * ramp, 0, 255), pixels[..., 3:]], axis=2)
    patch = Image.fromarray(shaded.astype(np.uint8))
    style = rng.random()
    if style < 0.5:
        return patch
    patch = ImageOps.expand(patch, 2, (0, 0, 0, 0))
    edge = patch.getchannel("A").filter(ImageFilter.MaxFilter(3))
    outlined = Image.new("RGBA", patch.size, (paint.dark if style < 0.75 else paint.light))
    outlined.putalpha(edge)
    return Image.alpha_composite(outlined, patch)


def draw_background(theme: Theme, horizon: float, size: int, rng: np.random.Generator) -> Image.Image:
    """Draw the background with slight mottling, size × size RGB."""
    pen = Pen(size * 2, pick_paint(rng, (128, 128, 128)), rng)
    (paper if rng.random() < PAPER_SHARE else theme.background)(pen, horizon)
    image = pen.image.convert("RGB").reduce(2)
    cells = rng.normal(128, rng.uniform(2, 12), (int(rng.integers(6, 40)),) * 2).clip(0, 255).astype(np.uint8)
    mottle = Image.fromarray(cells).resize((size, size), Image.Resampling.BICUBIC)
    shift = np.asarray(mottle, np.float32)[..., None] - 128
    return Image.fromarray((np.asarray(image, np.float32) + shift).clip(0, 255).astype(np.uint8))


def choose_categories(theme: Theme, rng: np.random.Generator) -> list[str]:
    """Choose 1 to 6 objects: mostly those of the theme, sometimes another one or the same one twice."""
    names = list(theme.likes)
    weights = np.array(list(theme.likes.values()))
    chosen: list[str] = []
    for _ in range(1 + int(rng.choice(len(OBJECT_COUNTS), p=OBJECT_COUNTS))):
        if rng.random() < STRANGER_SHARE:
            chosen.append(CATEGORIES[rng.integers(len(CATEGORIES))])
        else:
            again = np.array([0.25 if name in chosen else 1.0 for name in names]) * weights
            chosen.append(names[int(rng.choice(len(names), p=again / again.sum()))])
    return chosen


def find_place(
    zone: str, horizon: float, rng: np.random.Generator, taken: list[tuple[float, float]]
) -> tuple[float, float]:
    """Return the centre of an object in percent: of three tries, the one farthest from other objects."""
    low, high = {"air": (8.0, horizon), "ground": (horizon - 4, 92.0), "loose": (18.0, 88.0)}[zone]
    tries = [(float(rng.uniform(4, 96)), float(rng.uniform(low, max(high, low + 12)))) for _ in range(3)]

    def room(spot: tuple[float, float]) -> float:
        return min((float(np.hypot(spot[0] - x, spot[1] - y)) for x, y in taken), default=0.0)

    return max(tries, key=room)


def nearby_colour(background: Image.Image, x: float, y: float) -> Colour:
    """Return the mean colour of the background around a point in percent."""
    width, height = background.size
    column = round(min(92, max(8, x)) * width / 100)
    row = round(min(92, max(8, y)) * height / 100)
    reach = width // 16
    patch = background.crop((column - reach, row - reach, column + reach, row + reach))
    red, green, blue = np.asarray(patch.resize((1, 1), Image.Resampling.BOX))[0, 0].tolist()
    return red, green, blue


def put(
    category: str | None,
    thing: Thing,
    spot: tuple[float, float],
    pixels: float,
    background: Image.Image,
    rng: np.random.Generator,
) -> Placed:
    """Draw a thing with its centre at ``spot`` (percent of the image)."""
    paint = pick_paint(rng, nearby_colour(background, *spot))
    draw = thing.draw
    if thing.symbols and rng.random() < SYMBOL_SHARE:
        symbol = thing.symbols[rng.integers(len(thing.symbols))]
        draw = lambda pen: pen.glyph(symbol, paint.main)  # noqa: E731
    patch = make_patch(draw, max(8, round(pixels)), thing.tilt, paint, rng)
    left = round(spot[0] * background.width / 100 - patch.width / 2)
    top = round(spot[1] * background.height / 100 - patch.height / 2)
    return Placed(category, patch, left, top)


def furnish(theme: Theme, horizon: float, background: Image.Image, rng: np.random.Generator) -> list[Placed]:
    """Place objects and clutter; return them from back to front."""
    unit = background.width / 160
    taken = list[tuple[float, float]]()
    layers: list[tuple[float, Placed]] = []
    for category in choose_categories(theme, rng):
        thing = THINGS[category]
        spot = find_place(thing.zone, horizon, rng, taken)
        taken.append(spot)
        near = 0.75 + 0.4 * spot[1] / 100 if thing.zone == "ground" else 1.0
        pixels = float(np.exp(rng.uniform(np.log(48), np.log(96)))) * thing.size * near * unit
        depth = spot[1] if thing.zone == "ground" else float(rng.uniform(0, 100))
        layers.append((depth, put(category, thing, spot, pixels, background, rng)))
    for _ in range(int(rng.integers(0, 6))):
        spot = (float(rng.uniform(0, 100)), float(rng.uniform(15, 100)))
        thing = Thing(CLUTTER[rng.integers(len(CLUTTER))], "loose", 60)
        depth = float(rng.uniform(-60, 100))
        pixels = float(rng.uniform(9, 30)) * unit
        layers.append((depth, put(None, thing, spot, pixels, background, rng)))
    return [item for _, item in sorted(layers, key=lambda layer: layer[0])]


def compose(background: Image.Image, placed: Sequence[Placed]) -> Image.Image:
    """Paste objects in order, each with a soft shadow."""
    image = background.copy()
    drop = max(1, round(background.width / 80))
    for _, patch, left, top in placed:
        shadow = ImageOps.expand(patch.getchannel("A"), 2 * drop).filter(ImageFilter.BoxBlur(drop))
        image.paste((24, 22, 40), (left - drop, top - drop), shadow.point(SHADOW))
        image.paste(patch, (left, top), patch)
    return image


def light(image: Image.Image, rng: np.random.Generator) -> Image.Image:
    """Apply blur, a light gradient, vignette, gamma, colour cast and grain."""
    blur = float(rng.uniform(0, 0.7))
    image = image.filter(ImageFilter.GaussianBlur(blur * image.width / 160)) if blur > 0.3 else image
    axis = np.linspace(-1, 1, image.width, dtype=np.float32)
    angle = rng.uniform(0, 2 * np.pi)
    strength = rng.uniform(0, 0.25)
    vignette = rng.uniform(0, 0.12)
    slope = np.cos(angle) * axis[None, :] + np.sin(angle) * axis[:, None]
    gain = 1 + strength * slope - vignette * (axis[None, :] ** 2 + axis[:, None] ** 2)
    cast = rng.uniform(0.92, 1.08, 3) * rng.uniform(0.95, 1.12)
    pixels = (np.asarray(image, np.float32) / 255) ** np.float32(rng.uniform(0.75, 1.2))
    pixels = pixels * gain[..., None].astype(np.float32) * cast.astype(np.float32)
    pixels += rng.standard_normal(pixels.shape, np.float32) * np.float32(rng.uniform(0.004, 0.03))
    return Image.fromarray((pixels * 255).clip(0, 255).astype(np.uint8))


class Scene(NamedTuple):
    """A scene before :func:`light` is applied, and the random generator to continue with."""

    theme: str
    background: Image.Image
    placed: list[Placed]
    rng: np.random.Generator


def plan_scene(seed: int, index: int, size: int) -> Scene:
    """Choose and place everything in image ``index`` of the set ``seed``.

    The random numbers depend only on (seed, index), so images can be drawn in any order by any process.
    """
    rng = np.random.default_rng(np.random.SeedSequence([seed, index]))
    names = list(THEMES)
    name = names[int(rng.choice(len(names), p=[THEMES[name].share for name in names]))]
    horizon = float(rng.uniform(*THEMES[name].horizon))
    background = draw_background(THEMES[name], horizon, size, rng)
    return Scene(name, background, furnish(THEMES[name], horizon, background, rng), rng)


def draw_scene(seed: int, index: int, size: int) -> tuple[Image.Image, set[str], str]:
    """Draw image ``index`` of the set ``seed``; return the RGB image, its categories and its theme."""
    theme, background, placed, rng = plan_scene(seed, index, size)
    return light(compose(background, placed), rng), present_categories(placed, size), theme


def object_boxes(placed: Sequence[Placed], size: int) -> list[tuple[str, Box]]:
    """Return category and box of every object that is visible enough; boxes are clipped to the image."""
    boxes = []
    for item, share in zip(placed, visible_shares(placed, size), strict=True):
        drawn = item.patch.getchannel("A").getbbox()
        if item.category and share >= LEAST_VISIBLE and drawn is not None:
            left, top, right, bottom = drawn
            box = (
                max(0, item.left + left),
                max(0, item.top + top),
                min(size, item.left + right),
                min(size, item.top + bottom),
            )
            boxes.append((item.category, box))
    return boxes
