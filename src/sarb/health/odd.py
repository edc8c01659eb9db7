"""Images that resemble no other: even their nearest neighbours are far away."""

from __future__ import annotations

import numpy as np

from sarb.health.findings import Finding, Images
from sarb.health.neighbours import Nearest

#: an image is odd if its similarity is this many times further below the median than the lower quartile is
DISTANCES = 2.5
#: and at most this share of the images, the oddest, are listed
MOST = 0.01
#: fewer images than this have no typical distance
FEWEST = 50


def odd_images(images: Images, similar: Nearest) -> list[Finding]:
    """Findings, the oddest first. The similarity of an image is the median cosine of its neighbours.

    The median is not disturbed by a few duplicates of the image.
    """
    if len(images) < FEWEST:
        return []
    likeness = np.median(similar.cosines, axis=1)
    quartile, middle = np.quantile(likeness, (0.25, 0.5)).tolist()
    limit = min(middle - DISTANCES * (middle - quartile), float(np.quantile(likeness, MOST)))
    rows = np.flatnonzero(likeness < limit)
    return [
        images.finding(
            "odd",
            row,
            float(np.clip((middle - likeness[row]) / max(1 + middle, 1e-6), 0, 1)),
            f"similarity to its nearest images {likeness[row]:.2f}, usual is {middle:.2f}",
        )
        for row in rows[np.argsort(likeness[rows], kind="stable")].tolist()
    ]
