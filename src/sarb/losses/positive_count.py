"""The number of present labels per image: expected positive regularisation (Cole et al. 2021)."""

from __future__ import annotations

import numpy as np
from torch import Tensor

from sarb.errors import ConfigError
from sarb.labels import LabelMatrix


def count_loss(probabilities: Tensor, expected: float) -> Tensor:
    """R = ((k̂ − k) / C)², where k̂ is the mean over the batch of Σ_c p.

    k̂ belongs to one batch; each of several processes has its own.

    Args:
        probabilities: p (B, C).
        expected: k, present labels per image.
    """
    counted = probabilities.sum(1).mean()
    return ((counted - expected) / probabilities.shape[1]) ** 2


def expected_positives(labels: LabelMatrix) -> float:
    """Estimate k from known labels: the sum over categories of the share of present among known labels.

    A category without known labels takes the share of all categories together. Known absent labels are needed:
    without one, every share is 1.
    """
    positives = labels.positives
    known = positives + labels.negatives
    if positives.any() and not labels.negatives.any():
        raise ConfigError(
            [
                "method.positives: no label is known to be absent, so the number of present labels per image "
                "cannot be estimated; give it, such as --set method.positives=2.9 (COCO) or 1.5 (VOC)"
            ]
        )
    overall = positives.sum() / max(1, known.sum())
    return float(np.where(known > 0, positives / np.maximum(known, 1), overall).sum())
