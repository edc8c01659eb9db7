"""``write_report``: one self-contained HTML page about a run, from the files in its folder."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

import sarb
from sarb.batches.cache_files import cache_note
from sarb.files import atomic_write
from sarb.labelling.calibration import Calibration
from sarb.report import html, samples, sections
from sarb.report.readings import DECISIONS, decision_rows, tied
from sarb.report.report import Report, count, interval_text, number, ranked, with_interval
from sarb.report.stored import other_measurements, stored_report
from sarb.report.terms import METRICS, TERMS
from sarb.runs.folder import RunFolder

#: name of a further measurement in metrics.json -> on the page
OTHERS = {"best": "best epoch on the validation images"}


def write_report(run_dir: str | Path) -> Path:
    """Write ``plots/*.png`` and ``report.html`` into a run folder and return the page's path.

    Every section is made from files in the folder; if one is missing, the section says so.
    """
    run = RunFolder.read(run_dir)
    report = stored_report(run)
    shown = sections.sample_cards(run, report)
    text = html.render(
        "run.html",
        version=sarb.__version__,
        name=run.name,
        eyebrow=_eyebrow(run),
        summary=_summary(run, report),
        cards=_cards(run, report) if report else [],
        decisions=_decisions(run, report) if report else None,
        facts=_facts(run),
        command=run.command,
        versions=_versions(run),
        learned=sections.learned(run),
        ladder=sections.ladder(run),
        categories=sections.categories(run, report),
        curves=sections.precision_recall(run, report),
        calibration=sections.calibration(run),
        labelled=run.train is not None,
        together=sections.together(run),
        terms={name: TERMS[name] for name in METRICS},
        marks=samples.MARKS,
        samples=shown,
        reading=str(_reading(report)) if report else "",
        numbers=_numbers(report, shown or []) if report else None,
        configuration=json.dumps(run.config, indent=2, ensure_ascii=False) if run.config else "",
    )
    target = run.report_page
    with atomic_write(target) as file:
        file.write(text)
    return target


def _reading(report: Report) -> Calibration:
    """How the probabilities and decisions on the page are made."""
    return report.calibration or Calibration.identity(())


def _numbers(report: Report, shown: Sequence[sections.SampleCard]) -> dict[str, Any]:
    """What the page shows in figures, for programs: metrics, categories and the samples' probabilities."""
    cards = [{"file_name": card.name, "labels": [asdict(guess) for guess in card.guesses]} for card in shown]
    return {**json.loads(report.to_json()), "shown": str(_reading(report)), "samples": cards}


def _eyebrow(run: RunFolder) -> str:
    """The line above the title: method, network and data."""
    parts = [run.setting("method"), run.setting("network"), run.setting("data", "dataset", "source")]
    return " · ".join(str(part) for part in parts if part) or "training run"


def _summary(run: RunFolder, report: Report | None) -> str:
    """The lead sentence."""
    share = _known_share(run)
    source = f" from {len(run.train):,} training images" if run.train is not None else ""
    begin = f"Trained with {share:.3g} % of the labels{source}" if share is not None else f"Trained{source}"
    if report is None:
        return f"{begin}. It has not been evaluated yet: the folder has no metrics.json and no scores.npz."
    tested = count(report.metrics.get("images", 0), "test image", "test images")
    over = count(report.metrics.get("categories", 0), "category", "categories")
    text = f"{begin}, it reaches an mAP of {with_interval(report.interval)} over {over} on {tested}."
    order = ranked(report.per_category)
    if len(order) > 1:
        best = order[0]
        worst = order[-1]
        text += f" The best category is {best['category']} (AP {number(best['AP'])}),"
        text += f" the worst {worst['category']} (AP {number(worst['AP'])})."
    return text


def _cards(run: RunFolder, report: Report) -> list[html.Card]:
    """The headline numbers."""
    metrics = report.metrics
    cards = [
        html.Card("mAP", number(metrics.get("mAP")), _about_map(report), main=True),
        html.Card("mAP interpolated", number(metrics.get("mAP_interpolated")), "as in the SARB paper"),
        html.Card("OF1 at 0.5", number(metrics.get("OF1")), _pair(metrics, "OP", "OR")),
        html.Card("CF1 at 0.5", number(metrics.get("CF1")), _pair(metrics, "CP", "CR")),
    ]
    if own := report.calibrated:
        cards.append(html.Card("OF1 calibrated", number(own.get("OF1")), _pair(own, "OP", "OR")))
        cards.append(html.Card("CF1 calibrated", number(own.get("CF1")), _pair(own, "CP", "CR")))
    share = _known_share(run)
    if share is not None:
        cards.append(html.Card("Known labels", f"{share:.3g} %", f"of the training labels{_asked(run)}"))
    return cards


def _about_map(report: Report) -> str:
    """What the main number is, with its interval."""
    interval = interval_text(report.interval)
    return f"{interval}; plain, as in scikit-learn" if interval else "plain, as in scikit-learn"


def _pair(metrics: dict[str, float], precision: str, recall: str) -> str:
    return f"precision {number(metrics.get(precision))}, recall {number(metrics.get(recall))}"


@dataclass(frozen=True)
class Decisions:
    """OP to CF1 under the three rules, how many labels were scored, and further measurements."""

    table: html.Table
    counted: str
    others: html.Table | None


def _decisions(run: RunFolder, report: Report) -> Decisions:
    rows = [
        [html.Cell(rule), *map(html.number_cell, values)]
        for rule, values in decision_rows(report.metrics, report.calibrated)
    ]
    left_out = int(report.metrics.get("categories_without_positive", 0))
    counted = f"{int(report.metrics.get('known_entries', 0)):,} known test labels were scored"
    if left_out:
        counted += (
            f"; {count(left_out, 'category', 'categories')} without a known positive left out of mAP and CR"
        )
    if report.caution:
        counted += f"; {report.caution}"
    if ties := tied(report.metrics, report.calibrated):
        counted += f"; {ties}"
    return Decisions(html.Table(["a label is predicted if", *DECISIONS], rows), counted, _others(run))


def _others(run: RunFolder) -> html.Table | None:
    """Further measurements in ``metrics.json``."""
    others = other_measurements(run)
    if not others:
        return None
    names = ("mAP", "mAP_interpolated", "OF1", "CF1")
    rows = [
        [html.Cell(OTHERS.get(key, key)), *(html.number_cell(metrics.get(name)) for name in names)]
        for key, metrics in others.items()
    ]
    return html.Table(["what", *names], rows)


def _facts(run: RunFolder) -> list[tuple[str, str]]:
    """Settings, data and training time."""
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
        ("Word vectors", run.config.get("words")),
        ("Learning rate", None if _fitted(run) else run.setting("lr", "learning_rate")),
        ("Device", run.setting("device")),
        ("Trained on", _cache(run)),
    ]
    return [(name, str(value)) for name, value in pairs if value is not None]


def _versions(run: RunFolder) -> list[tuple[str, str]] | None:
    """Software versions, if the run recorded them."""
    versions = run.config.get("versions")
    if not isinstance(versions, dict):
        return None
    return [(str(name), str(version)) for name, version in versions.items()]


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
    """The requested share, if labels were hidden."""
    asked = run.setting("known")
    return f"; {100 * asked:.3g} % requested" if isinstance(asked, int | float) and asked < 1 else ""


def _known_labels(run: RunFolder) -> str | None:
    """How many of the training labels were known, and their share."""
    if run.train is None:
        return None
    return f"{int(run.train.known.sum()):,} ({100 * run.train.known_share:.1f} %)"


def _cache(run: RunFolder) -> str | None:
    """What was read from the feature cache, if it was used."""
    if not run.config.get("cached"):
        return None
    return cache_note(run.config.get("cached_views", 0), run.config.get("cached_bytes", 0))


def _fitted(run: RunFolder) -> bool:
    """Whether the log has rungs instead of epochs."""
    return run.log is not None and "rung" in run.log


def _epochs(run: RunFolder) -> str | None:
    """Epochs trained, and the planned number if it differs; None for a run that was fitted."""
    if _fitted(run):
        return None
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
