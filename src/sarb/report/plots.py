"""Plots of results and data: average precision, precision-recall, co-occurrence, counts, comparisons.

Each function returns PNG bytes; :func:`sarb.report.style.write_png` writes them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sarb.labels import UNKNOWN, LabelMatrix
from sarb.metrics import Curve, Interval, average_precision, precision_recall
from sarb.report.style import Colours, Theme, new_figure, png, say, short, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: with more categories, the names no longer fit beside the co-occurrence matrix
NAMED_CATEGORIES = 80

#: maximum number of bars in a histogram of counts
BARS = 20

#: text size (points) and x position of the counts in the AP plot, by number of columns
SIZES = ((9.0, 118.0), (8.0, 124.0), (6.5, 136.0))


def per_category_ap(rows: Sequence[Mapping[str, Any]], *, theme: Theme = "light") -> bytes:
    """Horizontal bars of AP, best first, with known positives; ``rows`` as from ``per_category``."""
    ranked = sorted(rows, key=lambda row: -1.0 if _missing(row["AP"]) else float(row["AP"]), reverse=True)
    values = [float(row["AP"]) for row in ranked if not _missing(row["AP"])]
    columns = 1 if len(ranked) <= 40 else 2 if len(ranked) <= 100 else 3
    deep = max(1, math.ceil(len(ranked) / columns))
    with style(theme) as colours:
        figure = new_figure(0.9 + deep * (0.26, 0.22, 0.19)[columns - 1])
        for column, axes in enumerate(figure.subplots(1, columns, squeeze=False)[0]):
            part = ranked[column * deep : (column + 1) * deep]
            mean = sum(values) / len(values) if values else None
            _ap_column(axes, part, deep, mean, SIZES[columns - 1], colours)
        return png(figure)


def _ap_column(
    axes: Axes,
    rows: Sequence[Mapping[str, Any]],
    deep: int,
    mean: float | None,
    sizes: tuple[float, float],
    colours: Colours,
) -> None:
    """One column of bars; all columns have room for ``deep`` bars, so that bars are equally thick."""
    size, right = sizes
    positions = np.arange(len(rows))
    heights = [0.0 if _missing(row["AP"]) else float(row["AP"]) for row in rows]
    axes.barh(positions, heights, height=0.72, color=colours.series[0], alpha=0.9)
    for position, row in enumerate(rows):
        text = "n/a" if _missing(row["AP"]) else f"{row['AP']:.1f}"
        clear = {"facecolor": colours.background, "edgecolor": "none", "pad": 0.6}
        axes.text(
            heights[position] + 1,
            position,
            text,
            va="center",
            size=size - 0.5,
            color=colours.text,
            bbox=clear,
        )
        count = f"{int(row['positives']):,}"
        axes.text(right, position, count, va="center", ha="right", size=size - 0.5, color=colours.muted)
    if mean is not None:
        axes.axvline(mean, color=colours.series[1], linewidth=1.2, linestyle=(0, (4, 3)))
        axes.text(
            mean, -0.75, f"mean {mean:.1f}", color=colours.series[1], ha="center", va="bottom", size=size
        )
    axes.text(right, -0.75, "positives", ha="right", va="bottom", size=size - 0.5, color=colours.muted)
    axes.set_yticks(positions, [short(row["category"], 22) for row in rows], size=size, color=colours.text)
    axes.set_xlim(0, right)
    axes.set_ylim(max(deep, 1) - 0.4, -0.7)
    axes.set_xticks(range(0, 101, 20))
    axes.set_xlabel("average precision (%)")
    axes.grid(axis="y", visible=False)
    axes.spines["left"].set_visible(False)


def precision_recall_curves(
    scores: ArrayLike, labels: LabelMatrix | ArrayLike, categories: Sequence[str], *, theme: Theme = "light"
) -> bytes:
    """Micro and macro curve, and the three best and three worst categories by AP (all, if at most six)."""
    values = labels.values if isinstance(labels, LabelMatrix) else np.asarray(labels)
    logits = np.asarray(scores)
    precision = average_precision(logits, values)
    ranked = [int(index) for index in np.argsort(-precision, kind="stable") if not np.isnan(precision[index])]
    chosen = ranked if len(ranked) <= 6 else ranked[:3] + ranked[-3:]
    with style(theme) as colours:
        figure = new_figure(4.6)
        axes = figure.subplots()
        if not ranked:
            say(axes, "no category has a known positive, so there are no curves", colours)
            return png(figure)
        _iso_f1(axes, colours)
        for rank, index in enumerate(chosen):
            curve = precision_recall(logits[:, index], values[:, index])
            dashes = "-" if rank < (len(chosen) + 1) // 2 else (0, (4, 2))
            label = f"{short(categories[index])}  {100 * precision[index]:.1f}"
            _draw_curve(
                axes,
                curve,
                label,
                color=colours.series[rank % 6],
                linestyle=dashes,
                linewidth=1.2,
                alpha=0.85,
            )
        known = values != UNKNOWN
        micro = precision_recall(logits[known], values[known])
        pooled = average_precision(logits[known][:, None], values[known][:, None])[0]
        _draw_curve(axes, micro, f"all labels pooled  {100 * pooled:.1f}", color=colours.text, linewidth=2.6)
        _macro(axes, logits, values, ranked, precision, colours)
        axes.set(xlim=(0, 1.005), ylim=(0, 1.02), xlabel="recall", ylabel="precision")
        axes.legend(
            loc="center left", bbox_to_anchor=(1.07, 0.5), title="average precision (%)", title_fontsize=8
        )
        return png(figure)


def _draw_curve(axes: Axes, curve: Curve, label: str, **line: Any) -> None:
    """Draw a curve from recall 0, with at most 2,000 points."""
    take = np.unique(np.linspace(0, len(curve.recall) - 1, min(2000, len(curve.recall))).astype(int))
    recall = curve.recall[take]
    precision = curve.precision[take]
    axes.plot(np.r_[0, recall], np.r_[precision[:1], precision], label=label, **line)


def _macro(
    axes: Axes,
    logits: NDArray[Any],
    values: NDArray[Any],
    ranked: list[int],
    precision: NDArray[Any],
    colours: Colours,
) -> None:
    """Mean over categories of the best precision at each recall or higher."""
    grid = np.linspace(0, 1, 201)
    total = np.zeros_like(grid)
    for index in ranked:
        curve = precision_recall(logits[:, index], values[:, index])
        envelope = np.append(np.maximum.accumulate(curve.precision[::-1])[::-1], 0.0)
        total += envelope[np.searchsorted(curve.recall, grid - 1e-12)]
    label = f"mean over categories  {100 * precision[ranked].mean():.1f}"
    axes.plot(grid, total / len(ranked), color=colours.muted, linewidth=2.6, label=label)


def _iso_f1(axes: Axes, colours: Colours) -> None:
    """Faint lines of equal F1."""
    for level in (0.2, 0.4, 0.6, 0.8):
        recall = np.linspace(level / 2 + 1e-3, 1, 100)
        line = level * recall / (2 * recall - level)
        inside = line <= 1
        axes.plot(recall[inside], line[inside], color=colours.grid, linewidth=1)
        axes.text(1.012, line[-1], f"F1 {level:.1f}", color=colours.muted, size=7, va="center")


def cooccurrence(matrix: ArrayLike, categories: Sequence[str], *, theme: Theme = "light") -> bytes:
    """Heat map (C, C) of P(column present | row present), ordered so that themes become blocks."""
    graph = np.asarray(matrix, np.float64)
    order = _similar_together(graph)
    shown = np.ma.masked_array(graph[np.ix_(order, order)], np.eye(len(graph), dtype=bool))
    named = len(categories) <= NAMED_CATEGORIES
    side = 4.5 + 0.07 * min(len(categories), NAMED_CATEGORIES)
    with style(theme) as colours:
        from matplotlib.colors import LinearSegmentedColormap

        heat = LinearSegmentedColormap.from_list("heat", list(colours.heat)).with_extremes(bad=colours.grid)
        figure = new_figure(side, width=side + 0.9)
        axes = figure.subplots()
        top = max(0.05, float(shown.max())) if shown.count() else 1.0
        image = axes.imshow(shown, cmap=heat, vmin=0, vmax=top, interpolation="nearest")
        size = float(np.clip(0.7 * 72 * side / max(1, len(categories)), 5.5, 9))  # 70 % of a row, in points
        names = [short(categories[index], 20) for index in order] if named else []
        axes.set_xticks(range(len(names)), names, rotation=90, size=size)
        axes.set_yticks(range(len(names)), names, size=size)
        axes.set(xlabel="also present", ylabel="given this one is present")
        axes.grid(visible=False)
        bar = figure.colorbar(image, ax=axes, shrink=0.5, aspect=30, pad=0.01, label="share of images")
        bar.outline.set_visible(False)
        return png(figure)


def _similar_together(graph: NDArray[np.float64]) -> NDArray[np.int64]:
    """Order categories by the second eigenvector of the graph's normalised Laplacian."""
    if len(graph) < 3:
        return np.arange(len(graph))
    weight = (graph + graph.T) / 2 + 1e-3
    np.fill_diagonal(weight, 0)
    root = np.sqrt(weight.sum(0))
    _, vectors = np.linalg.eigh(np.eye(len(graph)) - weight / np.outer(root, root))
    vector = vectors[:, 1] / root
    # The sign of an eigenvector is arbitrary; fix it so that the plot is the same on every machine.
    return np.argsort(vector * (1 if vector[np.argmax(np.abs(vector))] > 0 else -1), kind="stable")


