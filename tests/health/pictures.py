"""Pictures with something to see: smooth noise of several sizes, the same for the same seed."""

import numpy as np
from PIL import Image


def picture(seed, side=128):
    """An RGB picture with coarse and fine structure, and sharp edges."""
    random = np.random.default_rng(seed)
    layers = [
        Image.fromarray(random.integers(0, 256, (size, size, 3), dtype=np.uint8)).resize((side, side), kind)
        for size, kind in (
            (4, Image.Resampling.BICUBIC),
            (8, Image.Resampling.NEAREST),
            (16, Image.Resampling.NEAREST),
        )
    ]
    return Image.blend(Image.blend(layers[0], layers[1], 0.5), layers[2], 0.33)
