"""The scale of out-of-fold scores: that of the final model, which had more labels to learn from."""

from __future__ import annotations

import numpy as np

from sarb.errors import DataError
from sarb.labels import LabelMatrix
from sarb.scores import Scores


def on_scale(held: Scores, scores: Scores, labels: LabelMatrix) -> Scores:
    """Out-of-fold scores on the scale of the final model, which had more labels to learn from.

    Both have scored the same images. Where neither has seen a label, their logits are made to have the same
    mean and standard deviation in each category: held' = (held − m_held) / s_held · s + m. It takes no label
    to do so.

    Args:
        held: (N, C) out-of-fold scores.
        scores: (N, C) of the final model, the same images.
        labels: (N, C) what it has learned from; a category without unknown entries is unchanged.
    """
    if (held.paths, held.categories) != (scores.paths, scores.categories):
        raise DataError(
            "the out-of-fold scores and the model's scores are for different images or categories"
        )
    logits = held.logits.astype(np.float64)
    for column, unknown in enumerate(~labels.known.T):
        mine = logits[unknown, column]
        theirs = scores.logits[unknown, column].astype(np.float64)
        if len(mine) > 1 and mine.std() > 0 and theirs.std() > 0:
            scaled = (logits[:, column] - mine.mean()) / mine.std()
            logits[:, column] = scaled * theirs.std() + theirs.mean()
    return Scores(logits, held.categories, held.paths)
