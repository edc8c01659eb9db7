"""A small made-up problem: images with features that depend on their labels, and a classifier of concepts."""

import numpy as np

from sarb.auto.evidence import ConceptScores
from sarb.labels import LabelMatrix


def made(images=120, categories=4, known=0.5, seed=0, width=32, concepts=10):
    """Return pooled vectors (N, D), partial labels, all labels (N, C), concept scores and ties (C, K)."""
    random = np.random.RandomState(seed)
    full = np.where(random.rand(images, categories) < 0.3, 1, -1)
    signs = random.randn(categories, width)
    pooled = np.abs((full > 0) @ signs + random.randn(images, width))
    logits = random.randn(images, concepts)
    logits[:, :categories] += 2.0 * (full > 0)
    powers = np.exp(logits)
    share = (powers / powers.sum(1, keepdims=True)).astype(np.float32)
    ties = np.eye(categories, concepts) > 0
    values = np.where(random.rand(images, categories) < known, full, 0)
    names = [f"category {number}" for number in range(categories)]
    labels = LabelMatrix(values, names, [f"{row}.jpg" for row in range(images)])
    return pooled.astype(np.float32), labels, full, ConceptScores(share, share, share), ties
