"""When a trial is ended early: after an epoch in which its best value so far is below the median of earlier ones.

It is the rule of Optuna's ``MedianPruner``. The medians are computed when the trial begins, from the trials that it may
know (see :mod:`sarb.tuning.study`) and travel with it, so that a trial ends at the same epoch wherever it runs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from sarb.training.track import Trackers

#: finished trials before any is ended early
FIRST = 5
#: metrics that the training measures after each epoch
FOLLOWED = ("mAP", "mAP_interpolated", "OF1", "CF1")


class PrunedError(Exception):
    """The trial is not worth going on."""


def medians(curves: Sequence[Sequence[float]]) -> list[float]:
    """The median of these trials after each epoch that all of them reached; nothing if they are too few.

    >>> medians([[1, 5], [2, 6], [3, 7], [4, 8], [5, 9, 10]])
    [3, 7]
    """
    return [median(column) for column in zip(*curves, strict=False)] if len(curves) >= FIRST else []


class Pruning(Trackers):
    """Watches the log of a training.

    Args:
        metric: of :data:`FOLLOWED`.
        limits: what a trial must have reached after each epoch; none after the last one.
    """

    def __init__(self, metric: str, limits: Sequence[float]) -> None:
        super().__init__(None, None)
        self.column = f"valid_{metric}"
        self.limits = limits

    def log(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Raise if the last epoch has shown that the trial is behind; a resumed run shows it again."""
        best = -1.0
        for epoch, row in enumerate(rows):
            best = max(best, float(row[self.column]))
            if epoch < len(self.limits) and best < self.limits[epoch]:
                raise PrunedError
