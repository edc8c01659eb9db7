"""The sections of a report that show results: each prepares its data and writes its plots.

A section with nothing to show is None; the template says why.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sarb.auto import told
from sarb.labelling.calibration import Calibration
from sarb.report import curves, html, plots, samples
from sarb.report.reliability import reliability
from sarb.report.report import Report, number, ranked
from sarb.report.rungs import rungs
from sarb.report.style import Theme, write_png
from sarb.report.terms import TERMS, by_whom
from sarb.runs.folder import RunFolder
from sarb.runs.log import Log

#: name in the figures of a calibration -> name on the page
PROBABILITIES = {
    "before": "uncalibrated",
    "after": "calibrated",
    "base_rate": "base rate only",
}
#: key of a category's row -> heading
COLUMNS = {
    "AP": "AP",
    "AP_interpolated": "AP interpolated",
    "precision": "precision at 0.5",
    "recall": "recall at 0.5",
    "F1": "F1 at 0.5",
    "threshold": "calibrated threshold",
    "precision_calibrated": "precision there",
    "recall_calibrated": "recall there",
    "F1_calibrated": "F1 there",
    "positives": "positives",
    "negatives": "negatives",
    "unknown": "unknown",
}
#: columns of the ladder
RUNG_COLUMNS = (
    *("rung", "decision", "mAP", "95 % interval", "loss", "gain", "95 % interval", "weight", "seconds"),
)


@dataclass(frozen=True)
class CalibrationSummary:
    """How a calibration was fitted, its errors, and its thresholds."""

    method: str
    source: str
    errors: html.Table
    plot: html.Plot
    thresholds: html.Table


@dataclass(frozen=True)
class SampleCard:
    """A test image and what was predicted for it."""

    photo: html.Photo
    name: str
    guesses: Sequence[samples.Guess]
    hidden: int


@dataclass(frozen=True)
class Fitted(html.PlottedTable):
    """The ladder of a run that was fitted, and what came out in one sentence."""

    verdict: str


def learned(run: RunFolder) -> list[html.Plot] | None:
    """Curves from the log; None for a run that was fitted, see :func:`ladder`."""
    if run.log is None or "rung" in run.log or not len(next(iter(run.log.values()), [])):
        return None
    log = run.log
    steps = run.steps
    parts: list[tuple[str, tuple[str, ...], Callable[[Theme], bytes], str]] = [
        (
            "loss",
            ("loss",),
            lambda theme: curves.loss_curves(log, steps, theme=theme),
            "Mean loss per epoch: the total (with single steps behind it) and each term on its own scale.",
        ),
        (
            "validation",
            ("valid_",),
            lambda theme: curves.validation_curves(log, theme=theme),
            "Metrics on the validation images. Their labels are partial too, like the training labels.",
        ),
        (
            "alpha_beta",
            ("alpha", "beta"),
            lambda theme: curves.blend_strengths(log, theme=theme),
            "Blend strengths: how much of itself a representation keeps when another one is blended in. "
            "The band shows the range over categories.",
        ),
        (
            "completed",
            ("completed_",),
            lambda theme: curves.completed_labels(log, theme=theme),
            f"Labels used in a loss: known labels, and unknown labels that were completed.{_blends(log)}",
        ),
    ]
    return [
        _plot(run, name, draw, caption, caption)
        for name, columns, draw, caption in parts
        if curves.has_curves(log, *columns)
    ]


def _blends(log: Log) -> str:
    """What the blends are that the log counts."""
    names = [by_whom(name) for name in log if name.startswith("completed_")]
    return "".join(f" {name}: {TERMS[name]}." for name in names if name in TERMS)


def ladder(run: RunFolder) -> Fitted | None:
    """The rungs of a run that was fitted; None for a run that was trained step by step."""
    rows = run.log_rows()
    if not rows or "rung" not in rows[0]:
        return None
    picture = _plot(
        run,
        "ladder",
        lambda theme: rungs(rows, theme=theme),
        "Out-of-fold mAP of each rung, and the fall of the loss",
        "Left: mAP on known training labels, each scored by a model that had not seen it. The dashed line is "
        "ten lines of scikit-learn; the bars are 95 % intervals of the difference from it, on the same "
        "resampled images, so a bar that crosses the line is no clear difference. Right: how much each rung "
        "lowers the loss. Filled points are kept, empty ones left out; the diamond is the final model.",
    )
    table = html.Table(list(RUNG_COLUMNS), [_rung(row) for row in rows])
    return Fitted(table, picture, told.verdict(rows))


def _rung(row: Mapping[str, str]) -> list[html.Cell]:
    """A row of ``log.csv`` as cells."""
    return [
        html.Cell(row["rung"]),
        html.Cell(told.decision(row)),
        html.Cell(told.figure(row, "mean_ap", ".1f")),
        html.Cell(_interval(row, "mean_ap_low", "mean_ap_high", ".1f")),
        html.Cell(told.figure(row, "loss", ".4f")),
        html.Cell(told.figure(row, "gain", "+.4f")),
        html.Cell(_interval(row, "low", "high", "+.4f")),
        html.Cell(told.figure(row, "weight", ".3g")),
        html.Cell(told.figure(row, "seconds", ".1f")),
    ]


def _interval(row: Mapping[str, str], low: str, high: str, form: str) -> str:
    """Two numbers of the log; a dash where the rung has none."""
    ends = [told.figure(row, name, form) for name in (low, high)]
    return told.DASH if ends == [told.DASH] * 2 else " to ".join(ends)


def categories(run: RunFolder, report: Report | None) -> html.PlottedTable | None:
    """Plot and table of the categories."""
    if report is None or not report.per_category:
        return None
    rows = report.per_category
    best_first = [*ranked(rows), *(row for row in rows if number(row["AP"]) == "n/a")]
    columns = [name for name in COLUMNS if name in rows[0]]
    cells = [
        [html.Cell(row["category"]), *(_category_cell(name, row.get(name)) for name in columns)]
        for row in best_first
    ]
    names = [COLUMNS[name] for name in columns]
    caption = "Average precision per category, best first, with the number of known positive test images."
    picture = _plot(
        run, "per_category_ap", lambda theme: plots.per_category_ap(rows, theme=theme), caption, caption
    )
    return html.PlottedTable(html.Table(["category", *names], cells, sortable=True, tall=True), picture)


def _category_cell(name: str, value: Any) -> html.Cell:
    if number(value) == "n/a":
        return html.Cell("n/a")
    if name == "AP":
        return html.meter_cell(float(value))
    if name in ("positives", "negatives", "unknown"):
        return html.Cell(f"{int(value):,}", value)
    if name == "threshold":
        return html.Cell(f"{value:.3f}", value)
    return html.number_cell(value)


def precision_recall(run: RunFolder, report: Report | None) -> html.Plot | None:
    """Precision-recall curves."""
    if report is None or report.ranking is None or report.labels is None:
        return None
    ranking = report.ranking
    labels = report.labels
    kind = "calibrated" if report.calibrated else "uncalibrated"
    return _plot(
        run,
        "precision_recall",
        lambda theme: plots.precision_recall_curves(ranking, labels, labels.categories, theme=theme),
        "Precision against recall",
        "All labels pooled, the mean over categories, and the best (solid) and worst (dashed) categories, by "
        f"{kind} probability. Thin grey lines connect points of equal F1.",
    )


def calibration(run: RunFolder) -> CalibrationSummary | None:
    """Reliability plot, calibration error and thresholds, from ``thresholds.json``."""
    fitted = run.calibration()
    if fitted is None:
        return None
    tables = fitted.figures.get("reliability", {})
    picture = _plot(
        run,
        "reliability",
        lambda theme: reliability(tables, theme=theme),
        "Reliability plot",
        "Of the held-out labels with about this predicted probability, the share that is present. On the "
        "dashed line the two are equal. Each dot is a bin with the same number of labels; both axes have a "
        "square-root scale.",
    )
    return CalibrationSummary(
        fitted.method, fitted.source, _calibration_errors(fitted), picture, _thresholds(fitted)
    )


def _calibration_errors(fitted: Calibration) -> html.Table:
    """Calibration error and Brier score before and after calibration."""
    errors = fitted.figures.get("calibration_error", {})
    squares = fitted.figures.get("brier_score", {})
    rows = [
        [html.Cell(name), html.Cell(f"{errors[key]:.4f}"), html.Cell(f"{squares[key]:.4f}")]
        for key, name in PROBABILITIES.items()
        if key in errors and key in squares
    ]
    return html.Table(["probabilities", "calibration error", "Brier score"], rows)


def _thresholds(fitted: Calibration) -> html.Table:
    """The threshold of each category, and the number of labels it was chosen on."""
    positives, negatives = fitted.counts.sum(2)
    rows = [
        [
            html.Cell(name),
            html.Cell(f"{threshold:.3f}", float(threshold)),
            html.Cell(f"{present:,}", float(present)),
            html.Cell(f"{absent:,}", float(absent)),
        ]
        for name, threshold, present, absent in zip(
            fitted.categories, fitted.thresholds, positives, negatives, strict=True
        )
    ]
    header = ["category", "threshold", "held-out positives", "held-out negatives"]
    return html.Table(header, rows, sortable=True, tall=True)


def together(run: RunFolder) -> html.Plot | None:
    """Co-occurrence of the training labels; None without labels or with a single category."""
    if run.train is None or len(run.train.categories) < 2:
        return None
    asked = run.setting("graph_smoothing")
    smoothing = 1.0 if asked is None else float(asked)
    graph = run.train.cooccurrence(smoothing)
    names = run.train.categories
    unnamed = (
        " There are too many categories to show their names." if len(names) > plots.NAMED_CATEGORIES else ""
    )
    return _plot(
        run,
        "cooccurrence",
        lambda theme: plots.cooccurrence(graph, names, theme=theme),
        "Co-occurrence matrix",
        "How often the column's category is present in training images that show the row's category. Counted "
        "on known labels only, and shrunk towards the category's overall rate where few labels are known "
        f"(smoothing {smoothing:g}). Categories that appear together are placed next to each other.{unnamed}",
        html.matrix_style(len(names)),
    )


def sample_cards(run: RunFolder, report: Report | None) -> list[SampleCard] | None:
    """Test images with correct and wrong predictions; empty if none of them can be read any more."""
    if report is None or report.scores is None or report.labels is None:
        return None
    shown = samples.read_samples(report.scores, report.labels, report.calibration)
    if shown:
        write_png(run.plot("samples"), samples.sample_grid(shown))
    return [
        SampleCard(html.photo(sample.picture, sample.name), sample.name, sample.guesses, sample.hidden)
        for sample in shown
    ]


def _plot(
    run: RunFolder,
    name: str,
    draw: Callable[[Theme], bytes],
    alternative: str,
    caption: str,
    style: str = "",
) -> html.Plot:
    """Write a plot to the plots folder and return it for the page."""
    light = draw("light")
    write_png(run.plot(name), light)
    return html.plot(draw, light, alternative, caption, style)
