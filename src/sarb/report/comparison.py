"""``comparison_page``: several runs side by side on one HTML page."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from sarb.errors import DataError
from sarb.files import atomic_write
from sarb.metrics import Interval
from sarb.report import html, plots
from sarb.report.report import number
from sarb.report.terms import METRICS, TERMS
from sarb.runs.folder import RunFolder

#: metrics in the table, and in the plot
SHOWN = ("mAP", "mAP_interpolated", "OF1", "CF1")
DRAWN = ("mAP", "OF1", "CF1")


#: what is said of a difference whose interval contains 0
UNSEEN = "no difference can be seen"
#: what is said if all resamples have a difference of 0: the models rank the images in the same order
SAME = "the same"
ROUNDING = 1e-9


def verdict(difference: Interval | None) -> str:
    """A difference in words; empty if there is none."""
    if difference is None:
        return ""
    if all(abs(end) < ROUNDING for end in difference):
        return SAME
    if difference.zero_inside:
        return UNSEEN
    return "better" if difference.value > 0 else "worse"


def comparison_page(
    rows: Sequence[Mapping[str, Any]],
    out: str | Path,
    title: str = "Comparison of runs",
    notes: Sequence[str] = (),
) -> Path:
    """Write one self-contained page that compares runs and return its path.

    Args:
        rows: one mapping per run with ``name``, ``run_dir`` and ``metrics`` (as from
            :func:`sarb.metrics.evaluate`); ``run_dir`` may be None. Optional: ``difference``, the mAP minus
            that of the first run with its interval, and ``per_category``, as in :class:`sarb.Report`.
        out: the page; links to the runs' own reports are relative to its folder.
        title: its heading.
        notes: sentences about what was compared.
    """
    for index, row in enumerate(rows):
        lacking = [key for key in ("name", "run_dir", "metrics") if key not in row]
        if lacking:
            raise DataError(f"row {index} of the comparison lacks {', '.join(lacking)}")
    out = Path(out)
    text = html.render(
        "comparison.html",
        title=title,
        summary=_summary(rows),
        notes=notes,
        terms={name: TERMS[name] for name in METRICS},
        numbers=_table(rows, out) if rows else None,
        plot=_plot(rows) if rows else None,
        differences=_differences(rows),
        categories=_categories(rows),
    )
    with atomic_write(out) as file:
        file.write(text)
    return out


def _summary(rows: Sequence[Mapping[str, Any]]) -> str:
    """One sentence: which run is best, and by how much."""
    defined = [row for row in rows if _value(row, "mAP") is not None]
    if not defined:
        return "No run has been evaluated yet."
    order = sorted(defined, key=lambda row: -(_value(row, "mAP") or 0.0))
    text = f"{order[0]['name']} has the highest mAP, {number(_value(order[0], 'mAP'))}"
    if any(row.get("difference") is not None for row in rows):
        told = [f"{row['name']}: {verdict(row['difference'])}" for row in rows if row.get("difference")]
        return f"{text}. Compared with {rows[0]['name']}, {'; '.join(told)}."
    if len(order) > 1:
        ahead = (_value(order[0], "mAP") or 0.0) - (_value(order[1], "mAP") or 0.0)
        text += f", {ahead:.1f} ahead of {order[1]['name']}"
    return f"{text}."


def _table(rows: Sequence[Mapping[str, Any]], out: Path) -> html.Table:
    """The numbers with the best of each column marked; a run links to its report if it has one."""
    best = {name: max((_value(row, name) or 0.0 for row in rows), default=0.0) for name in SHOWN}
    paired = any(row.get("difference") is not None for row in rows)
    lines = []
    for row in rows:
        cells = [html.Cell(str(row["name"]), link=_link(row, out))]
        for name in DRAWN if paired else SHOWN:
            value = _value(row, name)
            is_best = value is not None and value == best[name]
            cells.append(html.number_cell(value, "best" if is_best else ""))
            if name == "mAP" and paired:
                cells.append(html.Cell(_range(row["metrics"].get("mAP_low"), row["metrics"].get("mAP_high"))))
        lines.append([*cells, *(_difference_cells(row.get("difference")) if paired else ())])
    if not paired:
        return html.Table(["run", *SHOWN], lines, sortable=True)
    against = f"mAP minus {rows[0]['name']}"
    header = ["run", "mAP", "95 % interval", *DRAWN[1:], against, "95 % interval", "verdict"]
    return html.Table(header, lines, sortable=True)


def _difference_cells(difference: Interval | None) -> list[html.Cell]:
    """The difference from the first run, its interval, and what they mean."""
    if difference is None:
        return [html.Cell("–"), html.Cell(""), html.Cell("")]
    return [
        html.Cell(f"{difference.value:+.1f}", difference.value),
        html.Cell(_range(difference.low, difference.high, "+.1f")),
        html.Cell(verdict(difference)),
    ]


def _range(low: float | None, high: float | None, form: str = ".1f") -> str:
    """``'69.0 to 73.4'``; empty if there is no interval."""
    if low is None or high is None or math.isnan(low) or math.isnan(high):
        return ""
    return f"{low:{form}} to {high:{form}}"


def _differences(rows: Sequence[Mapping[str, Any]]) -> html.Plot | None:
    """The differences from the first run with their intervals."""
    shown = {str(row["name"]): row["difference"] for row in rows if row.get("difference") is not None}
    if not shown:
        return None
    first = str(rows[0]["name"])
    return html.plot(
        lambda theme: plots.differences(shown, first, theme=theme),
        plots.differences(shown, first),
        f"mAP of each run minus that of {first}, with 95 % intervals",
        f"mAP of each run minus that of {first}, with the 95 % interval over the test images. Where the line "
        f"crosses 0, {UNSEEN}.",
    )


def _categories(rows: Sequence[Mapping[str, Any]]) -> html.Table | None:
    """AP of each category in each run, the best marked."""
    if not rows or not all(row.get("per_category") for row in rows):
        return None
    lines = []
    for same in zip(*(row["per_category"] for row in rows), strict=True):
        best = max((line["AP"] for line in same if not math.isnan(line["AP"])), default=math.nan)
        cells = [html.number_cell(line["AP"], "best" if line["AP"] == best else "") for line in same]
        positives = int(same[0]["positives"])
        lines.append([html.Cell(same[0]["category"]), *cells, html.Cell(f"{positives:,}", positives)])
    return html.Table(
        ["category", *(str(row["name"]) for row in rows), "positives"], lines, sortable=True, tall=True
    )


def _link(row: Mapping[str, Any], out: Path) -> str:
    """The address of the run's report relative to the page; empty if there is none."""
    if row["run_dir"] is None:
        return ""
    report = RunFolder(row["run_dir"]).report_page
    if not report.is_file():
        return ""
    return quote(Path(os.path.relpath(report.resolve(), out.parent.resolve())).as_posix())


def _plot(rows: Sequence[Mapping[str, Any]]) -> html.Plot:
    """Bars of the main metrics."""
    names = [str(row["name"]) for row in rows]
    columns = {name: [_nan(_value(row, name)) for row in rows] for name in DRAWN}
    caption = "mAP is plain mAP; OF1 pools all labels, CF1 averages over categories."
    light = plots.comparison_bars(names, columns)
    alternative = f"Bars of {', '.join(DRAWN)} per run"
    return html.plot(
        lambda theme: plots.comparison_bars(names, columns, theme=theme), light, alternative, caption
    )


def _value(row: Mapping[str, Any], name: str) -> float | None:
    """A metric of a run, None where undefined."""
    value = row["metrics"].get(name)
    return None if number(value) == "n/a" else float(value)


def _nan(value: float | None) -> float:
    return float("nan") if value is None else value
