"""The sections of a report that show results: each prepares what its template shows and writes its pictures.

A section that has nothing to show is None; the template says why.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from sarb.labelling.calibration import Calibration, load_calibration
from sarb.report import curves, html, plots, samples
from sarb.report.folder import RunFolder
from sarb.report.reliability import reliability
from sarb.report.report import Report, number, ranked
from sarb.report.style import Theme, write_png

#: name of the probabilities in the figures of a calibration -> on the page
PROBABILITIES = {
    "before": "the network's own",
    "after": "calibrated",
    "base_rate": "only the category's share",
}


@dataclass(frozen=True)
class CalibrationSummary:
    """How a calibration was fitted, how good it is, and the thresholds."""

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


def learned(run: RunFolder) -> list[html.Plot] | None:
    """Curves from the log."""
    if run.log is None or not len(next(iter(run.log.values()), [])):
        return None
    log = run.log
    steps = run.steps
    parts: list[tuple[str, tuple[str, ...], Callable[[Theme], bytes], str]] = [
        (
            "loss",
            ("loss",),
            lambda theme: curves.loss_curves(log, steps, theme=theme),
            "Mean loss of every epoch: the total (single steps behind it), and every term on its own scale.",
        ),
        (
            "validation",
            ("valid_",),
            lambda theme: curves.validation_curves(log, theme=theme),
            "Metrics on the validation images, whose labels are as partly known as those of the training images.",
        ),
        (
            "alpha_beta",
            ("alpha", "beta"),
            lambda theme: curves.blend_strengths(log, theme=theme),
            "Blend strengths: the share of its own that a representation keeps when another is blended in. "
            "A band spans the categories.",
        ),
        (
            "completed",
            ("completed_",),
            lambda theme: curves.completed_labels(log, theme=theme),
            "Labels that reached a loss: known ones, and unknown ones that a blend completed.",
        ),
    ]
    return [
        _plot(run, name, draw, caption, caption)
        for name, columns, draw, caption in parts
        if curves.has_curves(log, *columns)
    ]


def categories(run: RunFolder, report: Report | None) -> html.PlottedTable | None:
    """Picture and table of the categories."""
    if report is None or not report.per_category:
        return None
    rows = report.per_category
    best_first = [*ranked(rows), *(row for row in rows if number(row["AP"]) == "n/a")]
    columns = [name for name in rows[0] if name != "category"]
    cells = [
        [html.Cell(row["category"]), *(_category_cell(name, row.get(name)) for name in columns)]
        for row in best_first
    ]
    names = [name.replace("AP_interpolated", "AP interpolated") for name in columns]
    caption = (
        "Average precision of every category, best first, with its number of known positive test images."
    )
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
    return html.number_cell(value)


def precision_recall(run: RunFolder, report: Report | None) -> html.Plot | None:
    """Precision-recall curves."""
    if report is None or report.scores is None or report.labels is None:
        return None
    scores = report.scores
    labels = report.labels
    return _plot(
        run,
        "precision_recall",
        lambda theme: plots.precision_recall_curves(scores.logits, labels, labels.categories, theme=theme),
        "Precision against recall",
        "All entries pooled, the mean of the categories, and the best (solid) and worst "
        "(dashed) categories. Thin grey lines join points of equal F1.",
    )


def calibration(run: RunFolder) -> CalibrationSummary | None:
    """Reliability plot, calibration error and thresholds, from ``thresholds.json``."""
    fitted = load_calibration(run.path)
    if fitted is None:
        return None
    tables = fitted.figures.get("reliability", {})
    picture = _plot(
        run,
        "reliability",
        lambda theme: reliability(tables, theme=theme),
        "Reliability plot",
        "Of the held-out labels with about this probability, the share that is present. On the dashed line a "
        "probability means what it says. A dot is a bin of equally many labels; both axes are square roots.",
    )
    return CalibrationSummary(
        fitted.method, fitted.source, _calibration_errors(fitted), picture, _thresholds(fitted)
    )


def _calibration_errors(fitted: Calibration) -> html.Table:
    """Calibration error and Brier score before and after."""
    errors = fitted.figures.get("calibration_error", {})
    squares = fitted.figures.get("brier_score", {})
    rows = [
        [html.Cell(name), html.Cell(f"{errors[key]:.4f}"), html.Cell(f"{squares[key]:.4f}")]
        for key, name in PROBABILITIES.items()
        if key in errors and key in squares
    ]
    return html.Table(["probabilities", "calibration error", "Brier score"], rows)


def _thresholds(fitted: Calibration) -> html.Table:
    """The threshold of each category, and on how many labels it was chosen."""
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
    header = ["category", "present from", "held-out present", "held-out absent"]
    return html.Table(header, rows, sortable=True, tall=True)


def together(run: RunFolder) -> html.Plot | None:
    """Co-occurrence of the training labels; None without labels or with a single category."""
    if run.train is None or len(run.train.categories) < 2:
        return None
    asked = run.setting("graph_smoothing")
    smoothing = 1.0 if asked is None else float(asked)
    graph = run.train.cooccurrence(smoothing)
    names = run.train.categories
    unnamed = " There are too many to name them." if len(names) > plots.NAMED_CATEGORIES else ""
    return _plot(
        run,
        "cooccurrence",
        lambda theme: plots.cooccurrence(graph, names, theme=theme),
        "Co-occurrence matrix",
        "How often the column's category is present in training images that show the row's, counted on known labels "
        "only, pulled towards the category's overall share where few labels are known (smoothing "
        f"{smoothing:g}). Categories that go together are placed together.{unnamed}",
        html.matrix_style(len(names)),
    )


def sample_cards(run: RunFolder) -> list[SampleCard] | None:
    """Test photos with what was right and wrong; empty if none of them can be read any more."""
    if run.scores is None or run.test is None:
        return None
    shown = samples.read_samples(run.scores, run.test)
    if shown:
        write_png(run.path / "plots" / "samples.png", samples.sample_grid(shown))
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
    """Write a picture to the plots folder and return it for the page."""
    light = draw("light")
    write_png(run.path / "plots" / f"{name}.png", light)
    return html.plot(draw, light, alternative, caption, style)
