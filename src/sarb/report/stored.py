"""The numbers of a run, from what its folder stores."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from sarb.report.report import Report
from sarb.runs.folder import RunFolder


def stored_report(run: RunFolder) -> Report | None:
    """The numbers of ``metrics.json`` if it is there, else measured from the stored scores, else None.

    The rows per category come from the scores, which also give the curves, or from ``metrics.json``.
    """
    measured = None
    if run.scores is not None and run.test is not None:
        measured = Report.of(run.scores, run.test, run.name)
    if "mAP" not in run.metrics:
        return measured
    numbers = {key: _nan(value) for key, value in run.metrics.items() if _is_number(value)}
    if measured is None:
        return Report(numbers, _rows(run.metrics.get("per_category")), run.name, None, None)
    return Report(numbers, measured.per_category, run.name, run.scores, run.test)


def other_measurements(run: RunFolder) -> dict[str, dict[str, float]]:
    """Measurements nested in ``metrics.json``, such as the epoch that was best on validation images."""
    nested = {
        key: value for key, value in run.metrics.items() if isinstance(value, Mapping) and "mAP" in value
    }
    return {
        key: {name: _nan(number) for name, number in value.items() if _is_number(number)}
        for key, value in nested.items()
    }


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
