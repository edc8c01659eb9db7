"""``Comparison``: several models on the same labels, each with its difference from the first."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sarb.files import write_csv
from sarb.labels import LabelMatrix
from sarb.metrics import Interval
from sarb.metrics.bootstrap import RESAMPLES, centred, spread
from sarb.report.comparison import SAME, comparison_page, verdict
from sarb.report.readings import DECISIONS
from sarb.report.report import Report, interval_text, number
from sarb.report.terms import explained
from sarb.scores import Scores

#: files of a comparison
PAGE = "comparison.html"
TABLE = "comparison.csv"
#: metrics in the file
STORED = ("mAP", "mAP_low", "mAP_high", "mAP_interpolated", *DECISIONS)


@dataclass(frozen=True)
class Entry:
    """One model of a comparison.

    Attributes:
        name: for tables.
        run: its folder; None for a model that has none.
        report: its numbers on the common labels.
        difference: its mAP minus that of the first model, with the 95 % interval; None for the first.
        facts: method, network, known share and seed, where the run says so.
    """

    name: str
    run: Path | None
    report: Report
    difference: Interval | None
    facts: Mapping[str, Any]

    @property
    def verdict(self) -> str:
        """``better``, ``worse``, ``no difference can be seen`` or ``the same``; empty for the first."""
        return verdict(self.difference)


@dataclass(frozen=True)
class Comparison:
    """Models on the same images and labels; made by :func:`sarb.compare`. It prints and saves itself.

    Attributes:
        entries: one per model, in the order given.
        labels: (N, C) what all of them were compared on.
        notes: sentences about what was compared and what was left out.
        skipped: (path, reason) of images that could not be read.
    """

    entries: tuple[Entry, ...]
    labels: LabelMatrix
    notes: tuple[str, ...] = ()
    skipped: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(
        cls,
        named: Sequence[tuple[str, Path | None, Scores, Mapping[str, Any]]],
        labels: LabelMatrix,
        notes: Sequence[str] = (),
        skipped: Sequence[tuple[str, str]] = (),
        resamples: int = RESAMPLES,
        seed: int = 0,
    ) -> Comparison:
        """Measure (name, folder, scores (N, C), facts) of each model on labels (N, C), with the same resamples."""
        entries: list[Entry] = []
        first = None
        for name, run, scores, facts in named:
            values = spread(scores.logits, labels, resamples, seed)
            plain = Report.of(scores, labels, name, resamples=0)
            _, low, high = centred(values)
            ends = {"mAP_low": max(low, 0.0), "mAP_high": min(high, 100.0)}
            report = Report({**plain.metrics, **ends}, plain.per_category, name, scores, labels)
            difference = None if first is None else centred(values - first)
            entries.append(Entry(name, run, report, difference, facts))
            first = values if first is None else first
        return cls(tuple(entries), labels, tuple(notes), tuple(skipped))

    @property
    def best(self) -> Entry:
        """The model with the highest mAP; of equal ones the last, which is usually the newest."""
        return max(
            reversed(self.entries),
            key=lambda entry: -math.inf if math.isnan(entry.report.mAP) else entry.report.mAP,
        )

    @property
    def clear(self) -> bool:
        """Whether the best one is known to be better than the others, as far as differences from the first tell."""
        seen = [entry for entry in self.entries if entry.difference is not None]
        if self.best.difference is not None:
            return self.best.verdict == "better"
        return all(entry.verdict == "worse" for entry in seen)

    @property
    def rows(self) -> list[dict[str, Any]]:
        """One row per model: names, facts, counts, metrics, and the difference from the first model."""
        return [
            {
                "name": entry.name,
                "run": "" if entry.run is None else str(entry.run),
                **entry.facts,
                "images": len(self.labels),
                "categories": len(self.labels.categories),
                **{name: _plain(entry.report.metrics[name]) for name in STORED},
                **_difference(entry.difference),
                "verdict": entry.verdict,
            }
            for entry in self.entries
        ]

    def to_json(self) -> str:
        """All rows and notes as JSON; undefined numbers are ``null``."""
        content = {"notes": list(self.notes), "runs": self.rows}
        return json.dumps(content, indent=2, ensure_ascii=False) + "\n"

    def to_csv(self, path: str | Path) -> None:
        """Write one line per model; undefined cells are empty."""
        rows = [{key: "" if value is None else value for key, value in row.items()} for row in self.rows]
        write_csv(Path(path), list(rows[0]), rows)

    def to_html(self, path: str | Path, title: str = "Comparison of runs") -> Path:
        """Write one self-contained page."""
        rows = [
            {
                "name": entry.name,
                "run_dir": entry.run,
                "metrics": entry.report.metrics,
                "difference": entry.difference,
                "per_category": entry.report.per_category,
            }
            for entry in self.entries
        ]
        return comparison_page(rows, path, title, notes=self.notes)

    def save(self, folder: str | Path) -> Path:
        """Write ``comparison.csv`` and ``comparison.html`` into a folder; return the path of the page."""
        self.to_csv(Path(folder) / TABLE)
        return self.to_html(Path(folder) / PAGE)

    def __str__(self) -> str:
        return "\n".join([*self.notes, _table(self.entries), explained("mAP", "OP, OR, OF1", "CP, CR, CF1")])


def _difference(interval: Interval | None) -> dict[str, float | None]:
    values = (None, None, None) if interval is None else map(_plain, interval)
    return dict(zip(("difference", "difference_low", "difference_high"), values, strict=True))


def _plain(value: float) -> float | None:
    return None if math.isnan(value) else value


def _table(entries: Sequence[Entry]) -> str:
    """Text for the console."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    buffer = io.StringIO()
    console = Console(file=buffer, width=140, color_system=None, highlight=False, emoji=False, markup=False)
    table = Table("run", box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for name in ("mAP", "95 % interval", "OF1", "CF1"):
        table.add_column(name, justify="right")
    table.add_column(f"mAP minus {entries[0].name} (95 % interval)")
    for entry in entries:
        metrics = entry.report.metrics
        interval = interval_text(entry.report.interval).removeprefix("95 % interval ")
        numbers = [number(metrics["mAP"]), interval, number(metrics["OF1"]), number(metrics["CF1"])]
        table.add_row(Text(entry.name), *numbers, Text(told(entry.difference)))
    console.print(table)
    return "\n".join(line.rstrip() for line in buffer.getvalue().splitlines())


def told(difference: Interval | None) -> str:
    """``'+1.2 (+0.3 to +2.1): better'``, ``'the same'``; a dash for the first model."""
    if difference is None:
        return "–"
    if verdict(difference) == SAME:
        return SAME
    if math.isnan(difference.low):
        return f"{difference.value:+.1f}: {verdict(difference)}"
    return f"{difference.value:+.1f} ({difference.low:+.1f} to {difference.high:+.1f}): {verdict(difference)}"
