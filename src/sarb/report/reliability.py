"""The reliability plot: of the labels predicted at 70 %, are 70 % present?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from sarb.report.style import Theme, new_figure, png, say, style

#: name in thresholds.json -> name in the legend
NAMES = {"before": "uncalibrated", "after": "calibrated"}


def reliability(tables: Mapping[str, Sequence[Sequence[float]]], *, theme: Theme = "light") -> bytes:
    """Share of present labels against mean probability; ``tables`` as in ``Calibration.figures``.

    Both axes have a square-root scale, because most probabilities are low and would crowd into one corner.
    """
    with style(theme) as colours:
        figure = new_figure(4.6, width=6.4)
        axes = figure.subplots()
        drawn = {key: np.array(tables[key], np.float64) for key in NAMES if tables.get(key)}
        if not drawn:
            say(axes, "no held-out labels, so there is nothing to draw", colours)
            return png(figure)
        line = np.linspace(0, 1, 201)
        axes.plot(
            line, line, color=colours.muted, linewidth=1, linestyle=(0, (4, 3)), label="perfect calibration"
        )
        for number, (key, rows) in enumerate(drawn.items()):
            colour = colours.series[1 - number] if len(drawn) > 1 else colours.series[0]
            size = 12 + 60 * np.sqrt(rows[:, 2] / rows[:, 2].max())
            axes.plot(rows[:, 0], rows[:, 1], color=colour, linewidth=1.2, alpha=0.6)
            axes.scatter(rows[:, 0], rows[:, 1], s=size, color=colour, alpha=0.85, label=NAMES[key])
        ticks = [0, 0.01, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1]
        for set_scale, set_ticks in ((axes.set_xscale, axes.set_xticks), (axes.set_yscale, axes.set_yticks)):
            set_scale(
                "function", functions=(lambda x: np.sqrt(np.maximum(x, 0)), lambda x: np.asarray(x) ** 2)
            )
            set_ticks(ticks, [f"{tick:g}" for tick in ticks])
        axes.set(xlim=(0, 1.02), ylim=(0, 1.02), xlabel="probability", ylabel="share of present labels")
        axes.legend(loc="upper left")
        return png(figure)
