"""Scores whose right calibration is known: labels are drawn from σ(slope_c · logit + offset_c)."""

import numpy as np

from sarb.labels import LabelMatrix
from sarb.scores import Scores


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def make(images, slope, offset, known=1.0, seed=0, mean=-1.0, spread=2.0):
    """Return scores, partly known labels, all labels, and true probabilities; slope and offset (C,)."""
    random = np.random.default_rng(seed)
    slope, offset = np.asarray(slope, float), np.asarray(offset, float)
    logits = random.normal(mean, spread, (images, len(slope))).astype(np.float32)
    p = sigmoid(slope * logits + offset)
    truth = np.where(random.random(p.shape) < p, 1, -1)
    values = np.where(random.random(p.shape) < known, truth, 0)
    names = [f"thing {number}" for number in range(len(slope))]
    paths = [f"{number:04d}.jpg" for number in range(images)]
    labels = [LabelMatrix(each, names, paths) for each in (values, truth)]
    return Scores(logits, names, paths), *labels, p
