"""Two readings of the same scores: the network's own probabilities at 0.5, and a calibration at its thresholds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sarb.labelling.calibration import Calibration
from sarb.labels import LabelMatrix
from sarb.metrics import evaluate, per_category
from sarb.scores import Scores

DECISIONS = ("OP", "OR", "OF1", "CP", "CR", "CF1")
#: suffix of a metric name -> when a label is predicted present
RULES = {
    "": "probability ≥ 0.5, as in the paper",
    "_top3": "top 3 and ≥ 0.5",
    "_top3_raw": "top 3, no threshold",
}
#: the same for calibrated probabilities
CALIBRATED_RULES = {"": "calibrated ≥ its threshold", "_top3": "calibrated, top 3 and ≥ its threshold"}
#: what the numbers at the top of metrics.json are
AT_HALF = "probabilities: not calibrated; threshold: 0.5 for all categories, as in the paper"
#: a smaller difference of mAP does not show in one decimal
VISIBLE = 0.05


def calibrated_metrics(scores: Scores, labels: LabelMatrix, calibration: Calibration) -> dict[str, float]:
    """Return the numbers of :func:`sarb.metrics.evaluate` for calibrated probabilities and their thresholds."""
    return evaluate(calibration(scores), labels, calibration.ordered(scores.categories).thresholds)


def calibrated_rows(scores: Scores, labels: LabelMatrix, calibration: Calibration) -> list[dict[str, Any]]:
    """Return per category its threshold, and precision, recall and F1 at that threshold."""
    thresholds = calibration.ordered(scores.categories).thresholds
    rows = per_category(calibration(scores), labels, threshold=thresholds)
    return [
        {
            "threshold": float(threshold),
            **{f"{name}_calibrated": row[name] for name in ("precision", "recall", "F1")},
        }
        for threshold, row in zip(thresholds, rows, strict=True)
    ]


def decision_rows(
    metrics: Mapping[str, float], calibrated: Mapping[str, float]
) -> list[tuple[str, Sequence[float | None]]]:
    """Return each rule in words with its OP to CF1; ``calibrated`` is empty for a model without calibration."""
    rules = [(metrics, suffix, rule) for suffix, rule in RULES.items()]
    rules += [(calibrated, suffix, rule) for suffix, rule in CALIBRATED_RULES.items() if calibrated]
    return [(rule, [found.get(name + suffix) for name in DECISIONS]) for found, suffix, rule in rules]


def tied(metrics: Mapping[str, float], calibrated: Mapping[str, float]) -> str:
    """A sentence if calibrated probabilities rank otherwise than the scores do, else empty.

    Platt scaling and temperature keep the order within a category; the steps of an isotonic curve make ties.
    """
    if not abs(calibrated.get("mAP", 0.0) - metrics.get("mAP", 0.0)) >= VISIBLE or not calibrated:
        return ""
    return (
        f"mAP by calibrated probabilities is {calibrated['mAP']:.1f}: the calibration curve ties some images"
    )
