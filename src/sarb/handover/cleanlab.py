"""cleanlab's forms. It knows no unknown labels, so each category becomes a binary problem of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sarb.errors import DataError


class BinaryProblem(NamedTuple):
    """One category as cleanlab sees it: the images whose label is known.

    ``find_label_issues(problem.labels, problem.pred_probs)`` takes both as they are; ``rows[i]`` is the row of
    entry i in the matrix.

    Args:
        rows: (n,) rows of the images in the matrix.
        labels: (n,) 1 present, 0 absent.
        pred_probs: (n, 2) probability of absent and of present.
    """

    rows: NDArray[np.int64]
    labels: NDArray[np.int64]
    pred_probs: NDArray[np.float64]


def binary_problems(
    values: NDArray[np.int8], probabilities: NDArray[np.float64], categories: Sequence[str]
) -> dict[str, BinaryProblem]:
    """Return category -> its binary problem.

    Args:
        values: (N, C) labels in {-1, 0, +1}.
        probabilities: (N, C).
        categories: C names.
    """
    problems = {}
    for column, category in enumerate(categories):
        rows = np.flatnonzero(values[:, column])
        present = probabilities[rows, column]
        labels = (values[rows, column] > 0).astype(np.int64)
        problems[category] = BinaryProblem(rows, labels, np.stack([1 - present, present], axis=1))
    return problems


def class_lists(values: NDArray[Any]) -> list[list[int]]:
    """Return cleanlab's multi-label form: for every image the numbers of the categories that are present.

    Args:
        values: (N, C) labels without an unknown one.

    Raises:
        DataError: a label is unknown; in this form it would count as absent.
    """
    unknown = int((values == 0).sum())
    if unknown:
        raise DataError(
            f"{unknown:,} labels are unknown, and cleanlab's multi-label form would take them for absent; "
            "use scores.to_cleanlab(labels), which gives one problem per category over its known labels"
        )
    return [np.flatnonzero(row > 0).tolist() for row in values]
