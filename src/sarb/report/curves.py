"""Training curves from ``log.csv``: loss terms, validation metrics, α and β, completed labels."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sarb.report.style import WIDTH, Colours, Theme, new_figure, png, say, style
from sarb.report.terms import by_whom
from sarb.runs.log import Log

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: names of the loss terms in the plots
TERMS = {
    "loss": "total",
    "loss_cls": "known labels (cls)",
    "loss_cst": "contrastive (cst)",
    "loss_ilrb": "instance blend (ilrb)",
    "loss_plrb": "prototype blend (plrb)",
}


def has_curves(log: Log, *prefixes: str) -> bool:
    """Return whether any column with one of these prefixes has a number."""
    return any(np.isfinite(log[name]).any() for prefix in prefixes for name in log if name.startswith(prefix))


def loss_curves(log: Log, steps: Log | None = None, *, theme: Theme = "light") -> bytes:
    """One panel per loss term, each on its own scale; single steps are drawn behind the total."""
    names = [
        name for name in (*TERMS, *sorted(set(log) - set(TERMS))) if name.startswith("loss") and name in log
    ]
    names = [name for name in names if np.isfinite(log[name]).any()]
    columns = min(3, max(1, len(names)))
    lines = max(1, math.ceil(len(names) / columns))
    with style(theme) as colours:
        figure = new_figure(0.3 + 2.2 * lines, WIDTH)
        panels = figure.subplots(lines, columns, squeeze=False).ravel()
        if not names:
            say(panels[0], "the log has no loss", colours)
        for index, axes in enumerate(panels[: len(names)]):
            name = names[index]
            if name == "loss" and steps is not None and {"epoch", "loss"} <= set(steps):
                _step_cloud(axes, steps, colours)
            _line(axes, log, name, colours.series[index % 7])
            axes.set_title(TERMS.get(name, name.removeprefix("loss_")))
            axes.set_ylim(bottom=min(0.0, float(np.nanmin(log[name]))))
        for axes in panels[max(1, len(names)) :]:
            axes.set_axis_off()
        return png(figure)


def _step_cloud(axes: Axes, steps: Log, colours: Colours) -> None:
    """The loss of single steps, spread evenly over their epoch, so that both lines end together."""
    epoch = steps["epoch"]
    loss = steps["loss"]
    keep = np.isfinite(epoch) & np.isfinite(loss)
    epoch = epoch[keep]
    loss = loss[keep]
    _, count = np.unique(epoch, return_counts=True)
    within = np.concatenate([np.arange(1, n + 1) / n for n in count]) if len(count) else np.array([])
    if len(within) and (np.diff(epoch) >= 0).all():
        axes.plot(epoch - 1 + within, loss, color=colours.series[0], alpha=0.25, linewidth=0.7)


def validation_curves(log: Log, *, theme: Theme = "light") -> bytes:
    """mAP, OF1 and CF1 (or the ``valid_…`` columns there are) per epoch; the best mAP is marked."""
    preferred = [f"valid_{name}" for name in ("mAP", "OF1", "CF1")]
    names = [name for name in preferred if name in log] or [
        name for name in log if name.startswith("valid_")
    ][:4]
    names = [name for name in names if np.isfinite(log[name]).any()]
    with style(theme) as colours:
        figure = new_figure(2.9)
        axes = figure.subplots()
        if not names:
            say(axes, "the log has no validation metrics", colours)
        for index, name in enumerate(names):
            _line(axes, log, name, colours.series[index], label=name.removeprefix("valid_"))
        if "valid_mAP" in names:
            best = int(np.nanargmax(log["valid_mAP"]))
            where = _epochs(log)[best]
            value = log["valid_mAP"][best]
            axes.plot([where], [value], "o", color=colours.series[0], markersize=9, markerfacecolor="none")
            axes.annotate(
                f"best {value:.1f}",
                (where, value),
                (0, 9),
                textcoords="offset points",
                ha="center",
                color=colours.text,
            )
            axes.margins(y=0.15)
        if names:
            axes.set_ylabel("%")
            axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5))
        return png(figure)


def blend_strengths(log: Log, *, theme: Theme = "light") -> bytes:
    """α and β per epoch; ``…_mean``, ``…_min`` and ``…_max`` columns add a band over categories."""
    with style(theme) as colours:
        figure = new_figure(2.7)
        axes = figure.subplots()
        drawn: list[NDArray[np.float64]] = []
        for index, (name, sign) in enumerate(
            (("alpha", "α (instance blend)"), ("beta", "β (prototype blend)"))
        ):
            centre = next(
                (key for key in (name, f"{name}_mean") if has_curves(log, key) and key in log), None
            )
            if centre is None:
                continue
            _line(axes, log, centre, colours.series[index], label=sign)
            drawn.append(log[centre])
            if {f"{name}_min", f"{name}_max"} <= set(log):
                low = log[f"{name}_min"]
                high = log[f"{name}_max"]
                axes.fill_between(
                    _epochs(log), low, high, color=colours.series[index], alpha=0.18, linewidth=0
                )
                drawn += [low, high]
        if not drawn:
            say(axes, "the log has neither α nor β", colours)
            return png(figure)
        values = np.concatenate(drawn)
        # At least 0.1 high, so that a strength that hardly moves looks that way.
        middle = (np.nanmin(values) + np.nanmax(values)) / 2
        half = max(0.05, float(np.ptp(values[np.isfinite(values)])))
        axes.set_ylim(max(-0.02, middle - half), min(1.02, middle + half))
        axes.set_ylabel("strength")
        axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5))
        return png(figure)


def completed_labels(log: Log, *, theme: Theme = "light") -> bytes:
    """Stacked bars of the labels used in a loss per epoch: known, and completed by each blend."""
    names = [name for name in log if name.startswith("completed_")]
    with style(theme) as colours:
        figure = new_figure(2.7)
        axes = figure.subplots()
        if not has_curves(log, "completed_"):
            say(axes, "the log has no completed labels", colours)
            return png(figure)
        epochs = _epochs(log)
        floor = np.zeros(len(log[names[0]]))
        stack = [("known", "known", colours.muted)] if has_curves(log, "known") and "known" in log else []
        stack += [
            (name, f"completed by {by_whom(name)}", colours.series[index % 7])
            for index, name in enumerate(names)
        ]
        for name, label, colour in stack:
            height = np.nan_to_num(log[name])
            axes.bar(epochs, height, bottom=floor, width=0.82, color=colour, label=label, alpha=0.9)
            floor = floor + height
        axes.set(xlabel="epoch", ylabel="labels per epoch")
        _whole_epochs(axes)
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
        axes.grid(axis="x", visible=False)
        axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), reverse=True)
        return png(figure)


def _line(axes: Axes, log: Log, name: str, colour: str, label: str | None = None) -> None:
    """One column over epochs; with few epochs, markers make even a single one visible."""
    values = log[name]
    keep = np.isfinite(values)
    marker = "o" if np.count_nonzero(keep) <= 30 else None
    axes.plot(_epochs(log)[keep], values[keep], color=colour, marker=marker, markersize=3.5, label=label)
    axes.set_xlabel("epoch")
    _whole_epochs(axes)


def _whole_epochs(axes: Axes) -> None:
    """Put ticks at whole epochs only."""
    from matplotlib.ticker import MaxNLocator

    axes.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=8))


def _epochs(log: Log) -> NDArray[np.float64]:
    """The epoch column, or 0, 1, 2 … if there is none."""
    first = next(iter(log.values()), np.array([]))
    return log["epoch"] if "epoch" in log else np.arange(len(first), dtype=np.float64)
