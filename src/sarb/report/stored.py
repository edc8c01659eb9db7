"""The numbers of a run, from what its folder stores."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from sarb.metrics.bootstrap import RESAMPLES
from sarb.report.report import CALIBRATED, Report
from sarb.runs.folder import RunFolder


def stored_report(run: RunFolder) -> Report | None:
    """The numbers of ``metrics.json`` if it is there, else measured from the stored scores, else None.

    The rows per category come from the scores, which also give the curves, or from ``metrics.json``.
    """
    measured = None
    calibration = run.calibration()
    if run.scores is not None and run.test is not None:
        resamples = 0 if "mAP_low" in run.metrics else RESAMPLES
        measured = Report.of(run.scores, run.test, run.name, calibration, resamples)
    if "mAP" not in run.metrics:
        return measured
    if measured is None:
        calibrated = _numbers(run.metrics.get(CALIBRATED, {}) if calibration else {})
        rows = _rows(run.metrics.get("per_category"))
        return Report(_numbers(run.metrics), rows, run.name, None, None, calibrated, calibration)
    interval = {name: value for name, value in measured.metrics.items() if name in ("mAP_low", "mAP_high")}
    return replace(measured, metrics={**interval, **_numbers(run.metrics)})


def other_measurements(run: RunFolder) -> dict[str, dict[str, float]]:
    """Measurements nested in ``metrics.json``, such as the epoch that was best on validation images."""
    return {
        key: _numbers(value)
        for key, value in run.metrics.items()
        if key != CALIBRATED and isinstance(value, Mapping) and "mAP" in value
    }


def write_measured(run: RunFolder) -> None:
    """Measure the stored scores again, and replace the numbers that a calibration changes.

    Other content of ``metrics.json`` stays, and a run without stored scores stays as it is.
    """
    if run.scores is None or run.test is None:
        return
    report = Report.of(run.scores, run.test, run.metrics.get("name", run.name), run.calibration())
    kept = {key: value for key, value in run.metrics.items() if key != CALIBRATED}
    run.write_metrics({**kept, **json.loads(report.to_json())})
    report.to_csv(run.per_category_file)


def _numbers(stored: Mapping[str, Any]) -> dict[str, float]:
    """The numbers among stored values, with nan for null."""
    return {key: _nan(value) for key, value in stored.items() if _is_number(value)}


def _is_number(value: Any) -> bool:
    """True for numbers and for the null of an undefined number."""
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool))


def _nan(value: float | None) -> float:
    return math.nan if value is None else value


def _rows(stored: Any) -> list[dict[str, Any]]:
    """Rows per category as stored in JSON, with nan for null."""
    rows = [
        row
        for row in stored or []
        if isinstance(row, Mapping) and {"category", "AP", "positives"} <= set(row)
    ]
    return [{key: _nan(value) for key, value in row.items()} for row in rows]
