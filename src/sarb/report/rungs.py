"""The ladder as a figure: what each rung reaches, beside the ten-line baseline, and what it adds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from sarb.auto.rung import BASELINE, FINAL
from sarb.auto.told import AGAINST, Row, number
from sarb.report.style import Colours, Theme, new_figure, png, say, short, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def rungs(rows: Sequence[Row], *, theme: Theme = "light") -> bytes:
    """Points with 95 % intervals, a line per rung; ``rows`` as in ``log.csv``.

    Left: out-of-fold mAP, with the interval of its difference from the ten-line baseline (its own interval if
    there is no baseline). Right: how much the loss falls, for rungs that are compared with the ones before.
    """
    shown = [row for row in rows if not math.isnan(number(row, "mean_ap"))]
    with style(theme) as colours:
        figure = new_figure(0.9 + 0.34 * max(len(shown), 2))
        if not shown:
            say(figure.subplots(), "no positive label is known, so nothing was measured", colours)
            return png(figure)
        steps = [row for row in shown if row["rung"] not in AGAINST]
        if steps:
            left, right = figure.subplots(1, 2, sharey=True, width_ratios=(3, 2))
            _fall(right, shown, colours)
        else:
            left = figure.subplots()
        _precision(left, shown, colours)
        return png(figure)


def _precision(axes: Axes, rows: Sequence[Row], colours: Colours) -> None:
    """Out-of-fold mAP of each rung."""
    baseline = next((row for row in rows if row["rung"] == BASELINE), None)
    if baseline is not None:
        line = number(baseline, "mean_ap")
        axes.axvline(line, color=colours.series[1], linewidth=1.2, linestyle=(0, (4, 3)), zorder=1)
    for position, row in enumerate(rows):
        value = number(row, "mean_ap")
        low = number(row, "mean_ap_low") - value
        high = number(row, "mean_ap_high") - value
        if baseline is not None:
            low = number(row, "ahead_low") - number(row, "ahead")
            high = number(row, "ahead_high") - number(row, "ahead")
        _point(axes, position, row, value, (value + low, value + high), colours)
        axes.annotate(
            f"{value:.1f}",
            (value, position),
            (0, 8),
            textcoords="offset points",
            ha="center",
            size=8,
            bbox={"facecolor": colours.background, "edgecolor": "none", "pad": 0.4},
            weight="bold" if row["rung"] == FINAL else "normal",
        )
    axes.set_yticks(range(len(rows)), [short(str(row["rung"])) for row in rows], color=colours.text)
    axes.set_ylim(len(rows) - 0.5, -0.75)
    axes.set(xlabel="out-of-fold mAP (%)")
    axes.margins(x=0.08)
    axes.grid(axis="y", visible=False)
    axes.spines["left"].set_visible(False)


def _fall(axes: Axes, rows: Sequence[Row], colours: Colours) -> None:
    """How much the loss falls with each rung, against the rungs kept before it."""
    axes.axvline(0, color=colours.muted, linewidth=1, zorder=1)
    for position, row in enumerate(rows):
        if row["rung"] not in AGAINST and not math.isnan(number(row, "gain")):
            ends = (number(row, "low"), number(row, "high"))
            _point(axes, position, row, number(row, "gain"), ends, colours)
    axes.set(xlabel="fall of the loss against the rungs kept before")
    axes.locator_params(axis="x", nbins=5)
    axes.margins(x=0.08)
    axes.grid(axis="y", visible=False)
    axes.spines["left"].set_visible(False)


def _point(
    axes: Axes, position: int, row: Row, value: float, ends: tuple[float, float], colours: Colours
) -> None:
    """A marker, filled if the rung is kept, on its interval; no interval where it is nan."""
    name = row["rung"]
    colour = {BASELINE: colours.series[1], FINAL: colours.series[2]}.get(name, colours.series[0])
    if not any(math.isnan(end) for end in ends):
        axes.plot(ends, (position, position), color=colour, linewidth=2, alpha=0.55, zorder=2)
    filled = name == BASELINE or str(row.get("kept")) == "True"
    axes.plot(
        value,
        position,
        marker="D" if name == FINAL else "o",
        markersize=7 if name == FINAL else 6.5,
        markerfacecolor=colour if filled else colours.background,
        markeredgecolor=colour,
        markeredgewidth=1.5,
        zorder=3,
    )
