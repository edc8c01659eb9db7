"""Sample predictions: which test images to show, which labels are right or wrong, and a plot of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sarb.data.images import decode
from sarb.errors import SarbError
from sarb.labelling.calibration import Calibration
from sarb.labels import ABSENT, PRESENT, UNKNOWN, LabelMatrix
from sarb.report.style import Colours, Theme, new_figure, png, say, short, style
from sarb.scores import Scores

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from PIL.Image import Image

#: mark -> (symbol, meaning); a symbol as well as a colour, for colour-blind readers
MARKS: dict[str, tuple[str, str]] = {
    "correct": ("✓", "predicted and present"),
    "wrong": ("✗", "predicted but absent"),
    "missed": ("○", "present but not predicted"),
    "unknown": ("?", "predicted, truth unknown"),
}


@dataclass(frozen=True)
class Guess:
    """One label of one image: its probability and a mark from ``MARKS``."""

    label: str
    probability: float
    mark: str


@dataclass(frozen=True)
class Sample:
    """An image with the labels that were predicted or missed, most probable first."""

    picture: Image
    name: str
    guesses: tuple[Guess, ...]
    hidden: int = 0  # labels that did not fit


def judge(
    probabilities: NDArray[np.float64],
    predicted: NDArray[np.bool_],
    labels: NDArray[np.int8],
    categories: Sequence[str],
) -> list[Guess]:
    """Mark the labels of one image that were predicted or missed; arrays are (C,)."""
    guesses = []
    for index in np.argsort(-probabilities, kind="stable"):
        truth = labels[index]
        if predicted[index]:
            mark = {PRESENT: "correct", ABSENT: "wrong", UNKNOWN: "unknown"}[int(truth)]
        elif truth == PRESENT:
            mark = "missed"
        else:
            continue
        guesses.append(Guess(categories[index], float(probabilities[index]), mark))
    return guesses


def choose(predicted: NDArray[np.bool_], labels: LabelMatrix, count: int = 12) -> list[int]:
    """Images spread evenly from best to worst F1 on their known labels: no cherry-picking."""
    present = labels.values == PRESENT
    hits = np.count_nonzero(predicted & present, axis=1)
    total = np.count_nonzero(predicted & labels.known, axis=1) + np.count_nonzero(present, axis=1)
    worth = np.flatnonzero(total > 0)
    quality = 2 * hits[worth] / total[worth]
    ranked = worth[np.argsort(-quality, kind="stable")]
    take = np.linspace(0, len(ranked) - 1, min(count, len(ranked))).round().astype(int)
    return [int(ranked[index]) for index in take]


def read_samples(
    scores: Scores,
    labels: LabelMatrix,
    calibration: Calibration | None = None,
    *,
    count: int = 12,
    side: int = 320,
    lines: int = 6,
) -> list[Sample]:
    """Decode the chosen images to thumbnails; missing and unreadable ones are left out.

    Probabilities and decisions are those of ``calibration``; without one, a label is predicted from 0.5 on.
    """
    samples = []
    calibration = calibration or Calibration.identity(scores.categories)
    probabilities = calibration(scores)
    predicted = calibration.present(scores)
    for row in choose(predicted, labels, count):
        path = Path(labels.paths[row])
        try:
            picture = decode(path)
        except (SarbError, OSError):
            continue
        picture.thumbnail((side, side))
        guesses = judge(probabilities[row], predicted[row], labels.values[row], scores.categories)
        samples.append(Sample(picture, path.name, tuple(guesses[:lines]), max(0, len(guesses) - lines)))
    return samples


def sample_grid(samples: Sequence[Sample], *, theme: Theme = "light") -> bytes:
    """Images in rows of four, each with its labels below: probability bar, colour and symbol."""
    columns = min(4, max(1, len(samples)))
    lines = max(1, math.ceil(len(samples) / columns))
    with style(theme) as colours:
        figure = new_figure(0.4 + 3.6 * lines)
        ratios = [ratio for _ in range(lines) for ratio in (2.1, 1.3)]
        panels = figure.subplots(2 * lines, columns, squeeze=False, height_ratios=ratios)
        for axes in panels.ravel():
            axes.set_axis_off()
        if not samples:
            say(panels[0, 0], "no image could be read", colours)
        for index, sample in enumerate(samples):
            line, column = divmod(index, columns)
            panels[2 * line, column].imshow(np.asarray(sample.picture))
            _bars(panels[2 * line + 1, column], sample, colours)
        legend = "     ".join(f"{symbol} {meaning}" for symbol, meaning in MARKS.values())
        figure.supxlabel(legend, size=8, color=colours.muted)
        return png(figure)


def _bars(axes: Axes, sample: Sample, colours: Colours) -> None:
    """The labels of one sample."""
    axes.set(xlim=(0, 1), ylim=(5.6, -0.6))
    if not sample.guesses:
        axes.text(0, 0, "nothing predicted", color=colours.muted, size=8, va="center")
    for position, guess in enumerate(sample.guesses):
        colour = mark_colour(guess.mark, colours)
        axes.barh(position, guess.probability, height=0.78, color=colour, alpha=0.28)
        text = f"{MARKS[guess.mark][0]} {short(guess.label, 20)}"
        axes.text(0.02, position, text, va="center", size=7.5, color=colours.text)
        axes.text(1.0, position, f"{guess.probability:.2f}", va="center", ha="right", size=7.5, color=colour)


def mark_colour(mark: str, colours: Colours) -> str:
    """Colour of a mark."""
    return {"correct": colours.good, "wrong": colours.bad, "missed": colours.missed}.get(
        mark, colours.unknown
    )
