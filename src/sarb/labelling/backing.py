"""How far an expected precision can be trusted: what the held-out known labels say about the same decision.

The mean probability of the filled labels is a promise of the calibration, which few labels can hardly check. Here,
the known labels of a category that would have been filled in the same way are counted, with how many of them are
right. Needs no torch.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

#: standard normal quantile of a two-sided 95 % interval
Z = 1.96
#: an expected precision is rough where the interval reaches this far below it
ROUGH = 0.1
#: how many categories are named in the sentence
NAMED = 3


class Backing(NamedTuple):
    """The filled labels of one category and kind, and the held-out labels behind their expected precision.

    ``low`` and ``high`` are the 95 % interval (Wilson) of the share of right ones among ``checked`` known labels
    that would have been filled in the same way.
    """

    label: str
    kind: str
    filled: int
    expected: float
    checked: int
    right: int
    low: float
    high: float

    @property
    def rough(self) -> bool:
        """Whether the held-out labels allow a precision far below the expected one."""
        return self.expected - self.low > ROUGH

    def __str__(self) -> str:
        if not self.checked:
            return f"{self.label} {self.kind} (expected {self.expected:.3f}; no known label can check it)"
        return (
            f"{self.label} {self.kind} (expected {self.expected:.3f}; {self.right:,} of {self.checked:,} "
            f"such known labels are right, so {self.low:.2f} to {self.high:.2f})"
        )


def wilson(right: int, number: int) -> tuple[float, float]:
    """The 95 % interval of a share by Wilson's score; 0 to 1 without any label."""
    if not number:
        return 0.0, 1.0
    share = right / number
    middle = share + Z**2 / (2 * number)
    spread = Z * math.sqrt(share * (1 - share) / number + (Z / (2 * number)) ** 2)
    scale = 1 + Z**2 / number
    return max(0.0, (middle - spread) / scale), min(1.0, (middle + spread) / scale)


def backing(
    counts: NDArray[np.int64], upper: Floats, lower: Floats, filled: Sequence[tuple[str, str, int, float]]
) -> tuple[Backing, ...]:
    """Look up the held-out labels behind each of the filled groups.

    Args:
        counts: (2, C, L) of held-out present and absent entries by level, see ``thresholds.py``.
        upper: (C,) present from this probability on.
        lower: (C,) absent up to this probability.
        filled: for each category ``present``, then for each ``absent``: label, kind, count and expected precision.
    """
    levels = counts.shape[2]
    edges = np.arange(levels + 1) / levels
    inside = {
        "present": edges[:-1] >= upper[:, None] - 1e-9,
        "absent": edges[1:] <= lower[:, None] + 1e-9,
    }
    found = []
    for place, (label, kind, number, expected) in enumerate(filled):
        column = place % len(upper)
        same = counts[:, column, inside[kind][column]].sum(1)
        right = int(same[0 if kind == "present" else 1])
        checked = int(same.sum())
        found.append(Backing(label, kind, number, expected, checked, right, *wilson(right, checked)))
    return tuple(found)


def caution(all_of_them: Sequence[Backing]) -> str:
    """A sentence that names the groups with a rough expected precision, the largest first; "" if there is none."""
    rough = sorted((one for one in all_of_them if one.filled and one.rough), key=lambda one: -one.filled)
    if not rough:
        return ""
    groups = sum(1 for one in all_of_them if one.filled)
    labels = sum(one.filled for one in rough)
    more = f"; and {len(rough) - NAMED:,} more" if len(rough) > NAMED else ""
    return (
        f"the expected precision is rough for {len(rough):,} of {groups:,} groups ({labels:,} filled labels), because "
        "few known labels can check it: " + "; ".join(map(str, rough[:NAMED])) + more
    )
