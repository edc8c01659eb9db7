"""``log.csv`` and ``steps.csv`` as columns of numbers."""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sarb.errors import DataError

Log = Mapping[str, NDArray[np.float64]]


def read_log(path: str | Path) -> Log:
    """Read a log as columns of numbers; a cell that is not a number is nan."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: cannot read this log ({error})") from error
    header, *rows = list(csv.reader(text.splitlines())) or [[]]
    return {
        name: np.array([_number(row[index]) if index < len(row) else math.nan for row in rows])
        for index, name in enumerate(header)
    }


def _number(text: str) -> float:
    """A number, or nan."""
    try:
        return float(text)
    except ValueError:
        return math.nan
