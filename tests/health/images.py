"""``Images`` without files."""

from pathlib import Path

import numpy as np

from sarb.health.findings import Images
from sarb.labels import LabelMatrix


def images(splits, values=None, categories=("cat", "dog")):
    names = [f"{row}.jpg" for row in range(len(splits))]
    values = (
        np.zeros((len(splits), len(categories)), np.int8) if values is None else np.array(values, np.int8)
    )
    return Images(names, [Path(name) for name in names], splits, LabelMatrix(values, categories, names))
