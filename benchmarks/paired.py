"""Is one model better than another on these photos? The paired difference of their mAP as columns of a table."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sarb.metrics import map_difference

Floats = NDArray[np.floating]
Labels = NDArray[np.int8]


def difference(ours: Sequence[Floats], theirs: Sequence[Floats], labels: Labels) -> dict[str, str]:
    """Mean over masks of mAP(ours) − mAP(theirs), with its interval; one matrix of scores (N, C) per mask."""
    found = map_difference(ours, theirs, labels)
    return {"gain": f"{found.value:+.2f}", "low": f"{found.low:+.2f}", "high": f"{found.high:+.2f}"}