def label_counts(rows: Sequence[tuple[str, int, int, int]], *, theme: Theme = "light") -> bytes:
    """One stacked bar per category; ``rows`` are (name, present, absent, unknown) image counts."""
    columns = 1 if len(rows) <= 30 else 2
    deep = max(1, math.ceil(len(rows) / columns))
    with style(theme) as colours:
        figure = new_figure(0.9 + deep * (0.26, 0.23)[columns - 1])
        for column, axes in enumerate(figure.subplots(1, columns, squeeze=False)[0]):
            part = rows[column * deep : (column + 1) * deep]
            counts = np.array([row[1:] for row in part], np.float64).reshape(-1, 3)
            floor = np.zeros(len(part))
            fills = (colours.series[0], colours.series[1], colours.grid)
            for state, fill, values in zip(("present", "absent", "unknown"), fills, counts.T, strict=True):
                axes.barh(range(len(part)), values, left=floor, height=0.74, color=fill, label=state)
                floor = floor + values
            axes.set_yticks(
                range(len(part)), [short(row[0], 22) for row in part], size=8.5, color=colours.text
            )
            axes.set(
                xlim=(0, max(1.0, float(floor.max(initial=0)))), ylim=(deep - 0.4, -0.6), xlabel="images"
            )
            _present_beside(axes, part, colours)
            axes.xaxis.set_major_locator(_whole_numbers())
            axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
            axes.grid(axis="y", visible=False)
            axes.spines["left"].set_visible(False)
        handles, names = figure.axes[0].get_legend_handles_labels()
        figure.legend(handles, names, loc="outside upper left", ncols=3)
        return png(figure)


