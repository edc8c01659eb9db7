"""Tables of README.md and docs from results/auto, audit, suggest, capacity and field; a test compares them.

    python -m benchmarks.tables

Each table stands in its page between ``<!-- table:NAME -->`` and ``<!-- /table -->``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from benchmarks import capacity_tables
from benchmarks.fits import markdown, read_csv

RESULTS = Path(__file__).parents[1] / "results" / "auto"
AUDIT = RESULTS.parent / "audit"
SUGGEST = RESULTS.parent / "suggest"
FIELD = RESULTS.parent / "field"
#: model in the CSV -> in words
NAMES = {
    "ten lines": "ten lines of scikit-learn",
    "probe": "the tuned probe alone",
    "strict": "sarb, strict",
    "no-names": "sarb, no names",
    "names": "sarb, names (the default)",
}
SHARES = ("5", "10", "30", "50", "90", "100")


def _room() -> dict[tuple[str, str, str], dict[str, str]]:
    """(percent known, input size, model) -> row of the study."""
    rows = read_csv(RESULTS / "room-table.csv")
    return {(row["known"], row["image_size"], row["model"]): row for row in rows}


def _percent(known: str) -> str:
    return "all labels" if known == "100" else f"{known} % known"


def _score(row: Mapping[str, str] | None) -> str:
    if row is None:
        return ""
    return f"{float(row['mAP']):.1f}" + (f" ± {float(row['sd']):.1f}" if row["sd"] else "")


def headline() -> str:
    """320 px: 10 % of the labels known against all of them."""
    found = _room()
    lines = []
    for model in ("ten lines", "strict", "no-names", "names"):
        row = found.get(("10", "320", model))
        ratio = f"{float(row['ratio']):.0f} %" if row is not None and row["ratio"] else ""
        whole = found.get(("100", "320", model))
        lines.append([NAMES[model], _score(row), _score(whole), ratio])
    return markdown(["mAP on 2,321 test photos of COCO", "10 % known", "all labels", "ratio"], lines)


def room(size: str, column: str) -> str:
    """All shares at one size: mAP, or another column of the study."""
    found = _room()
    shares = [share for share in SHARES if (share, size, "names") in found]
    if column != "mAP":
        shares.remove("100")
    lines = []
    for model in NAMES:
        rows = [found.get((share, size, model)) for share in shares]
        if any(rows):
            texts = [_score(row) if column == "mAP" else (row[column] if row else "") for row in rows]
            lines.append([NAMES[model], *texts])
    title = {"mAP": "mAP", "room_closed": "room closed, %", "ratio": "ratio to all labels, %"}[column]
    return markdown([f"{title}, {size} px", *(map(_percent, shares))], lines)


def cells() -> str:
    """The default against the better of ten lines and ``pooled``, cell by cell."""
    rows = read_csv(RESULTS / "default-cells.csv")
    by_cell: dict[str, dict[str, dict[str, str]]] = {}
    for row in rows:
        by_cell.setdefault(row["cell"], {})[row["claims"]] = row
    lines = []
    for cell, found in by_cell.items():
        strict = found["strict"]
        names = found["names"]
        line = [cell, strict["ten lines"], strict["pooled"], strict["auto"], names["auto"]]
        lines.append([*line, *(f"{row['gain']} ({row['low']} to {row['high']})" for row in (strict, names))])
    columns = ["cell", "ten lines", "pooled", "strict", "names", "strict − better", "names − better"]
    return markdown(columns, lines)


def rungs(cell: str, file: Path = RESULTS / "rungs-table.csv") -> str:
    """What each rung adds, or each method on top, in one cell."""
    lines = []
    for row in read_csv(file):
        if row["cell"] == cell:
            gain = f"{row['gain']} ({row['low']} to {row['high']})" if row["gain"] else ""
            lines.append([row["model"], _score(row), gain, row["against"]])
    return markdown([f"{cell} % known, 224 px", "mAP", "difference (95 % interval)", "from"], lines)


def demo() -> str:
    """What ``make demo`` prints."""
    rows = read_csv(RESULTS / "demo.csv")
    return markdown(
        ["10 % of the labels known, seed 0", "mAP", "OF1", "CF1"],
        [[row["name"], row["mAP"], row["OF1"], row["CF1"]] for row in rows],
    )


def audit(name: str) -> str:
    """What the audit found of the faults planted in a data set."""
    rows = read_csv(AUDIT / f"{name}.csv")
    columns = ["fault", "planted", "found", "recall", "listed", "natural", "false", "precision"]
    cells = [[row["kind"], *(row[column] for column in columns[1:])] for row in rows]
    for cell in cells:
        cell[3], cell[7] = f"{cell[3]} %", f"{cell[7]} %"
    return markdown(columns, cells)


def suggest() -> str:
    """Questions of ``suggest`` against random ones, cell by cell."""

    def place(row: Mapping[str, str]) -> tuple[str, str, float]:
        data, known = row["cell"].split("/")
        return row["model"].lower(), data, float(known)

    lines = [
        [
            *(row[name] for name in ("model", "cell", "asked")),
            f"{row['present']} ({row['present_random']})",
            *(row[name] for name in ("start", "random", "suggest")),
            f"{row['gain']} ({row['low']} to {row['high']})",
            row["predicted"],
        ]
        for row in sorted(read_csv(SUGGEST / "suggest-cells.csv"), key=place)
    ]
    columns = ["model", "data/percent known", "asked", "present (random)", "start", "random", "suggest"]
    return markdown([*columns, "gain over random", "predicted"], lines)


TABLES: dict[str, Callable[[], str]] = {
    "headline": headline,
    "demo": demo,
    "room-224": lambda: room("224", "mAP"),
    "room-320": lambda: room("320", "mAP"),
    "closed-224": lambda: room("224", "room_closed"),
    "ratio-224": lambda: room("224", "ratio"),
    "ratio-320": lambda: room("320", "ratio"),
    "cells": cells,
    "rungs-coco256": lambda: rungs("coco256/10"),
    "rungs-scenes5": lambda: rungs("scenes5/30"),
    "on-top-coco256": lambda: rungs("coco256/10", FIELD / "on-top-table.csv"),
    "on-top-scenes5": lambda: rungs("scenes5/30", FIELD / "on-top-table.csv"),
    "audit": lambda: audit("audit"),
    "audit-scenes5": lambda: audit("scenes5"),
    "suggest": suggest,
    **capacity_tables.TABLES,
}


def main() -> None:
    """Print all tables."""
    for name, table in TABLES.items():
        print(f"<!-- table:{name} -->\n{table()}\n<!-- /table -->\n")


if __name__ == "__main__":
    main()
