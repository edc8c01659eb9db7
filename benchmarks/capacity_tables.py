"""The tables of docs/scaling.md, from results/capacity."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from benchmarks.capacity_model import read_model
from benchmarks.capacity_parts import PARTS
from benchmarks.fits import markdown, read_csv

RESULTS = Path(__file__).parents[1] / "results" / "capacity"
#: largest error that acceptance 5 of issue 16 allows
ALLOWED = 0.2
#: power of ten -> what is before the unit
PREFIXES = {-9: "n", -6: "µ", -3: "m", 0: "", 3: "k", 6: "M", 9: "G", 12: "T", 15: "P"}
UNITS = {"seconds": "s", "memory": "B", "flop": "FLOP", "bytes": "B", "count": ""}


def scaled(value: float, unit: str) -> str:
    """Three digits and a prefix: 0.00123 and s become 1.23 ms."""
    size = abs(value)
    power = max((power for power in PREFIXES if size >= 0.9995 * 10.0**power), default=min(PREFIXES))
    return f"{value / 10.0**power:.3g} {PREFIXES[power]}{unit}".rstrip()


def costs() -> str:
    """Each part with the formula of each quantity; terms with coefficient 0 are left out."""
    model = read_model(RESULTS / "model.csv")
    lines = []
    for (part, quantity), terms in model.items():
        formula = [
            scaled(value, UNITS[quantity]) + ("" if term == "1" else f" × {term}")
            for term, value in terms.items()
            if value
        ]
        whole = " + ".join(formula)
        if quantity in PARTS[part].largest:
            whole = f"the largest of {', '.join(formula)}"
        lines.append([part, PARTS[part].what, quantity, whole])
    return markdown(["part", "what", "quantity", "formula"], lines)


def checks() -> str:
    """Part and quantity, number of held-out points, smallest and largest error, and how many are within the limit."""
    rows = read_csv(RESULTS / "check.csv")
    lines = []
    for part, quantity in dict.fromkeys((row["part"], row["quantity"]) for row in rows):
        errors = [float(row["error"]) for row in rows if (row["part"], row["quantity"]) == (part, quantity)]
        inside = sum(abs(error) <= ALLOWED for error in errors)
        bounds = f"{100 * min(errors):+.0f} to {100 * max(errors):+.0f} %"
        lines.append([part, quantity, str(len(errors)), bounds, str(inside)])
    errors = [float(row["error"]) for row in rows]
    lines.append(["all", "", str(len(errors)), "", str(sum(abs(error) <= ALLOWED for error in errors))])
    return markdown(["part", "quantity", "held-out points", "error", "within 20 %"], lines)


def _hours(row: Mapping[str, str]) -> str:
    texts = [f"{float(f'{float(row[name]):.2g}'):,g}" for name in ("hours_best", "hours_worst")]
    return texts[0] if texts[0] == texts[1] else " to ".join(texts)


def _joined(rows: Sequence[Mapping[str, str]], tell: Callable[[Mapping[str, str]], str]) -> str:
    return ", ".join(
        f"**{row['resource']} {tell(row)}**" if row["first"] == "yes" else f"{row['resource']} {tell(row)}"
        for row in rows
    )


def examples() -> str:
    """One row per example and machine; what saturates first is bold."""
    rows = read_csv(RESULTS / "examples.csv")
    lines = []
    for example, machine in dict.fromkeys((row["example"], row["machine"]) for row in rows):
        own = [row for row in rows if (row["example"], row["machine"]) == (example, machine)]
        timed = [row for row in own if row["hours_best"]]
        sized = [row for row in own if row["bytes"]]
        lines.append(
            [
                example,
                machine,
                _joined(timed, _hours),
                _joined(sized, lambda row: scaled(float(row["bytes"]), "B")),
            ]
        )
    return markdown(["what", "machine", "hours", "bytes"], lines)


TABLES: dict[str, Callable[[], str]] = {
    "capacity-costs": costs,
    "capacity-check": checks,
    "capacity-examples": examples,
}
