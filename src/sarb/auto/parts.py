"""Known entries in parts: every rung of the ladder is fitted F + 1 times, each time without one part.

Model f < F has not seen the known labels of part f; model F, the last, has seen them all and is the one that
is kept. The out-of-fold score of an entry is that of the model of its own part, so a choice that looks at
out-of-fold scores never looks at a score whose label helped to make it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from sarb.labels import ABSENT, PRESENT, UNKNOWN, LabelMatrix

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Parts:
    """The labels and the part of each entry.

    Args:
        values: (N, C) in {-1, 0, +1}.
        numbers: (N, C) part 0 … count − 1 of every entry, known or not.
        count: number of parts F.
    """

    values: NDArray[np.int8]
    numbers: NDArray[np.int64]
    count: int

    @classmethod
    def of(cls, labels: LabelMatrix, count: int, seed: int = 0) -> Parts:
        """Divide the entries of each category's present, absent and unknown labels equally."""
        from sarb.labelling.folds import fold_numbers  # it imports the trainer, which will import this

        return cls(np.asarray(labels.values, np.int8), fold_numbers(labels, count, seed), count)

    def only(self, rows: Mask) -> Parts:
        """The same parts, with the labels of all images unknown except those in ``rows`` (N,)."""
        return replace(self, values=np.where(rows[:, None], self.values, np.int8(UNKNOWN)))

    @property
    def known(self) -> Mask:
        """(N, C) where a label is known."""
        return np.asarray(self.values != UNKNOWN)

    @property
    def models(self) -> range:
        """Numbers of the F + 1 models; the last one learns from everything."""
        return range(self.count + 1)

    def seen(self, model: int) -> Mask:
        """(N, C) known entries that this model learns from."""
        return np.asarray(self.known & (self.numbers != model))

    def present(self, model: int) -> Mask:
        """(N, C) known positives that this model learns from."""
        return np.asarray((self.values == PRESENT) & (self.numbers != model))

    def rates(self, model: int) -> Floats:
        """(C,) share of positives among what the model sees, drawn to the share over all categories.

        (positives + 2 r) / (known + 2), r = (all positives + 1) / (all known + 2): never 0 and never 1.
        """
        seen = self.seen(model)
        known = seen.sum(0)
        positives = (seen & (self.values != ABSENT)).sum(0)
        shared = (positives.sum() + 1) / (known.sum() + 2)
        out: Floats = (positives + 2 * shared) / (known + 2)
        return out

    def held_out(self, scores: NDArray[np.floating]) -> Floats:
        """Scores of all models (F + 1, N, C) -> out-of-fold scores (N, C), each entry by its own model."""
        return np.asarray(np.take_along_axis(scores, self.numbers[None], 0)[0], np.float64)

    def columns(self) -> Iterator[tuple[int, NDArray[np.int64]]]:
        """Each category with the rows whose label is known."""
        for category in range(self.values.shape[1]):
            yield category, np.flatnonzero(self.values[:, category])


def log_odds(rates: Floats) -> Floats:
    """Logit of each rate, log p / (1 − p)."""
    out: Floats = np.log(rates) - np.log1p(-rates)
    return out
