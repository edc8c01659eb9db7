"""A ladder between the ten-line baseline and the finished model, both measured like rungs."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from sarb.auto.judge import Judge
from sarb.auto.ladder import Ladder
from sarb.auto.parts import Mask, Parts
from sarb.auto.rung import BASELINE, FINAL, NOTHING, Rung, over_rates
from sarb.auto.tenlines import ten_lines


def framed(ladder: Ladder, pooled: NDArray[np.floating], parts: Parts, judged: Mask | None = None) -> Ladder:
    """Add the rungs ``ten lines`` (unless too many labels are known) and ``final``; the model is the same.

    Args:
        ladder: with all its rungs, and out-of-fold scores (N, C).
        pooled: (N, D) averaged maps.
        parts: the labels (N, C) in the same parts as those of the ladder.
        judged: (N,) images whose known entries are measured; None for all.
    """
    judge = Judge.of(parts if judged is None else parts.only(judged))
    first = []
    gain = NOTHING
    started = time.perf_counter()
    baseline = ten_lines(pooled, parts)
    if baseline is not None:
        scores = baseline.scores
        first.append(Rung.of(BASELINE, False, judge, scores, over_rates(judge, scores), baseline.c, started))
        # the scores of the ladder are tempered, and the judge tempers them again: the same for the baseline
        slope, shift = judge.temper(scores)
        gain = judge.gain(slope * scores + shift, ladder.out_of_fold)
    started = time.perf_counter()
    last = Rung.of(FINAL, True, judge, ladder.out_of_fold, gain, float("nan"), started)
    return replace(ladder, rungs=(*first, *ladder.rungs, last))
