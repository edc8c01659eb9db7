"""The numbers of the paper's tables (``published.csv``) by our row names; its mAP is interpolated."""

from __future__ import annotations

import csv
import functools
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

#: data sets of the paper, and their names in the paper
TITLES = {"coco2014": "MS-COCO", "vg200": "VG-200", "voc2007": "Pascal VOC 2007"}
#: (name of a data source, number of categories) -> data set of the paper
KNOWN = {("coco", 80): "coco2014", ("vg", 200): "vg200", ("voc2007", 20): "voc2007"}
ALL_NINE = tuple(round(0.1 * tenth, 1) for tenth in range(1, 10))


def recognise(data: Any) -> str | None:
    """Return which of the paper's data sets this is, or None."""
    return data.name if data.name in TITLES else KNOWN.get((data.name, len(data.categories)))


@functools.cache
def _numbers() -> dict[tuple[str, str, str, str], float]:
    with (Path(__file__).parent / "published.csv").open(encoding="utf-8", newline="") as file:
        return {
            (line["dataset"], line["method"], line["known_percent"], line["metric"]): float(line["value"])
            for line in csv.DictReader(file)
        }


def number(dataset: str, row: str, known: float | None, metric: str) -> float | None:
    """A published number at a known share (None: the average over all nine), or None if there is none."""
    metric = "mAP" if metric == "mAP_interpolated" else metric
    share = "average" if known is None else f"{100 * known:.0f}"
    for name in ("SARB" if row == "Ours" else row, f"ablation: {row}"):
        if (value := _numbers().get((dataset, name, share, metric))) is not None:
            return value
    return None


def average(dataset: str, row: str, shares: Sequence[float], metric: str) -> float | None:
    """The published average over these shares; None if the paper has only the average over all nine."""
    if tuple(shares) == ALL_NINE:
        return number(dataset, row, None, metric)
    values = [number(dataset, row, known, metric) for known in shares]
    given = [value for value in values if value is not None]
    return math.fsum(given) / len(given) if given and len(given) == len(values) else None
