"""The sections of the page that show results; each returns HTML and writes its pictures to the plots
folder.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sarb.report import curves, html, plots, samples
from sarb.report.reliability import reliability
from sarb.report.report import Report, number, ranked
from sarb.report.style import Theme, write_png
from sarb.runs.folder import RunFolder


def learned_section(run: RunFolder) -> str:
    """Curves from the log."""
    if run.log is None or not len(next(iter(run.log.values()), [])):
        return html.paragraph(
            "There is no log.csv with a finished epoch in the folder, so no curve is drawn.", "absent"
        )
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
    return "".join(
        _plot(run, name, draw, caption, caption)
        for name, columns, draw, caption in parts
        if curves.has_curves(log, *columns)
    )


def categories_section(run: RunFolder, report: Report | None) -> str:
    """Picture and table of the categories."""
    if report is None or not report.per_category:
        text = "There are no numbers per category: scores.npz and test_labels.npz are not both in the folder."
        return html.paragraph(text, "absent")
    rows = report.per_category
    best_first = [*ranked(rows), *(row for row in rows if number(row["AP"]) == "n/a")]
    columns = [name for name in rows[0] if name != "category"]
    cells = [
        [html.cell(row["category"]), *(_category_cell(name, row.get(name)) for name in columns)]
        for row in best_first
    ]
    names = [name.replace("AP_interpolated", "AP interpolated") for name in columns]
    listing = html.table(["category", *names], cells, sortable=True).replace('"scroll"', '"scroll tall"', 1)
    caption = (
        "Average precision of every category, best first, with its number of known positive test images."
    )
    picture = _plot(
        run, "per_category_ap", lambda theme: plots.per_category_ap(rows, theme=theme), caption, caption
    )
    return html.paragraph("Click a heading to sort.", "note") + listing + picture


def _category_cell(name: str, value: Any) -> str:
    if number(value) == "n/a":
        return html.cell("n/a")
    if name == "AP":
        return html.meter(number(value), float(value))
    return html.cell(
        f"{int(value):,}" if name in ("positives", "negatives", "unknown") else number(value), value
    )


def curves_section(run: RunFolder, report: Report | None) -> str:
    """Precision-recall curves."""
    if report is None or report.scores is None or report.labels is None:
        text = "No curve is drawn: scores.npz and test_labels.npz are not both in the folder."
        return html.paragraph(text, "absent")
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


def calibration_section(run: RunFolder) -> str:
    """Reliability plot, calibration error and thresholds, from ``thresholds.json``."""
    found = run.calibration()
    if found is None:
        text = "The probabilities are not calibrated: there is no thresholds.json in the folder. "
        text += "'sarb calibrate' makes "
        return html.paragraph(text + "it, and so does a training with validation images.", "absent")
    tables = found.figures.get("reliability", {})
    picture = _plot(
        run,
        "reliability",
        lambda theme: reliability(tables, theme=theme),
        "Reliability plot",
        "Of the held-out labels with about this probability, the share that is present. On the dashed line a "
        "probability means what it says. A dot is a bin of equally many labels; both axes are square roots.",
    )
    names = {"before": "the network's own", "after": "calibrated", "base_rate": "only the category's share"}
    errors = found.figures.get("calibration_error", {})
    squares = found.figures.get("brier_score", {})
    rows = [
        [html.cell(name), html.cell(f"{errors[kind]:.4f}"), html.cell(f"{squares[kind]:.4f}")]
        for kind, name in names.items()
        if kind in errors and kind in squares
    ]
    positives, negatives = found.counts.sum(2)
    each = [
        [
            html.cell(name),
            *(
                html.cell(text, value)
                for text, value in (
                    (f"{found.thresholds[place]:.3f}", float(found.thresholds[place])),
                    (f"{positives[place]:,}", float(positives[place])),
                    (f"{negatives[place]:,}", float(negatives[place])),
                )
            ),
        ]
        for place, name in enumerate(found.categories)
    ]
    said = f"Fitted ({found.method}) on {found.source}. Both numbers are means over categories, lower is better, and "
    said += "measured on labels that the fit had not seen: the class-wise calibration error with bins of equal mass, "
    said += "and "
    said += "the Brier score."
    listing = html.table(
        ["category", "present from", "held-out present", "held-out absent"], each, sortable=True
    )
    listing = listing.replace('"scroll"', '"scroll tall"', 1)
    table = html.table(["probabilities", "calibration error", "Brier score"], rows)
    return (
        html.paragraph(said)
        + table
        + picture
        + html.details("Threshold of every category (best F1)", listing)
    )


def together_section(run: RunFolder) -> str:
    """Co-occurrence of the training labels."""
    if run.train is None:
        return html.paragraph("There is no labels.npz in the folder, so no co-occurrence is drawn.", "absent")
    if len(run.train.categories) < 2:
        return html.paragraph("With a single category there is nothing that could appear together.", "absent")
    asked = run.setting("graph_smoothing")
    smoothing = 1.0 if asked is None else float(asked)
    graph = run.train.cooccurrence(smoothing)
    names = run.train.categories
    unnamed = " There are too many to name them." if len(names) > plots.NAMED_CATEGORIES else ""
    picture = _plot(
        run,
        "cooccurrence",
        lambda theme: plots.cooccurrence(graph, names, theme=theme),
        "Co-occurrence matrix",
        "How often the column's category is present in training images that show the row's, counted on known labels "
        "only, pulled towards the category's overall share where few labels are known (smoothing "
        f"{smoothing:g}). Categories that go together are placed together.{unnamed}",
    )
    kind = "matrix large" if len(names) > 40 else "matrix"
    return picture.replace("<figure>", f'<figure class="{kind}">', 1)


def samples_section(run: RunFolder) -> str:
    """Test photos with what was right and wrong."""
    if run.scores is None or run.test is None:
        text = "No picture is shown: scores.npz and test_labels.npz are not both in the folder."
        return html.paragraph(text, "absent")
    shown = samples.read_samples(run.scores, run.test)
    if not shown:
        return html.paragraph("No picture is shown: the test images are no longer where they were.", "absent")
    write_png(run.plot("samples"), samples.sample_grid(shown))
    legend = "".join(
        f'<li class="{mark}"><b>{symbol}</b><span>{html.escape(meaning)}</span></li>'
        for mark, (symbol, meaning) in samples.MARKS.items()
    )
    text = "Test images from the best recognised to the worst, evenly spread, so none is picked for its looks. The bar "
    text += "is the probability."
    cards = "".join(_sample_card(sample) for sample in shown)
    return html.paragraph(text) + f'<ul class="legend">{legend}</ul><div class="samples">{cards}</div>'


def _sample_card(sample: samples.Sample) -> str:
    lines = "".join(
        f'<li class="{guess.mark}" title="{html.escape(guess.label)}: {samples.MARKS[guess.mark][1]}">'
        f'<i style="width:{100 * guess.probability:.0f}%"></i><b>{samples.MARKS[guess.mark][0]}</b>'
        f"<span>{html.escape(guess.label)}</span><em>{guess.probability:.2f}</em></li>"
        for guess in sample.guesses
    )
    lines += '<li class="none">nothing predicted</li>' if not sample.guesses else ""
    lines += f'<li class="none">and {sample.hidden} more</li>' if sample.hidden else ""
    name = html.escape(sample.name)
    picture = html.photo(sample.picture, sample.name)
    return f'<article class="sample">{picture}<h3 title="{name}">{name}</h3><ul>{lines}</ul></article>'


def _plot(run: RunFolder, name: str, draw: Callable[[Theme], bytes], alternative: str, caption: str) -> str:
    """Write a picture to the plots folder and return it for the html."""
    light = draw("light")
    write_png(run.plot(name), light)
    return html.plot(draw, light, alternative, caption)
