"""``Report``: the metrics of one model on one set of labels; it prints, saves and plots itself."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from numpy.typing import ArrayLike, NDArray

from sarb.errors import DataError, unknown_name
from sarb.files import atomic_write, csv_text
from sarb.labelling.calibration import Calibration
from sarb.labels import LabelMatrix
from sarb.metrics import Interval, evaluate, map_interval, per_category
from sarb.metrics.bootstrap import RESAMPLES
from sarb.report import plots
from sarb.report.readings import (
    AT_HALF,
    DECISIONS,
    calibrated_metrics,
    calibrated_rows,
    decision_rows,
    tied,
)
from sarb.report.style import write_png
from sarb.report.terms import METRICS as METRIC_TERMS
from sarb.report.terms import explained
from sarb.runs.folder import METRICS, PER_CATEGORY, PLOTS
from sarb.scores import Scores

#: the numbers of calibrated decisions in metrics.json
CALIBRATED = "calibrated"

#: of a longer list only the best and the worst are printed
PRINTED_CATEGORIES = 24

#: with fewer known positives the metrics are rough
FEW_POSITIVES = 100


@dataclass(frozen=True)
class Report:
    """Metrics in percent; made by :meth:`of`.

    Attributes:
        metrics: name -> value, as from :func:`sarb.metrics.evaluate`: decisions at 0.5, as in the paper. Also the
            ends of the 95 % interval of mAP, ``mAP_low`` and ``mAP_high``, by bootstrap over the images.
        per_category: one dict per category, as from :func:`sarb.metrics.per_category`; of a calibrated model
            also its threshold, and precision, recall and F1 there.
        name: what was evaluated, for headings.
        scores: the scores, if known; needed for the curves.
        labels: the labels, if known; needed for the curves.
        calibrated: the same metrics for calibrated probabilities and their thresholds; empty without a
            calibration.
        calibration: how the model's scores are read; None where it is not known.
        about: facts about the images, such as their split, which go into the JSON.
    """

    metrics: dict[str, float]
    per_category: list[dict[str, Any]] = field(default_factory=list, repr=False)
    name: str = "report"
    scores: Scores | None = field(default=None, repr=False)
    labels: LabelMatrix | None = field(default=None, repr=False)
    calibrated: dict[str, float] = field(default_factory=dict, repr=False)
    calibration: Calibration | None = field(default=None, repr=False)
    about: dict[str, Any] = field(default_factory=dict, repr=False)

    @classmethod
    def of(
        cls,
        scores: Scores,
        labels: LabelMatrix | ArrayLike,
        name: str = "report",
        calibration: Calibration | None = None,
        resamples: int = RESAMPLES,
    ) -> Report:
        """Evaluate scores (N, C) on labels (N, C), images in the same order.

        Decisions are measured at 0.5 of the network's own probabilities, and with a ``calibration`` also at
        its thresholds of its probabilities. ``resamples`` are those of the interval of mAP; 0 leaves it out.
        """
        if not isinstance(labels, LabelMatrix):
            labels = LabelMatrix(labels, scores.categories, scores.paths)
        if labels.categories != scores.categories:
            odd = sorted(set(labels.categories) ^ set(scores.categories))
            detail = (
                f"only on one side: {', '.join(odd[:5])}" if odd else "the same names in a different order"
            )
            raise DataError(f"the model and the labels do not have the same categories ({detail})")
        rows = per_category(scores.logits, labels)
        metrics = evaluate(scores.logits, labels)
        if resamples:
            _, metrics["mAP_low"], metrics["mAP_high"] = map_interval(scores.logits, labels, resamples)
        if calibration is None or not calibration.fitted:
            return cls(metrics, rows, name, scores, labels, {}, calibration)
        more = calibrated_rows(scores, labels, calibration)
        rows = [{**row, **own} for row, own in zip(rows, more, strict=True)]
        calibrated = calibrated_metrics(scores, labels, calibration)
        return cls(metrics, rows, name, scores, labels, calibrated, calibration)

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

    @property
    def ranking(self) -> NDArray[Any] | None:
        """(N, C) the numbers that rank labels: calibrated probabilities, or logits; None without scores."""
        if self.scores is None:
            return None
        return self.calibration(self.scores) if self.calibration and self.calibrated else self.scores.logits

    @property
    def interval(self) -> Interval:
        """Return mAP with its 95 % interval; its ends are nan where there is none."""
        ends = (self.metrics.get(name, math.nan) for name in ("mAP_low", "mAP_high"))
        return Interval(self.metrics.get("mAP", math.nan), *ends)

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
        """Return all numbers as JSON; undefined ones are ``null``. ``reading`` says how scores became decisions."""
        content: dict[str, Any] = {"name": self.name, **self.about, **self.metrics, "reading": AT_HALF}
        if self.calibrated:
            content[CALIBRATED] = {**self.calibrated, "reading": str(self.calibration)}
        content["per_category"] = self.per_category
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
        if self.ranking is not None and self.labels is not None:
            picture = plots.precision_recall_curves(self.ranking, self.labels, self.labels.categories)
            write_png(folder / PLOTS / "precision_recall.png", picture)
        return folder


def number(value: float | None, digits: int = 1) -> str:
    """Format a metric: ``'71.2'``, or ``'n/a'`` for nan and None."""
    return "n/a" if value is None or math.isnan(value) else f"{value:.{digits}f}"


def interval_text(interval: Interval) -> str:
    """``'95 % interval 69.0 to 73.4'``; empty if there is none."""
    if math.isnan(interval.low):
        return ""
    return f"95 % interval {number(interval.low)} to {number(interval.high)}"


def with_interval(interval: Interval) -> str:
    """``'71.2 (95 % interval 69.0 to 73.4)'``, or the number alone."""
    text = interval_text(interval)
    return f"{number(interval.value)} ({text})" if text else number(interval.value)


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
    console.print(Text(report.name, style="bold"), soft_wrap=True)
    console.print(
        f"mAP {with_interval(report.interval)}   interpolated {number(metrics.get('mAP_interpolated'))}"
    )
    console.print(
        f"{int(metrics.get('images', 0)):,} images, {int(metrics.get('categories', 0))} categories, "
        f"{int(metrics.get('known_entries', 0)):,} known labels"
    )
    if report.caution:
        console.print(report.caution)
    table = Table("decision", box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for name in DECISIONS:
        table.add_column(name, justify="right")
    for rule, values in decision_rows(metrics, report.calibrated):
        table.add_row(rule, *map(number, values))
    console.print(table)
    console.print(explained(*METRIC_TERMS))
    if report.calibration is not None:
        console.print(str(report.calibration))
    if ties := tied(metrics, report.calibrated):
        console.print(ties)
    if report.per_category:
        console.print()
        console.print(_category_table(report.per_category))
    left_out = int(metrics.get("categories_without_positive", 0))
    if left_out:
        console.print(f"{left_out} without a known positive: AP n/a, left out of mAP and CR")
    return "\n".join(line.rstrip() for line in buffer.getvalue().splitlines())


#: column of the printed categories -> its key, and its key for a calibrated model
COLUMNS = {
    "AP": ("AP", "AP"),
    "threshold": ("", "threshold"),
    "precision": ("precision", "precision_calibrated"),
    "recall": ("recall", "recall_calibrated"),
    "F1": ("F1", "F1_calibrated"),
}


def _category_table(rows: list[dict[str, Any]]) -> Any:
    """The categories by AP, with the decisions that the model makes; of a long list the best and the worst."""
    from rich.table import Table
    from rich.text import Text

    best_first = ranked(rows)
    calibrated = "threshold" in rows[0]
    keys = {name: key for name, pair in COLUMNS.items() if (key := pair[calibrated])}
    table = Table("category", box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for name in (*keys, "positives"):
        table.add_column(name, justify="right")
    shown: list[Mapping[str, Any] | None] = list(best_first)
    if len(best_first) > PRINTED_CATEGORIES:
        shown = [*best_first[:8], None, *best_first[-8:]]
    for row in shown:
        if row is None:
            table.add_row(f"… {len(best_first) - 16} more …")
            continue
        cells = [number(row[key], 3 if key == "threshold" else 1) for key in keys.values()]
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
