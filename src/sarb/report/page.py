"""``write_report``: one self-contained page about a run, from the files of its folder."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

import sarb
from sarb.batches.cache_files import cache_note
from sarb.files import atomic_write
from sarb.report import html, sections
from sarb.report.report import DECISIONS, RULES, Report, number, ranked
from sarb.report.stored import other_measurements, stored_report
from sarb.runs.folder import RunFolder

#: what the page says about its numbers
NOTES = {
    "Which mAP is which": "mAP is the mean over categories of the plain average precision, as scikit-learn computes "
    "it. Interpolated mAP first lifts every precision to the best one reached at the same or a higher recall (VOC 2010 "
    "and later); it is never lower. The SARB paper reports the interpolated one, most later work the plain one.",
    "Unknown labels": "A test label that nobody knows is never scored: it counts neither for nor against the network.",
    "Categories left out": "A category without a known positive test image has no AP (n/a). It is left out of mAP and "
    "CR and counted above; one that is never predicted has precision 0 in CP.",
    "OP, OR, OF1 and CP, CR, CF1": "Precision, recall and F1 of yes-or-no decisions. O pools all labels, so frequent "
    "categories weigh more; C averages over categories, so each weighs the same. A label is decided present at "
    "probability 0.5 or more; the top-3 rows allow only the three highest of an image, with or without that threshold.",
    "Which epoch": "The numbers belong to the last epoch unless something else is said. Test images never choose an "
    "epoch, a threshold or a setting.",
}

#: what further measurements are called in metrics.json, and on the page
OTHERS = {"best": "the epoch that was best on the validation images"}


def write_report(run_dir: str | Path) -> Path:
    """Write ``plots/*.png`` and ``report.html`` into a run folder and return the page's path.

    Every section is made from files of the folder; where one is missing, a sentence says so.
    """
    run = RunFolder.read(run_dir)
    report = stored_report(run)
    parts = [
        ("trained", "What was trained", _trained(run)),
        ("learned", "How it learned", sections.learned_section(run)),
        ("categories", "Category by category", sections.categories_section(run, report)),
        ("curves", "Precision and recall", sections.curves_section(run, report)),
        ("calibration", "Can the probabilities be trusted?", sections.calibration_section(run)),
        ("together", "What appears together", sections.together_section(run)),
        ("samples", "Sample predictions", sections.samples_section(run)),
        ("meaning", "What the numbers mean", _meaning()),
        ("configuration", "Full configuration", _configuration(run)),
    ]
    links = "".join(f'<a href="#{ident}">{html.escape(heading)}</a>' for ident, heading, _ in parts)
    body = [_headline(run, report), f'<nav aria-label="Sections">{links}</nav>', _cards(run, report)]
    body += [html.section(heading, content, ident=ident) for ident, heading, content in parts]
    body.append(
        f"<footer>Written by sarb {html.escape(sarb.__version__)} from the files in this folder.</footer>"
    )
    target = run.report_page
    with atomic_write(target) as file:
        file.write(html.page(f"{run.name} · sarb report", "\n".join(body)))
    return target


def _headline(run: RunFolder, report: Report | None) -> str:
    """Title and one sentence that says it all."""
    parts = [run.setting("method"), run.setting("network"), run.setting("data", "dataset", "source")]
    eyebrow = " · ".join(str(part) for part in parts if part) or "training run"
    return (
        f'<header><p class="eyebrow">{html.escape(eyebrow)}</p><h1>{html.escape(run.name)}</h1>'
        f'<p class="lead">{html.escape(_summary(run, report))}</p></header>'
    )


def _summary(run: RunFolder, report: Report | None) -> str:
    """The lead sentence."""
    share = _known_share(run)
    source = f" from {len(run.train):,} training images" if run.train is not None else ""
    begin = f"Trained with {share:.3g} % of the labels{source}" if share is not None else f"Trained{source}"
    if report is None:
        return f"{begin}. It has not been evaluated yet: there is no metrics.json and no scores.npz in the folder."
    tested = _count(report.metrics.get("images", 0), "test image", "test images")
    over = _count(report.metrics.get("categories", 0), "category", "categories")
    text = f"{begin}, it reaches a mAP of {number(report.mAP)} over {over} on {tested}."
    order = ranked(report.per_category)
    if len(order) > 1:
        best = order[0]
        worst = order[-1]
        text += f" It is surest about {best['category']} (AP {number(best['AP'])})"
        text += f" and finds {worst['category']} hardest"
        text += f" (AP {number(worst['AP'])})."
    return text


def _cards(run: RunFolder, report: Report | None) -> str:
    """The headline numbers."""
    if report is None:
        return ""
    metrics = report.metrics
    cards = [
        html.card("mAP", number(metrics.get("mAP")), "plain, as scikit-learn", main=True),
        html.card("mAP interpolated", number(metrics.get("mAP_interpolated")), "as in the SARB paper"),
        html.card("OF1", number(metrics.get("OF1")), _pair(metrics, "OP", "OR")),
        html.card("CF1", number(metrics.get("CF1")), _pair(metrics, "CP", "CR")),
    ]
    share = _known_share(run)
    if share is not None:
        cards.append(html.card("Known labels", f"{share:.3g} %", f"of the training labels{_asked(run)}"))
    return f'<div class="cards">{"".join(cards)}</div>' + html.section("Decisions", _decisions(run, report))


def _pair(metrics: dict[str, float], precision: str, recall: str) -> str:
    return f"precision {number(metrics.get(precision))}, recall {number(metrics.get(recall))}"


def _decisions(run: RunFolder, report: Report) -> str:
    """OP to CF1 under the three rules, and further measurements."""
    rows = [
        [html.cell(rule), *(_metric_cell(report.metrics.get(name + suffix)) for name in DECISIONS)]
        for suffix, rule in RULES.items()
    ]
    content = html.table(["a label is present if", *DECISIONS], rows)
    left_out = int(report.metrics.get("categories_without_positive", 0))
    counted = f"{int(report.metrics.get('known_entries', 0)):,} known test labels were scored"
    if left_out:
        counted += (
            f"; {_count(left_out, 'category', 'categories')} without a known positive left out of mAP and CR"
        )
    content += html.paragraph(f"{counted}{'; ' + report.caution if report.caution else ''}.", "note")
    if other_measurements(run):
        names = ("mAP", "mAP_interpolated", "OF1", "CF1")
        more = [
            [html.cell(OTHERS.get(key, key)), *(_metric_cell(value.get(name)) for name in names)]
            for key, value in other_measurements(run).items()
        ]
        content += "<h3>Also measured</h3>" + html.table(["what", *names], more)
    return content


def _metric_cell(value: float | None) -> str:
    """A number to one place that remembers all its places."""
    return html.cell(number(value), None if number(value) == "n/a" else value)


def _trained(run: RunFolder) -> str:
    """Settings, the command and the versions."""
    pairs = [
        ("Network", run.setting("network")),
        ("Method", run.setting("method")),
        ("Backbone", run.setting("backbone")),
        ("Data", run.setting("data", "dataset", "source")),
        ("Known labels", _known_labels(run)),
        ("Seed", run.setting("seed")),
        ("Epochs", _epochs(run)),
        ("Training time", _time(run)),
        ("Training images", f"{len(run.train):,}" if run.train is not None else None),
        ("Test images", f"{len(run.test):,}" if run.test is not None else None),
        ("Image size", run.setting("image_size")),
        ("Batch size", run.setting("batch_size")),
        ("Learning rate", run.setting("lr", "learning_rate")),
        ("Device", run.setting("device")),
        ("Trained on", _cache(run)),
    ]
    content = html.facts((name, str(value)) for name, value in pairs if value is not None)
    if not run.config:
        content += html.paragraph(
            "The settings are not shown: there is no config.json in the folder.", "absent"
        )
    if run.command:
        content += "<h3>Do it again</h3>" + html.code(run.command)
    versions = run.config.get("versions")
    if isinstance(versions, dict):
        listing = html.facts((str(name), str(version)) for name, version in versions.items())
        content += html.details("Versions of the software", listing)
    return content


def _meaning() -> str:
    entries = "".join(
        f"<dt>{html.escape(term)}</dt><dd>{html.escape(text)}</dd>" for term, text in NOTES.items()
    )
    return f'<dl class="notes">{entries}</dl>'


def _configuration(run: RunFolder) -> str:
    if not run.config:
        return html.paragraph("There is no config.json in the folder.", "absent")
    return html.details("Show config.json", html.code(json.dumps(run.config, indent=2, ensure_ascii=False)))


def _known_share(run: RunFolder) -> float | None:
    """Known share of the training labels in percent: of those that were used, else as recorded."""
    recorded = run.setting("known_share")
    share = (
        run.train.known_share
        if run.train is not None
        else recorded
        if isinstance(recorded, int | float)
        else None
    )
    return None if share is None else 100 * float(share)


def _asked(run: RunFolder) -> str:
    """What was asked to be kept, if labels were hidden."""
    asked = run.setting("known")
    return f"; {100 * asked:.3g} % asked for" if isinstance(asked, int | float) and asked < 1 else ""


def _count(number_of: float, one: str, many: str) -> str:
    """``'1 category'``, ``'20 categories'``."""
    return f"{int(number_of):,} {one if int(number_of) == 1 else many}"


def _known_labels(run: RunFolder) -> str | None:
    """How many of the training labels were known, and their share."""
    if run.train is None:
        return None
    return f"{int(run.train.known.sum()):,} ({100 * run.train.known_share:.1f} %)"


def _cache(run: RunFolder) -> str | None:
    """What the feature cache held, if it was used."""
    if not run.config.get("cached"):
        return None
    return cache_note(run.config.get("cached_views", 0), run.config.get("cached_bytes", 0))


def _epochs(run: RunFolder) -> str | None:
    """Epochs done, and planned if that differs."""
    planned = run.setting("epochs")
    done = len(next(iter(run.log.values()), [])) if run.log else None
    if done is None or done == planned:
        return None if planned is None else str(planned)
    if not isinstance(planned, int):
        return str(done)
    return f"{done} of {planned}" if done < planned else f"{done}, in rounds of {planned}"


def _time(run: RunFolder) -> str | None:
    """Sum of the seconds in the log."""
    if run.log is None or "seconds" not in run.log:
        return None
    total = round(float(np.nansum(run.log["seconds"])))
    hours = total // 3600
    minutes = total // 60 % 60
    seconds = total % 60
    return (
        f"{hours} h {minutes} min" if hours else f"{minutes} min {seconds} s" if minutes else f"{seconds} s"
    )
