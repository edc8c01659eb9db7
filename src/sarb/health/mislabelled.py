"""Given labels that a model contradicts which has not seen them: the conflicts of ``sarb complete``."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sarb.health.findings import Finding
from sarb.labelling.completion import STRONG
from sarb.labelling.conflicts import find_conflicts
from sarb.labels import LabelMatrix, word_of


def doubtful_labels(
    calibrated: NDArray[np.float64], labels: LabelMatrix, thresholds: NDArray[np.float64], split: str
) -> list[Finding]:
    """Strongly contradicted labels of a split, the most doubtful first.

    Args:
        calibrated: (N, C) probabilities by models that have not seen the labels they judge.
        labels: (N, C); unknown entries are not judged.
        thresholds: (C,) from which on a category counts as present.
        split: name of the split.
    """
    return [
        Finding(
            "label",
            1 - conflict.belief,
            f"given as {word_of(conflict.given)}, probability of present {conflict.calibrated:.3f}",
            conflict.file_name,
            split,
            conflict.label,
        )
        for conflict in find_conflicts(calibrated, labels, thresholds)
        if conflict.belief < STRONG
    ]
