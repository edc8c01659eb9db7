"""``Report``: the metrics of one model on one set of labels; it prints, saves and plots itself."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from numpy.typing import ArrayLike

from sarb.errors import DataError, unknown_name
from sarb.files import atomic_write, csv_text
from sarb.labels import LabelMatrix
from sarb.metrics import evaluate, per_category
from sarb.report import plots
from sarb.report.style import write_png
from sarb.runs.folder import METRICS, PER_CATEGORY, PLOTS
from sarb.scores import Scores

#: suffix of a metric name -> when a label is predicted present
RULES = {"": "score ≥ threshold", "_top3": "top 3 and ≥ threshold", "_top3_raw": "top 3, no threshold"}
DECISIONS = ("OP", "OR", "OF1", "CP", "CR", "CF1")

#: of a longer list only the best and the worst are printed
PRINTED_CATEGORIES = 24

#: with fewer known positives the metrics are rough
FEW_POSITIVES = 100


@dataclass(frozen=True)
class Report:
    """Metrics in percent; made by :meth:`of`.

    Attributes:
        metrics: name -> value, as from :func:`sarb.metrics.evaluate`.
        per_category: one dict per category, as from :func:`sarb.metrics.per_category`.
        name: what was evaluated, for headings.
        scores: the scores, if known; needed for the curves.
        labels: the labels, if known; needed for the curves.
    """

    metrics: dict[str, float]
    per_category: list[dict[str, Any]] = field(default_factory=list, repr=False)
    name: str = "report"
    scores: Scores | None = field(default=None, repr=False)
    labels: LabelMatrix | None = field(default=None, repr=False)

    @classmethod
    def of(
        cls,
        scores: Scores,
        labels: LabelMatrix | ArrayLike,
        name: str = "report",
        threshold: float | ArrayLike = 0.0,
    ) -> Report:
        """Evaluate scores (N, C) on labels (N, C), images in the same order; ``threshold`` is a logit."""
        if not isinstance(labels, LabelMatrix):
            labels = LabelMatrix(labels, scores.categories, scores.paths)
        if labels.categories != scores.categories:
            odd = sorted(set(labels.categories) ^ set(scores.categories))
            detail = (
                f"only on one side: {', '.join(odd[:5])}" if odd else "the same names in a different order"
            )
            raise DataError(f"the model and the labels do not have the same categories ({detail})")
        rows = per_category(scores.logits, labels, threshold=threshold)
        return cls(evaluate(scores.logits, labels, threshold), rows, name, scores, labels)

    @property
    def caution(self) -> str:
        """A warning if there are few known positives, else empty."""
        positives = sum(int(row["positives"]) for row in self.per_category)
        few = self.per_category and positives < FEW_POSITIVES
        return f"rough: only {positives} known positives in the test images" if few else ""

    @property
    def mAP(self) -> float:  # noqa: N802
        """Mean average precision in percent (plain, as in scikit-learn)."""
        return self.metrics["mAP"]

    def __getitem__(self, name: str) -> float:
        if name not in self.metrics:
            raise KeyError(unknown_name("metric", name, self.metrics))
        return self.metrics[name]

    def __repr__(self) -> str:
        numbers = ", ".join(f"{key} {number(self.metrics.get(key))}" for key in ("mAP", "OF1", "CF1"))
        return f"Report({self.name}: {numbers})"

    def __str__(self) -> str:
        return render(self)

    def to_json(self) -> str:
        """Return all numbers as JSON; undefined ones are ``null``."""
        content = {"name": self.name, **self.metrics, "per_category": self.per_category}
        return json.dumps(_without_nan(content), indent=2, ensure_ascii=False) + "\n"

    def to_csv(self, path: str | Path) -> None:
        """Write one row per category."""
        with atomic_write(path) as file:
            file.write(_table(self.per_category))

    def plot(self, path: str | Path) -> Path:
        """Write the plot of AP per category."""
        return write_png(path, plots.per_category_ap(self.per_category))

    def save(self, folder: str | Path) -> Path:
        """Write ``metrics.json``, ``per_category.csv`` and ``plots/*.png`` into a folder."""
        folder = Path(folder)
        with atomic_write(folder / METRICS) as file:
            file.write(self.to_json())
        self.to_csv(folder / PER_CATEGORY)
        self.plot(folder / PLOTS / "per_category_ap.png")
        if self.scores is not None and self.labels is not None:
            picture = plots.precision_recall_curves(self.scores.logits, self.labels, self.labels.categories)
            write_png(folder / PLOTS / "precision_recall.png", picture)
        return folder


def number(value: float | None, digits: int = 1) -> str:
    """Format a metric: ``'71.2'``, or ``'n/a'`` for nan and None."""
    return "n/a" if value is None or math.isnan(value) else f"{value:.{digits}f}"


def count(number_of: float, one: str, many: str) -> str:
    """Format a count: ``'1 category'``, ``'20 categories'``."""
    return f"{int(number_of):,} {one if int(number_of) == 1 else many}"


def ranked(rows: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Rows that have an AP, best first."""
    defined = [row for row in rows if row["AP"] is not None and not math.isnan(row["AP"])]
    return sorted(defined, key=lambda row: -row["AP"])


def render(report: Report) -> str:
    """Format a report as plain text."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    buffer = io.StringIO()
    console = Console(file=buffer, width=84, color_system=None, highlight=False, emoji=False, markup=False)
    metrics = report.metrics
    console.print(Text(report.name, style="bold"))
    console.print(
        f"mAP {number(metrics.get('mAP'))}   interpolated {number(metrics.get('mAP_interpolated'))}   "
        f"{int(metrics.get('images', 0)):,} images, {int(metrics.get('categories', 0))} categories, "
        f"{int(metrics.get('known_entries', 0)):,} known labels"
    )
    if report.caution:
        console.print(report.caution)
    table = Table("decision", box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for name in DECISIONS:
        table.add_column(name, justify="right")
    for suffix, rule in RULES.items():
        table.add_row(rule, *(number(metrics.get(name + suffix)) for name in DECISIONS))
    console.print(table)
    if report.per_category:
        console.print()
        console.print(_category_table(report.per_category))
    left_out = int(metrics.get("categories_without_positive", 0))
    if left_out:
        console.print(f"{left_out} without a known positive: AP n/a, left out of mAP and CR")
    return "\n".join(line.rstrip() for line in buffer.getvalue().splitlines())


def _category_table(rows: list[dict[str, Any]]) -> Any:
    """The categories by AP; of a long list only the best and the worst."""
    from rich.table import Table
    from rich.text import Text

    best_first = ranked(rows)
    table = Table("category", box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for name in ("AP", "precision", "recall", "F1", "positives"):
        table.add_column(name, justify="right")
    shown: list[Mapping[str, Any] | None] = list(best_first)
    if len(best_first) > PRINTED_CATEGORIES:
        shown = [*best_first[:8], None, *best_first[-8:]]
    for row in shown:
        if row is None:
            table.add_row(f"… {len(best_first) - 16} more …")
            continue
        cells = [number(row[key]) for key in ("AP", "precision", "recall", "F1")]
        table.add_row(Text(row["category"]), *cells, f"{row['positives']:,}")
    return table


def _table(rows: Sequence[Mapping[str, Any]]) -> str:
    """CSV text of the per-category rows; undefined cells are empty."""
    return csv_text(list(rows[0]), _without_nan(list(rows))) if rows else ""


def _without_nan(value: Any) -> Any:
    """Replace nan by None: JSON has no nan."""
    if isinstance(value, Mapping):
        return {key: _without_nan(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_without_nan(item) for item in value]
    return None if isinstance(value, float) and math.isnan(value) else value
