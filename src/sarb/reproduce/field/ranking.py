"""Who is ahead, and what is inside the noise: mean ranks and differences of mAP, with bootstrap intervals.

All models are resampled with the same test photos, so the intervals are paired. They cover which photos were tested;
what another mask and another seed change is the ± of the tables.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sarb.metrics.bootstrap import Interval, centred

#: significance level of the critical difference
LEVEL = 0.05


class Block(NamedTuple):
    """What all methods are compared at: one mask of one setting."""

    setting: str
    known: float
    seed: int

    @property
    def column(self) -> tuple[str, float]:
        """The block without its seed."""
        return self.setting, self.known


@dataclass(frozen=True)
class Standing:
    """Where the rows stand.

    Attributes:
        rows: that have a result in every block, the best mean rank first.
        ranks: mean rank over the blocks (1 is best) with its interval, of each row.
        behind: (setting, known) -> mAP of each row minus that of the best there, with its interval.
        critical: Nemenyi's critical difference of mean ranks; nan for a single block.
        blocks: how many.
    """

    rows: tuple[str, ...]
    ranks: tuple[Interval, ...]
    behind: Mapping[tuple[str, float], tuple[Interval, ...]]
    critical: float
    blocks: int


def standing(resampled: Mapping[Block, Mapping[str, NDArray[np.float64]]]) -> Standing | None:
    """Rank the rows that all blocks have; None with fewer than two.

    Args:
        resampled: block -> row -> mAP (1 + B,) of all test photos and of B resamples of them, the same for all.
    """
    blocks = list(resampled)
    first = resampled[blocks[0]] if blocks else {}
    rows = [row for row in first if all(row in resampled[block] for block in blocks)]
    if len(rows) < 2:
        return None
    found = np.array([[resampled[block][row] for row in rows] for block in blocks])
    ranks = _ranks(found).mean(0)  # (rows, 1 + resamples)
    order = np.argsort(ranks[:, 0], kind="stable")
    highest = float(len(rows))
    shown = [_within(centred(ranks[place]), 1.0, highest) for place in order]
    behind = {
        column: _behind(found[[block.column == column for block in blocks]].mean(0)[order])
        for column in dict.fromkeys(block.column for block in blocks)
    }
    names = tuple(rows[place] for place in order)
    return Standing(names, tuple(shown), behind, critical_difference(len(rows), len(blocks)), len(blocks))


def _ranks(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Rank (blocks, rows, 1 + B) along the rows, the largest value first; equals share their mean rank."""
    from scipy.stats import rankdata

    ranked: NDArray[np.float64] = rankdata(-values, axis=1)
    return ranked


def _behind(values: NDArray[np.float64]) -> tuple[Interval, ...]:
    """Difference of each row (rows, 1 + B) to the one that is best in the first column."""
    return tuple(centred(row) for row in values - values[np.argmax(values[:, 0])])


def _within(interval: Interval, low: float, high: float) -> Interval:
    return Interval(interval.value, max(interval.low, low), min(interval.high, high))


def critical_difference(rows: int, blocks: int) -> float:
    """Nemenyi's q √(k (k + 1) / (6 B)) at 5 %: mean ranks that differ by less cannot be told apart.

    It takes the B blocks as independent. Here they share their test photos, so it is only a guide.
    """
    from scipy.stats import studentized_range

    if blocks < 2:
        return math.nan
    quantile = float(studentized_range.ppf(1 - LEVEL, rows, np.inf)) / math.sqrt(2)
    return quantile * math.sqrt(rows * (rows + 1) / (6 * blocks))


def inside_the_noise(rows: Sequence[str], behind: Sequence[Interval]) -> list[str]:
    """The rows that cannot be told from the best one, which is among them."""
    return [row for row, interval in zip(rows, behind, strict=True) if interval.zero_inside]
