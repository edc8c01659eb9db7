"""A rung: what one step of the ladder reaches out of fold, and its row in ``log.csv``."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sarb.auto.judge import Gain, Judge
from sarb.auto.parts import Floats, log_odds
from sarb.metrics.bootstrap import Interval, centred

#: names of the two rungs that are no steps: the first and the last
BASELINE = "ten lines"
FINAL = "final"
#: name of the rung that replaces the frozen features of all others
FINETUNE = "finetune"
#: the columns of a row that are attributes of a rung
MEASURED = ("mean_ap", "loss", "gain", "low", "high", "weight", "seconds")
#: where nothing was measured
NOTHING = Gain(float("nan"), float("nan"), float("nan"))


@dataclass(frozen=True)
class Rung:
    """One step of the ladder, measured out of fold on the known entries.

    Args:
        name: ``probe``, ``names``, ``bayes``, ``ridge`` (λ chosen again), ``student``, ``neighbours`` or
            ``residual …``, ``finetune``; before them ``ten lines``, the baseline, and after them ``final``, the
            finished model.
        kept: whether the final model uses it; never for ``ten lines``, always for ``final``.
        mean_ap: mAP over known entries with it, in percent.
        loss: mean loss with it; 1 is knowing the rates only.
        gain: fall of the loss, with its 95 % interval ``low`` to ``high``: against the rates for ``ten lines`` and
            ``probe``, against ``ten lines`` for ``final``, against the ladder on frozen features for ``finetune``,
            against the ladder so far for the others.
        low: see gain.
        high: see gain.
        weight: mean weight over the categories; λ for probe and ridge; added positives per category; C for
            ``ten lines``; trained stages for ``finetune``.
        seconds: that it took.
        spread: mAP over known entries, then over each resample of the images, see :meth:`Judge.spread`.
    """

    name: str
    kept: bool
    mean_ap: float
    loss: float
    gain: float
    low: float
    high: float
    weight: float
    seconds: float
    spread: Floats = field(default_factory=lambda: np.array([np.nan]), repr=False, compare=False)

    @classmethod
    def of(
        cls, name: str, kept: bool, judge: Judge, scores: Floats, gain: Gain, weight: float, started: float
    ) -> Rung:
        """Measure out-of-fold scores (N, C); ``started`` is when the step began."""
        spread = judge.spread(scores)
        seconds = time.perf_counter() - started
        return cls(name, kept, judge.mean_ap(scores), judge.loss(scores), *gain, weight, seconds, spread)

    def row(self, baseline: Rung | None = None) -> dict[str, Any]:
        """As a row of ``log.csv``; ``ahead`` is its mAP minus that of the baseline, on the same resamples."""
        own = centred(self.spread)
        ahead = Interval(*NOTHING) if baseline is None else centred(self.spread - baseline.spread)
        numbers = {
            **{name: getattr(self, name) for name in MEASURED},
            "mean_ap_low": own.low,
            "mean_ap_high": own.high,
            "ahead": ahead.value,
            "ahead_low": ahead.low,
            "ahead_high": ahead.high,
        }
        rounded = {name: round(float(number), 6) for name, number in numbers.items()}
        return {"rung": self.name, "kept": self.kept, **rounded}


def over_rates(judge: Judge, scores: Floats) -> Gain:
    """Gain of out-of-fold scores (N, C) over knowing the rates only."""
    parts = judge.parts
    rates = np.stack([log_odds(parts.rates(model)) for model in parts.models])
    nothing = np.broadcast_to(rates[:, None], (len(rates), *scores.shape))
    return judge.gain(parts.held_out(nothing), scores)
