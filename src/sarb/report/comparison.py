"""``comparison_page``: several runs side by side on one HTML page."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from sarb.errors import DataError
from sarb.files import atomic_write
from sarb.report import html, plots
from sarb.report.report import number
from sarb.runs.folder import RunFolder

#: metrics in the table, and in the plot
SHOWN = ("mAP", "mAP_interpolated", "OF1", "CF1")
DRAWN = ("mAP", "OF1", "CF1")


def comparison_page(
    rows: Sequence[Mapping[str, Any]], out: str | Path, title: str = "Comparison of runs"
) -> Path:
    """Write one self-contained page that compares runs and return its path.

    Args:
        rows: one mapping per run with ``name``, ``run_dir`` and ``metrics`` (as from
            :func:`sarb.metrics.evaluate`).
        out: the page; links to the runs' own reports are relative to its folder.
        title: its heading.
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
        numbers=_table(rows, out) if rows else None,
        plot=_plot(rows) if rows else None,
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
    if len(order) > 1:
        ahead = (_value(order[0], "mAP") or 0.0) - (_value(order[1], "mAP") or 0.0)
        text += f", {ahead:.1f} ahead of {order[1]['name']}"
    return f"{text}."


def _table(rows: Sequence[Mapping[str, Any]], out: Path) -> html.Table:
    """The numbers with the best of each column marked; a run links to its report if it has one."""
    best = {name: max((_value(row, name) or 0.0 for row in rows), default=0.0) for name in SHOWN}
    lines = []
    for row in rows:
        cells = [html.Cell(str(row["name"]), link=_link(row, out))]
        for name in SHOWN:
            value = _value(row, name)
            is_best = value is not None and value == best[name]
            cells.append(html.number_cell(value, "best" if is_best else ""))
        lines.append(cells)
    return html.Table(["run", *SHOWN], lines, sortable=True)


def _link(row: Mapping[str, Any], out: Path) -> str:
    """The address of the run's report relative to the page; empty if there is none."""
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