def _present_beside(axes: Axes, rows: Sequence[tuple[str, int, int, int]], colours: Colours) -> None:
    """The number of images that show a category, beside its bar, which is often too thin to read."""
    beside = axes.get_yaxis_transform()
    for position, row in enumerate(rows):
        axes.text(
            1.015, position, f"{row[1]:,}", color=colours.series[0], va="center", size=8, transform=beside
        )


def image_histogram(
    groups: Mapping[str, Sequence[float]], labels: Sequence[str], xlabel: str, *, theme: Theme = "light"
) -> bytes:
    """Bars over ``labels``, one colour per group (name -> image counts), in percent of the group."""
    filled = {name: np.asarray(counts, np.float64) for name, counts in groups.items() if sum(counts)}
    with style(theme) as colours:
        figure = new_figure(2.7)
        axes = figure.subplots()
        if not filled:
            say(axes, "no images", colours)
            return png(figure)
        thick = 0.84 / len(filled)
        for index, (name, counts) in enumerate(filled.items()):
            centres = np.arange(len(labels)) - 0.42 + (index + 0.5) * thick
            axes.bar(
                centres,
                100 * counts / counts.sum(),
                width=0.92 * thick,
                color=colours.series[index],
                label=name,
            )
        axes.set_xticks(range(len(labels)), labels)
        axes.set(xlabel=xlabel, ylabel="% of images", xlim=(-0.6, len(labels) - 0.4))
        axes.grid(axis="x", visible=False)
        axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5))
        return png(figure)


