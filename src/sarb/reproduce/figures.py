"""The paper's figures as PNG and PDF: metrics against the known share, and loss with and without PLRB."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sarb.files import atomic_write
from sarb.report.style import Colours, new_figure, style
from sarb.reproduce import published
from sarb.reproduce.cells import steadiness
from sarb.reproduce.names import OURS, POOLED
from sarb.reproduce.results import Results

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: window of the moving mean, as a share of all steps
SMOOTH = 0.03
NAMES = {"mAP_interpolated": "mAP (interpolated)"}


def save(figure: Figure, stem: Path) -> list[Path]:
    """Write ``STEM.png`` and ``STEM.pdf``; call it inside :func:`sarb.report.style.style`."""
    quiet: dict[str, dict[str, Any]] = {
        "png": {"Software": None},
        "pdf": {"CreationDate": None, "Producer": None},
    }
    files = []
    for suffix, metadata in quiet.items():
        files.append(stem.with_name(f"{stem.name}.{suffix}"))
        with atomic_write(files[-1], "wb") as file:
            figure.savefig(file, format=suffix, metadata=metadata)
    return files


def share_figures(
    results: Results, title: str, rows: Sequence[str], paper: str | None, folder: Path
) -> dict[str, list[Path]]:
    """Plot mAP, OF1 and CF1 against the known share, one figure each; return name -> files."""
    shares = results.shares(rows)
    made = {}
    for metric in ("mAP_interpolated" if paper else "mAP", "OF1", "CF1") if shares else ():
        with style() as colours:
            figure = draw_shares(results, title, rows, metric, paper, colours)
            made[f"{NAMES.get(metric, metric)} against the proportion of known labels"] = save(
                figure, folder / f"{metric}-by-share"
            )
    return made


def draw_shares(
    results: Results, title: str, rows: Sequence[str], metric: str, paper: str | None, colours: Colours
) -> Figure:
    """One line per method, with the deviation over seeds; published numbers get their own panel."""
    figure = new_figure(4.3, 10.4 if paper else 7.6)
    panels = figure.subplots(1, 2 if paper else 1, squeeze=False)[0]
    axes = panels[0]
    shown = published.ALL_NINE if paper else results.shares(rows)
    for row in rows:
        colour = _colour(row, rows, colours)
        thick = 2.6 if row == OURS else 1.5
        height = 3 if row == OURS else 2
        if paper:
            _published_line(panels[1], paper, row, metric, color=colour, linewidth=thick, zorder=height)
        numbers = [
            (known, number)
            for known in results.shares([row])
            if (number := results.number(row, known, metric))
        ]
        if not numbers:
            continue
        percents = [100 * known for known, _ in numbers]
        deviations = [number.deviation or 0.0 for _, number in numbers]
        axes.errorbar(
            percents,
            [number.value for _, number in numbers],
            yerr=deviations if any(deviations) else None,
            marker="o",
            markersize=4,
            capsize=2.5,
            color=colour,
            label=row,
            linewidth=thick,
            elinewidth=1,
            zorder=height,
        )
    axes.set(ylabel=f"{NAMES.get(metric, metric)} (%)", title=title)
    for each in panels:
        each.set(xlabel="known labels (%)", xticks=[round(100 * known, 1) for known in shown])
    if paper:
        panels[1].set_title(f"published, {published.TITLES[paper]}")
    handles = axes.get_legend_handles_labels()
    panels[-1].legend(*handles, loc="center left", bbox_to_anchor=(1.01, 0.5))
    return figure


def _published_line(axes: Axes, paper: str, row: str, metric: str, **look: Any) -> None:
    values = [published.number(paper, row, known, metric) for known in published.ALL_NINE]
    given = [
        (100 * known, value)
        for known, value in zip(published.ALL_NINE, values, strict=True)
        if value is not None
    ]
    if given:
        axes.plot(*zip(*given, strict=True), marker="o", markersize=4, **look)


def _colour(row: str, rows: Sequence[str], colours: Colours) -> str:
    """SARB always has the first colour and the pooled baseline the last."""
    if row in (OURS, POOLED):
        return colours.series[0 if row == OURS else -1]
    others = [name for name in rows if name not in (OURS, POOLED)]
    return colours.series[1 + others.index(row) % (len(colours.series) - 2)]


def loss_figure(losses: Mapping[str, NDArray[np.float64]], title: str, folder: Path) -> list[Path]:
    """Plot the loss of each step (faint) and its moving mean; the legend shows how steady it is.

    Args:
        losses: name -> loss of each step.
        title: title of the figure.
        folder: folder for ``loss.png`` and ``loss.pdf``.
    """
    with style() as colours:
        return save(draw_losses(losses, title, colours), folder / "loss")


def draw_losses(losses: Mapping[str, NDArray[np.float64]], title: str, colours: Colours) -> Figure:
    """See :func:`loss_figure`."""
    figure = new_figure(3.6, 7.6)
    axes = figure.subplots()
    for index, (name, values) in enumerate(losses.items()):
        colour = colours.series[index]
        width = max(1, round(SMOOTH * len(values)))
        middle = np.convolve(values, np.full(width, 1 / width), "valid")
        mean, change = steadiness(values.tolist())
        axes.plot(np.arange(len(values)), values, color=colour, linewidth=0.7, alpha=0.4)
        label = name
        if mean and change is not None:
            label += (
                f"\nchange per step ±{change:.3f},\n{100 * change / mean:.1f} % of the mean\n(second half)"
            )
        axes.plot(np.arange(len(middle)) + (width - 1) / 2, middle, color=colour, linewidth=1.8, label=label)
    axes.set(xlabel="step", ylabel="training loss", title=title)
    axes.set_ylim(bottom=0)
    axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), labelspacing=1.2)
    return figure
