"""Heat maps over an image: one clean picture, or a strip of labelled panels with colour bars."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from sarb.report.style import Theme, new_figure, png, short, style

#: red, green, blue, opacity from cold to hot; cold areas stay transparent
HEAT = ((255, 226, 120, 0.0), (255, 170, 40, 0.45), (226, 60, 30, 0.72), (120, 8, 40, 0.85))
#: what the numbers of a map are
MEANING = {
    "attention": "attention (1 = uniform)",
    "mask": "mask",
    "activation": "product with the classifier",
    "evidence": "contribution to the logit",
}
#: longer side of a panel in pixels, and panels per row
SIDE = 480
ACROSS = 4

Panel = tuple[str, float, NDArray[np.float32]]


def colours(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Numbers in 0..1 of any shape -> (…, 4): red, green, blue in 0..255 and opacity in 0..1."""
    stops = np.linspace(0, 1, len(HEAT))
    return np.stack([np.interp(values, stops, [stop[part] for stop in HEAT]) for part in range(4)], -1)


def limits(heat: NDArray[np.float32]) -> tuple[float, float]:
    """Return the values drawn coldest (the minimum, at least 0) and hottest (the maximum); never equal.

    Evidence against a category (below 0 in an activation map) is drawn as cold as no evidence.
    """
    low = max(0.0, float(heat.min()))
    high = float(heat.max())
    return (low, high) if high > low else (low, low + 1.0)


def blend(image: Image.Image, heat: NDArray[np.float32], side: int | None = None) -> Image.Image:
    """Draw a map (H, W) over an image: resized (bicubic) and coloured, hot areas more opaque."""
    photo = image.copy()
    if side is not None:
        photo.thumbnail((side, side))
    low, high = limits(heat)
    stretched = Image.fromarray(np.ascontiguousarray(heat, np.float32)).resize(
        photo.size, Image.Resampling.BICUBIC
    )
    colour = colours(np.clip((np.asarray(stretched, np.float64) - low) / (high - low), 0, 1))
    opacity = colour[..., 3:]
    mixed = np.asarray(photo, np.float64) * (1 - opacity) + colour[..., :3] * opacity
    return Image.fromarray(mixed.round().astype(np.uint8))


def strip(image: Image.Image, panels: Sequence[Panel], map_type: str, *, theme: Theme = "light") -> bytes:
    """Panels (name, probability, map (H, W)) in rows of four; each map has its own colour bar."""
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import LinearSegmentedColormap, Normalize
    from matplotlib.ticker import MaxNLocator

    table = [(red / 255, green / 255, blue / 255, opacity) for red, green, blue, opacity in HEAT]
    columns = min(ACROSS, len(panels))
    rows = math.ceil(len(panels) / columns)
    tall = image.height / image.width
    width = 3.6 if columns == 1 else 2.6
    with style(theme) as chosen:
        heat_colours = LinearSegmentedColormap.from_list("overlay", table)
        figure = new_figure(rows * (width * tall + 0.9), width=columns * width + 0.2)
        axes = figure.subplots(rows, columns, squeeze=False).ravel()
        for panel in axes:
            panel.set_axis_off()
        for panel, (name, probability, heat) in zip(axes, panels, strict=False):
            low, high = limits(
                heat * heat.size if map_type == "attention" else heat
            )  # shares of 1/49 say little
            panel.imshow(np.asarray(blend(image, heat, SIDE)))
            panel.set_title(f"{short(name)}  {probability:.2f}", color=chosen.text)
            shown = ScalarMappable(Normalize(low, high), heat_colours)
            bar = figure.colorbar(shown, ax=panel, orientation="horizontal", shrink=0.8, aspect=24, pad=0.03)
            bar.set_label(MEANING[map_type], size=8)
            bar.ax.tick_params(labelsize=7)
            bar.locator = MaxNLocator(nbins=4)
            bar.outline.set_visible(False)
        return png(figure)
