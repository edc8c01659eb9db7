"""``write_report``: one self-contained page about a run, from the files of its folder."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import sarb
from sarb.files import atomic_write
from sarb.report import curves, page, plots, samples
from sarb.report.folder import RunFolder
from sarb.report.report import DECISIONS, RULES, Report, number, ranked
from sarb.report.style import Theme, write_png

#: what the page says about its numbers
NOTES = {
    "Which mAP is which": "mAP is the mean over categories of the plain average precision, as scikit-learn computes "
    "it. Interpolated mAP first lifts every precision to the best one reached at the same or a higher recall (VOC 2010 "
    "and later); it is never lower. The SARB paper reports the interpolated one, most later work the plain one.",
    "Unknown labels": "A test label that nobody knows is never scored: it counts neither for nor against the network.",
    "Categories left out": "A category without a known positive test image has no AP (n/a). It is left out of mAP and "
    "CR and is counted above; one that is never predicted has precision 0 in CP.",
    "OP, OR, OF1 and CP, CR, CF1": "Precision, recall and F1 of yes-or-no decisions. O pools all labels, so frequent "
    "categories weigh more; C averages over categories, so each weighs the same. A label is decided present at "
    "probability 0.5 or more; the top-3 rows allow only the three highest of an image, with or without that threshold.",
    "Which epoch": "The numbers belong to the last epoch unless something else is said. Test images never choose an "
    "epoch, a threshold or a setting.",
}


def write_report(run_dir: str | Path) -> Path:
    """Write ``plots/*.png`` and ``report.html`` into a run folder and return the page's path.

    Every section is made from files of the folder; where one is missing, a sentence says so.
    """
    run = RunFolder.read(run_dir)
    report = run.report()
    sections = [
        ("trained", "What was trained", _trained(run)),
        ("learned", "How it learned", _learned(run)),
        ("categories", "Category by category", _categories(run, report)),
        ("curves", "Precision and recall", _curves(run, report)),
        ("together", "What appears together", _together(run)),
        ("samples", "Sample predictions", _samples(run)),
        ("meaning", "What the numbers mean", _meaning()),
        ("configuration", "Full configuration", _configuration(run)),
    ]
    links = "".join(f'<a href="#{ident}">{page.escape(heading)}</a>' for ident, heading, _ in sections)
    body = [_headline(run, report), f'<nav aria-label="Sections">{links}</nav>', _cards(run, report)]
    body += [page.section(heading, content, ident=ident) for ident, heading, content in sections]
    body.append(f"<footer>Written by sarb {page.escape(sarb.__version__)} from the files in this folder.</footer>")
    target = run.path / "report.html"
    with atomic_write(target) as file:
        file.write(page.page(f"{run.name} · sarb report", "\n".join(body)))
    return target


def _headline(run: RunFolder, report: Report | None) -> str:
    """Title and one sentence that says it all."""
    parts = [run.setting("method"), run.setting("network"), run.setting("data", "dataset", "source")]
    eyebrow = " · ".join(str(part) for part in parts if part) or "training run"
    return (
        f'<header><p class="eyebrow">{page.escape(eyebrow)}</p><h1>{page.escape(run.name)}</h1>'
        f'<p class="lead">{page.escape(_summary(run, report))}</p></header>'
    )


def _summary(run: RunFolder, report: Report | None) -> str:
    """The lead sentence."""
    share = _known_share(run)
    source = f" from {len(run.train):,} training images" if run.train is not None else ""
    begin = f"Trained with {share:.3g} % of the labels{source}" if share is not None else f"Trained{source}"
    if report is None:
        return f"{begin}. It has not been evaluated yet: there is no metrics.json and no scores.npz in the folder."
    tested = f"{int(report.metrics.get('images', 0)):,} test images"
    known = f"{int(report.metrics.get('categories', 0))} categories"
    text = f"{begin}, it reaches a mAP of {number(report.mAP)} over {known} on {tested}."
    order = ranked(report.per_category)
    if len(order) > 1:
        best, worst = order[0], order[-1]
        text += (
            f" It is surest about {best['category']} (AP {number(best['AP'])}) and finds {worst['category']} hardest"
        )
        text += f" (AP {number(worst['AP'])})."
    return text


def _cards(run: RunFolder, report: Report | None) -> str:
    """The headline numbers."""
    if report is None:
        return ""
    metrics = report.metrics
    cards = [
        page.card("mAP", number(metrics.get("mAP")), "plain, as scikit-learn", main=True),
        page.card("mAP interpolated", number(metrics.get("mAP_interpolated")), "as in the SARB paper"),
        page.card("OF1", number(metrics.get("OF1")), _pair(metrics, "OP", "OR")),
        page.card("CF1", number(metrics.get("CF1")), _pair(metrics, "CP", "CR")),
    ]
    share = _known_share(run)
    if share is not None:
        cards.append(page.card("Known labels", f"{share:.3g} %", "of the training labels"))
    return f'<div class="cards">{"".join(cards)}</div>' + page.section("All decisions", _decisions(run, report))


def _pair(metrics: dict[str, float], precision: str, recall: str) -> str:
    return f"precision {number(metrics.get(precision))}, recall {number(metrics.get(recall))}"


def _decisions(run: RunFolder, report: Report) -> str:
    """OP to CF1 under the three rules, and further measurements."""
    rows = [
        [page.cell(rule), *(_metric_cell(report.metrics.get(name + suffix)) for name in DECISIONS)]
        for suffix, rule in RULES.items()
    ]
    content = page.table(["a label is present if", *DECISIONS], rows)
    left_out = int(report.metrics.get("categories_without_positive", 0))
    counted = f"{int(report.metrics.get('known_entries', 0)):,} known test labels were scored"
    content += page.paragraph(f"{counted}; {left_out} categories without a known positive were left out.", "note")
    if run.others():
        names = ("mAP", "mAP_interpolated", "OF1", "CF1")
        more = [[page.cell(key), *(_metric_cell(value.get(n)) for n in names)] for key, value in run.others().items()]
        content += "<h3>Also measured</h3>" + page.table(["what", *names], more)
    return content


def _metric_cell(value: float | None) -> str:
    """A number to one place that remembers all its places."""
    return page.cell(number(value), None if number(value) == "n/a" else value)


def _trained(run: RunFolder) -> str:
    """Settings, the command and the versions."""
    pairs = [
        ("Network", run.setting("network")), ("Method", run.setting("method")), ("Backbone", run.setting("backbone")),
        ("Data", run.setting("data", "dataset", "source")), ("Known share asked for", run.setting("known")),
        ("Seed", run.setting("seed")), ("Epochs", _epochs(run)), ("Training time", _time(run)),
        ("Training images", f"{len(run.train):,}" if run.train is not None else None),
        ("Test images", f"{len(run.test):,}" if run.test is not None else None),
        ("Image size", run.setting("image_size")), ("Batch size", run.setting("batch_size")),
        ("Learning rate", run.setting("lr", "learning_rate")), ("Device", run.setting("device")),
    ]  # fmt: skip
    content = page.facts((name, str(value)) for name, value in pairs if value is not None)
    if not run.config:
        content += page.paragraph("The settings are not shown: there is no config.json in the folder.", "absent")
    if run.command:
        content += "<h3>Do it again</h3>" + page.code(run.command)
    versions = run.config.get("versions")
    if isinstance(versions, dict):
        listing = page.facts((str(name), str(version)) for name, version in versions.items())
        content += page.details("Versions of the software", listing)
    return content


def _learned(run: RunFolder) -> str:
    """Curves from the log."""
    if run.log is None or not len(next(iter(run.log.values()), [])):
        return page.paragraph(
            "There is no log.csv with a finished epoch in the folder, so no curve is drawn.", "absent"
        )
    log, steps = run.log, run.steps
    parts: list[tuple[str, tuple[str, ...], Callable[[Theme], bytes], str]] = [
        ("loss", ("loss",), lambda theme: curves.loss_curves(log, steps, theme=theme),
         "Mean loss of every epoch: the total (single steps behind it), and every term on its own scale."),
        ("validation", ("valid_",), lambda theme: curves.validation_curves(log, theme=theme),
         "Metrics on the validation images, whose labels are as partly known as those of the training images."),
        ("alpha_beta", ("alpha", "beta"), lambda theme: curves.blend_strengths(log, theme=theme),
         "Blend strengths: the share of its own that a representation keeps when another is blended in. A band spans "
         "the categories."),
        ("completed", ("completed_",), lambda theme: curves.completed_labels(log, theme=theme),
         "Labels that reached a loss: known ones, and unknown ones that a blend completed."),
    ]  # fmt: skip
    return "".join(
        _plot(run, name, draw, caption, caption) for name, columns, draw, caption in parts
        if curves.has_curves(log, *columns)
    )  # fmt: skip


def _categories(run: RunFolder, report: Report | None) -> str:
    """Picture and table of the categories."""
    if report is None or not report.per_category:
        text = "There are no numbers per category: scores.npz and test_labels.npz are not both in the folder."
        return page.paragraph(text, "absent")
    rows = report.per_category
    best_first = [*ranked(rows), *(row for row in rows if number(row["AP"]) == "n/a")]
    columns = [name for name in rows[0] if name != "category"]
    cells = [
        [page.cell(row["category"]), *(_category_cell(name, row.get(name)) for name in columns)] for row in best_first
    ]
    names = [name.replace("AP_interpolated", "AP interpolated") for name in columns]
    listing = page.table(["category", *names], cells, sortable=True).replace('"scroll"', '"scroll tall"', 1)
    caption = "Average precision of every category, best first, with its number of known positive test images."
    picture = _plot(run, "per_category_ap", lambda theme: plots.per_category_ap(rows, theme=theme), caption, caption)
    return page.paragraph("Click a heading to sort.", "note") + listing + picture


def _category_cell(name: str, value: Any) -> str:
    if number(value) == "n/a":
        return page.cell("n/a")
    if name == "AP":
        return page.meter(number(value), float(value))
    return page.cell(f"{int(value):,}" if name in ("positives", "negatives", "unknown") else number(value), value)


def _curves(run: RunFolder, report: Report | None) -> str:
    """Precision-recall curves."""
    if report is None or report.scores is None or report.labels is None:
        text = "No curve is drawn: scores.npz and test_labels.npz are not both in the folder."
        return page.paragraph(text, "absent")
    scores, labels = report.scores, report.labels
    return _plot(
        run, "precision_recall",
        lambda theme: plots.precision_recall_curves(scores.logits, labels, labels.categories, theme=theme),
        "Precision against recall", "All entries pooled, the mean of the categories, and the best (solid) and worst "
        "(dashed) categories. Thin grey lines join points of equal F1.",
    )  # fmt: skip


def _together(run: RunFolder) -> str:
    """Co-occurrence of the training labels."""
    if run.train is None:
        return page.paragraph("There is no labels.npz in the folder, so no co-occurrence is drawn.", "absent")
    graph, names = run.train.cooccurrence(), run.train.categories
    picture = _plot(
        run, "cooccurrence", lambda theme: plots.cooccurrence(graph, names, theme=theme), "Co-occurrence matrix",
        "How often the column's category is present in training images that show the row's, counted on known labels "
        "only. Categories that go together are placed together.",
    )  # fmt: skip
    return picture.replace("<figure>", '<figure class="matrix">', 1)


def _samples(run: RunFolder) -> str:
    """Test photos with what was right and wrong."""
    if run.scores is None or run.test is None:
        text = "No picture is shown: scores.npz and test_labels.npz are not both in the folder."
        return page.paragraph(text, "absent")
    shown = samples.read_samples(run.scores, run.test)
    if not shown:
        return page.paragraph("No picture is shown: the test images are no longer where they were.", "absent")
    write_png(run.path / "plots" / "samples.png", samples.sample_grid(shown))
    legend = "".join(
        f'<li class="{mark}"><b>{symbol}</b><span>{page.escape(meaning)}</span></li>'
        for mark, (symbol, meaning) in samples.MARKS.items()
    )
    text = "Test images from the best recognised to the worst, evenly spread, so none is picked for its looks. The bar "
    text += "is the probability."
    cards = "".join(_sample_card(sample) for sample in shown)
    return page.paragraph(text) + f'<ul class="legend">{legend}</ul><div class="samples">{cards}</div>'


def _sample_card(sample: samples.Sample) -> str:
    lines = "".join(
        f'<li class="{guess.mark}" title="{page.escape(guess.label)}: {samples.MARKS[guess.mark][1]}">'
        f'<i style="width:{100 * guess.probability:.0f}%"></i><b>{samples.MARKS[guess.mark][0]}</b>'
        f"<span>{page.escape(guess.label)}</span><em>{guess.probability:.2f}</em></li>"
        for guess in sample.guesses
    )
    lines += '<li class="none">nothing predicted</li>' if not sample.guesses else ""
    lines += f'<li class="none">and {sample.hidden} more</li>' if sample.hidden else ""
    name = page.escape(sample.name)
    return f'<article class="sample">{page.photo(sample.picture, sample.name)}<h3 title="{name}">{name}</h3><ul>{lines}</ul></article>'


def _meaning() -> str:
    entries = "".join(f"<dt>{page.escape(term)}</dt><dd>{page.escape(text)}</dd>" for term, text in NOTES.items())
    return f'<dl class="notes">{entries}</dl>'


def _configuration(run: RunFolder) -> str:
    if not run.config:
        return page.paragraph("There is no config.json in the folder.", "absent")
    return page.details("Show config.json", page.code(json.dumps(run.config, indent=2, ensure_ascii=False)))


def _plot(run: RunFolder, name: str, draw: Callable[[Theme], bytes], alternative: str, caption: str) -> str:
    """Write a picture to the plots folder and return it for the page."""
    light = draw("light")
    write_png(run.path / "plots" / f"{name}.png", light)
    return page.plot(draw, light, alternative, caption)


def _known_share(run: RunFolder) -> float | None:
    """Known share of the training labels in percent: what was asked for, else what the labels say."""
    asked = run.setting("known")
    if isinstance(asked, int | float):
        return 100 * float(asked)
    return 100 * run.train.known_share if run.train is not None else None


def _epochs(run: RunFolder) -> str | None:
    """Epochs done, and planned if that differs."""
    planned = run.setting("epochs")
    done = len(next(iter(run.log.values()), [])) if run.log else None
    if done is None or done == planned:
        return None if planned is None else str(planned)
    return f"{done} of {planned}" if planned is not None else str(done)


def _time(run: RunFolder) -> str | None:
    """Sum of the seconds in the log."""
    if run.log is None or "seconds" not in run.log:
        return None
    total = round(float(np.nansum(run.log["seconds"])))
    hours, minutes, seconds = total // 3600, total // 60 % 60, total % 60
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {seconds} s" if minutes else f"{seconds} s"
