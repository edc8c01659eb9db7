"""Numbers of the literature (``field.csv``) by our row names, with their source and what differs in their protocol."""

from __future__ import annotations

import csv
import functools
from collections.abc import Sequence
from pathlib import Path

FILE = Path(__file__).parent.parent / "field.csv"


@functools.cache
def lines() -> tuple[dict[str, str], ...]:
    """All lines of the file."""
    with FILE.open(encoding="utf-8", newline="") as file:
        return tuple(csv.DictReader(file))


def beside(rows: Sequence[str], settings: Sequence[str]) -> list[dict[str, str]]:
    """The published numbers of these rows in these settings, in the order of the rows.

    Of a setting with several known shares, the average of the nine and those at 10 and 50 %.
    """
    wanted = ("average", "10", "50", "")
    return [
        line
        for row in rows
        for line in lines()
        if line["row"] == row and line["setting"] in settings and line["known_percent"] in wanted
    ]
