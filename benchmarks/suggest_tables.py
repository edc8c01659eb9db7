"""Tables and the picture of ``benchmarks.suggest``: suggest against random, and what was predicted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.fits import Key, Results, markdown
from benchmarks.paired import difference
from benchmarks.source import Cell, Source
from sarb.metrics import evaluate
from sarb.report.style import new_figure, png, style, write_png

STRATEGIES = ("start", "random", "suggest")
CELL_KEY = ("split", "model", "cell", "masks")
CELL_COLUMNS = (
    *CELL_KEY,
    *("asked", "present", "present_random", "start", "random", "suggest", "gain", "low", "high", "predicted"),
)


def judge_cell(
    source: Source, cell: Cell, masks: Sequence[int], results: Results, name: str
) -> dict[str, str] | None:
    """Compare suggest with random, masks pooled; None if a fit is missing."""
    keys = {
        strategy: [Key.of(source, cell, mask, f"{name} {strategy}") for mask in masks]
        for strategy in STRATEGIES
    }
    if not all(results.has(key) for each in keys.values() for key in each):
        return None
    answers = source.answers(cell)
    scores = {strategy: [results.scores(key) for key in each] for strategy, each in keys.items()}
    notes = {Key.read(row): dict(part.split("=") for part in row["note"].split()) for row in results.rows}

    def mean(strategy: str, name: str) -> float:
        return float(np.mean([float(notes[key][name]) for key in keys[strategy]]))

    quality = {
        strategy: f"{np.mean([evaluate(logits, answers)['mAP'] for logits in each]):.2f}"
        for strategy, each in scores.items()
    }
    return {
        "split": source.how.split,
        "model": name,
        "cell": cell.name,
        "masks": " ".join(map(str, masks)),
        "asked": f"{mean('suggest', 'asked'):.0f}",
        "present": f"{mean('suggest', 'present'):.0f}",
        "present_random": f"{mean('random', 'present'):.0f}",
        **quality,
        **difference(scores["suggest"], scores["random"], answers.values),
        "predicted": f"{mean('suggest', 'predicted'):+.2f}",
    }


def summary(rows: Sequence[dict[str, str]]) -> str:
    """The table, and where suggest is worse than random."""
    columns = (
        "model",
        "cell",
        "asked",
        "present",
        "start",
        "random",
        "suggest",
        "gain",
        "interval",
        "predicted",
    )
    shown = []
    for row in rows:
        interval = {"interval": f"{row['low']} to {row['high']}"}
        present = {"present": f"{row['present']} ({row['present_random']})"}
        shown.append([{**row, **interval, **present}[name] for name in columns])
    worse = [f"worse than random: {row['model']} {row['cell']}" for row in rows if float(row["high"]) < 0]
    return "\n".join([markdown(columns, shown), "", *(worse or ["worse than random in no cell"])])


def draw(rows: Sequence[Mapping[str, str]], path: Path) -> None:
    """Draw the gain over random against the share of known labels, a panel for each data set."""
    names = list(dict.fromkeys(row["cell"].split("/")[0] for row in rows))
    models = list(dict.fromkeys(row["model"] for row in rows))
    with style() as colours:
        figure = new_figure(3.2, width=3.0 * len(names) + 0.6)
        panels = figure.subplots(1, len(names), squeeze=False)[0]
        for axes, name in zip(panels, names, strict=True):
            axes.axhline(0, color=colours.muted, linewidth=0.8)
            for number, model in enumerate(models):
                mine = [row for row in rows if row["model"] == model and row["cell"].startswith(f"{name}/")]
                _curve(axes, mine, model, colours.series[number], shift=0.97 + 0.06 * number)
            axes.set(title=name, xlabel="known labels (%)", xscale="log", xlim=(4.2, 60))
            axes.set_xticks([5, 10, 30, 50], ["5", "10", "30", "50"])
            axes.minorticks_off()
        panels[0].set_ylabel("mAP over random questions")
        panels[0].legend(loc="upper right")
        write_png(path, png(figure))


def _curve(axes: Any, rows: Sequence[Mapping[str, str]], model: str, colour: str, shift: float) -> None:
    """The real gains with their intervals, and the predicted ones; ``shift`` keeps two models apart."""
    if not rows:
        return
    rows = sorted(rows, key=lambda row: float(row["cell"].split("/")[1]))
    known = [shift * float(row["cell"].split("/")[1]) for row in rows]
    gain, low, high, predicted = (
        np.array([float(row[column]) for row in rows]) for column in ("gain", "low", "high", "predicted")
    )
    interval = np.stack([gain - low, high - gain]).clip(0)
    axes.errorbar(known, gain, interval, color=colour, marker="o", markersize=4, label=f"{model}, real")
    axes.plot(
        known, predicted, color=colour, linestyle=":", linewidth=1.2, marker="x", label=f"{model}, predicted"
    )
