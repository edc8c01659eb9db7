"""The figures of the field: mean ranks with their intervals, and mAP of every row in each setting."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from sarb.report.style import Colours, new_figure, style
from sarb.reproduce.field.lines import Lines
from sarb.reproduce.field.ranking import Standing
from sarb.reproduce.field.tables import columns_of, title, values
from sarb.reproduce.figures import save

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: inches per row of a figure, and for its axis
ROW, AXIS = 0.24, 1.2


def rank_figure(where: Standing, folder: Path) -> list[Path]:
    """Draw the mean rank of each row with its interval, and the critical difference."""
    with style() as colours:
        return save(draw_ranks(where, colours), folder / "ranks")


def draw_ranks(where: Standing, colours: Colours) -> Figure:
    """See :func:`rank_figure`."""
    figure = new_figure(AXIS + ROW * len(where.rows), 7.6)
    axes = figure.subplots()
    places = range(len(where.rows))
    centre = [interval.value for interval in where.ranks]
    low = [max(0.0, interval.value - interval.low) for interval in where.ranks]
    high = [max(0.0, interval.high - interval.value) for interval in where.ranks]
    axes.errorbar(
        centre, places, xerr=[low, high], fmt="o", markersize=5, capsize=2.5, color=colours.series[0]
    )
    if not math.isnan(where.critical):
        best = centre[0]
        axes.axvspan(best, best + where.critical, color=colours.muted, alpha=0.12, linewidth=0)
    axes.set(
        yticks=list(places),
        yticklabels=list(where.rows),
        xlabel=f"mean rank over {where.blocks} cells, 1 is best",
    )
    axes.invert_yaxis()
    return figure


def map_figure(done: Lines, rows: Sequence[str], folder: Path) -> list[Path]:
    """Draw mAP of every row, one panel for each setting and share."""
    with style() as colours:
        return save(draw_maps(done, rows, colours), folder / "mAP")


def draw_maps(done: Lines, rows: Sequence[str], colours: Colours) -> Figure:
    """See :func:`map_figure`."""
    columns = columns_of(done)
    figure = new_figure(AXIS + ROW * len(rows), 10.4)
    panels = figure.subplots(1, len(columns), sharey=True, squeeze=False)[0]
    for axes, column in zip(panels, columns, strict=True):
        for place, row in enumerate(rows):
            found = values(done, row, column, "mAP")
            axes.plot(found, [place] * len(found), "o", markersize=5, alpha=0.7, color=colours.series[0])
        axes.set(xlabel="test mAP (%)", title=title(column))
    panels[0].set(yticks=list(range(len(rows))), yticklabels=list(rows))
    panels[0].invert_yaxis()
    return figure
