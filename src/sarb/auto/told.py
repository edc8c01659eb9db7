"""The rungs in words: a table of text for the terminal, and one sentence that says what came out.

Rows are those of ``log.csv``, as numbers or as text read from the file.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from sarb.auto.judge import MOST_ENTRIES
from sarb.auto.rung import BASELINE, FINAL, FINETUNE

Row = Mapping[str, Any]

#: what the gain of a rung is measured against; the others, against the rungs kept so far
AGAINST = {BASELINE: "the rates", "probe": "the rates", FINAL: BASELINE, FINETUNE: "frozen features"}
SO_FAR = "kept rungs"
HEADER = ("rung", "mAP", "fall of the loss (95 % interval)", "against", "", "seconds")
DASH = "–"


def number(row: Row, name: str) -> float:
    """A number of a row; nan where the row has none."""
    value = row.get(name)
    return float("nan") if value is None or value == "" else float(value)


def figure(row: Row, name: str, form: str) -> str:
    """A number of a row in a format such as ``".1f"``; a dash where the row has none."""
    value = number(row, name)
    return DASH if math.isnan(value) else format(value, form)


def decision(row: Row) -> str:
    """What became of a rung."""
    if row["rung"] in (BASELINE, FINAL):
        return "baseline" if row["rung"] == BASELINE else "the model"
    return "kept" if str(row.get("kept")) == "True" else "left out"


def table(rows: Sequence[Row]) -> list[str]:
    """Aligned lines: a header, then a line per rung."""
    cells = [HEADER, *(_cells(row) for row in rows)]
    widths = [max(len(line[column]) for line in cells) for column in range(len(HEADER))]
    right = (1, 5)  # the columns of plain numbers
    return [
        "  ".join(
            text.rjust(width) if column in right else text.ljust(width)
            for column, (text, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in cells
    ]


def _cells(row: Row) -> tuple[str, ...]:
    """A rung as the cells of the table."""
    measured = not math.isnan(number(row, "gain"))
    gain = f"{figure(row, 'gain', '+.4f')} ({figure(row, 'low', '+.4f')} to {figure(row, 'high', '+.4f')})"
    return (
        str(row["rung"]),
        figure(row, "mean_ap", ".1f"),
        gain if measured else DASH,
        AGAINST.get(row["rung"], SO_FAR) if measured else "",
        decision(row),
        figure(row, "seconds", ".1f"),
    )


def verdict(rows: Sequence[Row]) -> str:
    """Say in one sentence what the final model reaches, and whether ten lines of scikit-learn do as well."""
    final = next((row for row in rows if row["rung"] == FINAL), None)
    if final is None:
        return ""
    if math.isnan(number(final, "mean_ap")):
        return f"{FINAL}: there is no out-of-fold mAP, because no positive label is known"
    reached = f"{FINAL}: {figure(final, 'mean_ap', '.1f')} out-of-fold mAP on known labels"
    baseline = next((row for row in rows if row["rung"] == BASELINE), None)
    if baseline is None:
        return (
            f"{reached}; ten lines of scikit-learn were not fitted, because more than {MOST_ENTRIES:,} "
            "labels are known"
        )
    low = number(final, "ahead_low")
    high = number(final, "ahead_high")
    found = f"{reached}, ten lines of scikit-learn {figure(baseline, 'mean_ap', '.1f')} "
    found += f"({figure(final, 'ahead', '+.1f')}"
    if math.isnan(low):
        return f"{found})"
    found += f", 95 % interval {low:+.1f} to {high:+.1f})"
    if low > 0:
        return found
    return f"{found}: {'it is worse' if high < 0 else 'no clear difference'}"


def not_tried(rungs: Collection[str], claims: str, *, concepts: bool, tied: bool) -> str:
    """Say in one line which rungs were not tried, and why; empty if all were.

    ``ridge`` and ``student`` only refine others and are often left out, so they are not named.

    Args:
        rungs: names of those that were.
        claims: what may be used; a rung that they bar needs no reason.
        concepts: whether the backbone has a classifier of its own.
        tied: whether the name of at least one category is tied to a concept of that classifier.
    """
    no_classifier = "the backbone has no classifier of its own"
    no_tie = "no category name is tied to a concept of the backbone's classifier"
    reasons = {
        "names": no_tie if concepts and not tied else no_classifier,
        "bayes": no_classifier,
        "neighbours": "switched off, or too few images",
    }
    barred = {"strict": {"names", "bayes"}, "no-names": {"names"}}.get(claims, set())
    missing = [f"{name} ({why})" for name, why in reasons.items() if name not in {*rungs, *barred}]
    return f"rungs that were not tried: {', '.join(missing)}" if missing else ""
