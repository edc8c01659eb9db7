"""Blurry, dark, bright, blank and tiny images.

Each limit is absolute and relative to the data set: an image is blurry if it has no sharp edge and is far less
sharp than usual here. So a data set of smooth or dark pictures (X-rays, night skies) is not all faulty.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sarb.health.findings import Finding, Images
from sarb.health.looks import Look

Floats = NDArray[np.float64]

#: a blurry image is less sharp than this, and this many standard deviations below the median
BLURRY = 0.42
DEVIATIONS = 3.0
#: 95 % of a dark image's pixels stay below this luminance, and below this share of the data set's median
DARK = 0.24
DARK_SHARE = 0.5
#: 95 % of an overexposed image's pixels exceed this luminance, and the data set's median is below half of it
BRIGHT = 0.9
#: a blank image's luminance spans less than this, and no place of it differs more than SHAPE in any colour
BLANK = 0.02
SHAPE = 0.1
#: a tiny image's shorter side is below this, and below this share of the data set's median
TINY = 64
TINY_SHARE = 0.5


def faulty_images(images: Images, looks: Sequence[Look]) -> list[Finding]:
    """Findings about N images from N looks, the worst of each kind first."""
    sharpness, light, shade, side, contrast = (
        np.array([getattr(look, name) for look in looks], np.float64)
        for name in ("sharpness", "light", "shade", "side", "contrast")
    )
    blank = (light - shade < BLANK) & (contrast < SHAPE)
    blurred = _below(sharpness, min(BLURRY, _usual_least(sharpness)))
    dark = _below(light, min(DARK, DARK_SHARE * _median(light)))
    small = _below(side, min(TINY, TINY_SHARE * _median(side)))
    bright = _below(1 - shade, 1 - BRIGHT) if _median(shade) < BRIGHT / 2 else np.zeros(len(looks))
    visible = ~blank
    judged = [
        ("blurry", visible * blurred, "sharpness {:.2f} of 1", sharpness),
        ("dark", visible * dark, "95 % of the pixels are below {:.0%} luminance", light),
        ("bright", visible * bright, "95 % of the pixels are above {:.0%} luminance", shade),
        ("blank", blank.astype(np.float64), "luminance {:.0%} everywhere", light),
        ("tiny", small, "shorter side {:.0f} pixels", side),
    ]
    return [
        images.finding(kind, row, float(score[row]), words.format(measured[row]))
        for kind, score, words, measured in judged
        for row in np.argsort(-score, kind="stable").tolist()
        if score[row] > 0
    ]


def _below(values: Floats, limit: float) -> Floats:
    """How far values are below a limit, as a share of it; 0 at or above it, and for nan."""
    short = np.nan_to_num((limit - values) / limit) if limit > 0 else np.zeros(len(values))
    return np.asarray(np.clip(short, 0, 1))


def _median(values: Floats) -> float:
    return float(np.nanmedian(values)) if np.isfinite(values).any() else 0.0


def _usual_least(values: Floats) -> float:
    """Median − DEVIATIONS · standard deviation, both robust."""
    middle = _median(values)
    return middle - DEVIATIONS * 1.4826 * _median(np.abs(values - middle))