def fewer_bars(groups: Mapping[str, Sequence[int]]) -> tuple[list[str], dict[str, list[float]]]:
    """Merge counts of 0, 1, 2 … into at most ``BARS`` bars of equal width; return labels and groups."""
    length = max((len(counts) for counts in groups.values()), default=0) or 1
    width = math.ceil(length / BARS)
    starts = range(0, length, width)
    labels = [str(start) if width == 1 else f"{start}–{start + width - 1}" for start in starts]
    return labels, {name: [sum(counts[at : at + width]) for at in starts] for name, counts in groups.items()}


def _whole_numbers() -> Any:
    """A few ticks at whole numbers."""
    from matplotlib.ticker import MaxNLocator

    return MaxNLocator(integer=True, nbins=5)


def comparison_bars(
    names: Sequence[str], metrics: Mapping[str, Sequence[float]], *, theme: Theme = "light"
) -> bytes:
    """Grouped horizontal bars: one group per metric, one bar per run."""
    with style(theme) as colours:
        figure = new_figure(0.7 + len(metrics) * (0.35 + 0.27 * len(names)))
        axes = figure.subplots()
        thick = 0.8 / max(1, len(names))
        for index, name in enumerate(names):
            centres = [group - 0.4 + (index + 0.5) * thick for group in range(len(metrics))]
            values = [0.0 if _missing(column[index]) else float(column[index]) for column in metrics.values()]
            axes.barh(
                centres, values, height=0.86 * thick, color=colours.series[index % 7], label=short(name, 40)
            )
            for centre, value, column in zip(centres, values, metrics.values(), strict=True):
                text = "n/a" if _missing(column[index]) else f"{value:.1f}"
                axes.text(value + 0.8, centre, text, va="center", size=8)
        axes.set_yticks(range(len(metrics)), list(metrics), color=colours.text)
        axes.set(xlim=(0, 106), ylim=(len(metrics) - 0.45, -0.55), xlabel="%")
        axes.set_xticks(range(0, 101, 20))
        axes.grid(axis="y", visible=False)
        axes.spines["left"].set_visible(False)
        axes.legend(loc="lower left", bbox_to_anchor=(0, 1.0), ncols=min(3, max(1, len(names))))
        return png(figure)


def differences(intervals: Mapping[str, Interval], against: str, *, theme: Theme = "light") -> bytes:
    """Points with 95 % intervals, one line per run, and a line at 0."""
    with style(theme) as colours:
        figure = new_figure(0.9 + 0.34 * max(len(intervals), 2))
        axes = figure.subplots()
        axes.axvline(0, color=colours.muted, linewidth=1.2, linestyle=(0, (4, 3)), zorder=1)
        for position, (value, low, high) in enumerate(intervals.values()):
            colour = colours.series[0]
            if not (_missing(low) or _missing(high)):
                axes.plot(
                    (low, high), (position, position), color=colour, linewidth=2, solid_capstyle="round"
                )
            axes.plot(value, position, "o", color=colour, markersize=6)
        axes.set_yticks(range(len(intervals)), [short(name, 40) for name in intervals], color=colours.text)
        axes.set(ylim=(len(intervals) - 0.5, -0.5), xlabel=f"mAP minus {short(against, 40)}")
        axes.grid(axis="y", visible=False)
        axes.spines["left"].set_visible(False)
        return png(figure)


def _missing(value: Any) -> bool:
    """True for None and nan."""
    return value is None or bool(np.isnan(value))
