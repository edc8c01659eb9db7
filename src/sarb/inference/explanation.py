"""Explain a score: where the model looked for a category, and which other categories changed the score."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from sarb.data.images import Source, decode
from sarb.errors import ConfigError, check_choice, did_you_mean
from sarb.model import Model, as_model
from sarb.networks.base import Network
from sarb.report.overlay import blend, strip
from sarb.report.style import Theme, write_png
from sarb.scores import Scores

#: what a heat map can show
MAPS = ("attention", "evidence")
#: maximum number of categories to silence: those with the strongest relations to the explained ones
MOST_SOURCES = 100
#: maximum size of the representations that are classified at once, in numbers
BLOCK = 1 << 24


@dataclass(frozen=True)
class Influence:
    """The effect of another category on a score: the logit minus the logit with ``source`` silenced."""

    source: str
    change: float


@dataclass(frozen=True, eq=False)
class Explanation:
    """Heat maps, scores and influences of C' categories on one image.

    Attributes:
        arrays: (C', H, W) float32. SD: weights that sum to 1; SAM: masks in (0, 1); class activation maps:
            the product of each cell with the classifier; evidence: what each cell adds to the logit.
        categories: C' names.
        probabilities: (C',) as ``sarb predict`` prints them: calibrated, if the model's folder has a
            calibration.
        influences: for each name the strongest other categories, largest change first; empty without a graph.
        image: the picture, upright RGB.
        kind: ``"attention"`` (SD), ``"mask"`` (SAM), ``"activation"`` or ``"evidence"``.
    """

    arrays: NDArray[np.float32]
    categories: tuple[str, ...]
    probabilities: NDArray[np.float64]
    influences: dict[str, tuple[Influence, ...]]
    image: Image.Image = field(repr=False)
    kind: str = "attention"

    def __len__(self) -> int:
        return len(self.categories)

    def __repr__(self) -> str:
        _, height, width = self.arrays.shape
        return f"Explanation({', '.join(self.categories)}; {self.kind} {height}×{width})"

    def __str__(self) -> str:
        lines = []
        for name, probability in zip(self.categories, self.probabilities, strict=True):
            moved = ", ".join(f"{each.source} {each.change:+.2f}" for each in self.influences[name])
            lines.append(f"{name} {probability:.2f}" + (f"  (logit by others: {moved})" if moved else ""))
        return "\n".join(lines)

    def peak(self, category: str) -> tuple[float, float]:
        """Return the centre (x, y) of the strongest cell, as shares of the picture's width and height."""
        heat = self.arrays[_position(self.categories, category)]
        row, column = np.unravel_index(int(heat.argmax()), heat.shape)
        return (float(column) + 0.5) / heat.shape[1], (float(row) + 0.5) / heat.shape[0]

    def picture(self, category: str, side: int | None = None) -> Image.Image:
        """Return the image with one heat map on top and no text; its longer side is at most ``side``."""
        return blend(self.image, self.arrays[_position(self.categories, category)], side)

    def save(self, path: str | Path, *, theme: Theme = "light") -> Path:
        """Write a PNG: one panel per category with name, probability, heat map and colour bar."""
        panels = zip(self.categories, self.probabilities.tolist(), self.arrays, strict=True)
        return write_png(path, strip(self.image, list(panels), self.kind, theme=theme))

    def to_dict(self) -> dict[str, Any]:
        """Return everything except the picture, ready for JSON."""
        shown = [
            {
                "category": name,
                "probability": float(probability),
                "peak": self.peak(name),
                "influences": [asdict(each) for each in self.influences[name]],
                "map": array.tolist(),
            }
            for name, probability, array in zip(self.categories, self.probabilities, self.arrays, strict=True)
        ]
        return {
            "kind": self.kind,
            "width": self.image.width,
            "height": self.image.height,
            "categories": shown,
        }


def explain(
    model: Model | str | Path,
    image: Source,
    categories: Sequence[str] | str | None = None,
    *,
    maps: str = "attention",
    influences: int = 5,
) -> Explanation:
    """Show where a model looked, and how the co-occurrence graph changed the scores.

    Args:
        model: a model, or the folder or hub id of one.
        image: path, bytes, Pillow image or array.
        categories: names; None takes those that reach their threshold (0.5 without a calibration), or the
            most probable one.
        maps: ``"attention"``, where the network looked, or ``"evidence"``, what each cell added to the score.
        influences: how many of the strongest other categories to report; 0 is faster.

    Raises:
        ConfigError: a category that the model does not have; the message suggests a similar one.
    """
    check_choice("maps", maps, MAPS)
    model = as_model(model)
    network = model.network
    picture = decode(image)
    names = [categories] if isinstance(categories, str) else categories
    chosen = None if names is None else [_position(model.categories, name) for name in names]
    if chosen == []:
        raise ConfigError(["explain: no category given"])
    small = decode(image, model.transform.least) if isinstance(image, str | Path | bytes) else picture
    training = network.training
    network.eval()
    try:
        with torch.no_grad():
            grid = network.maps(torch.from_numpy(model.transform(small))[None].to(model.device))
            logits = network.head(grid)[0]
            scores = Scores(logits.cpu().numpy()[None], model.categories)
            calibration = model.calibration().ordered(model.categories)
            probabilities = calibration(scores)[0]
            chosen = _probable(probabilities, calibration.thresholds) if chosen is None else chosen
            heat, kind = _heat(network, grid, chosen, maps)
            changes = _changes(network, grid, logits, chosen) if influences > 0 else {}
    finally:
        network.train(training)
    return Explanation(
        heat.float().cpu().numpy(),
        tuple(model.categories[category] for category in chosen),
        probabilities[chosen],
        {
            model.categories[category]: _strongest(changes, category, model.categories, influences)
            for category in chosen
        },
        picture,
        kind,
    )


def _heat(network: Network, grid: Tensor, chosen: Sequence[int], maps: str) -> tuple[Tensor, str]:
    """Heat maps (C', H, W) of a grid (1, D, H, W), and their kind.

    For a network without values, evidence is the attention: a class activation map is already evidence.
    """
    attention = network.attention(grid)[0, chosen]
    values = network.values(grid) if maps == "evidence" else None
    if values is None:
        return attention, network.map_kind
    slopes = _slopes(network, network.represent(grid), chosen)
    return attention * torch.einsum("cd,dhw->chw", slopes, values[0]), "evidence"


def _slopes(network: Network, reps: Tensor, chosen: Sequence[int]) -> Tensor:
    r"""Gradient ∂logit_c/∂f_c of the chosen categories (C', D) at representations (1, C, D).

    What a cell adds to a logit is e_cp = a_cp · (y_p · ∂logit_c/∂f_c), with f_c = Σ_p a_cp y_p. So Σ_p e_cp
    is the gradient times f_c, the first-order effect of the representation on the score.
    """
    reps = reps.requires_grad_()
    with torch.enable_grad():
        logits = network.classify(reps)[0]
        slopes = [
            torch.autograd.grad(logits[category], reps, retain_graph=True)[0][0, category]
            for category in chosen
        ]
    return torch.stack(slopes)


def _position(categories: Sequence[str], name: str) -> int:
    if name not in categories:
        shown = ", ".join(categories[:20]) + (" …" if len(categories) > 20 else "")
        raise ConfigError(
            [f"unknown category '{name}'.{did_you_mean(name, categories)} The model has: {shown}"]
        )
    return list(categories).index(name)


def _probable(probabilities: NDArray[np.float64], thresholds: NDArray[np.float64]) -> list[int]:
    order = np.argsort(-probabilities, kind="stable")
    return [int(each) for each in order if probabilities[each] >= thresholds[each]] or [int(order[0])]


def _strongest(
    changes: dict[int, Tensor], category: int, categories: Sequence[str], count: int
) -> tuple[Influence, ...]:
    """The ``count`` other categories with the largest change of one logit, up or down."""
    moved = [(source, float(change[category])) for source, change in changes.items() if source != category]
    moved = sorted((each for each in moved if each[1] != 0), key=lambda each: -abs(each[1]))
    return tuple(Influence(categories[source], change) for source, change in moved[:count])


def _changes(network: Network, grid: Tensor, logits: Tensor, chosen: Sequence[int]) -> dict[int, Tensor]:
    """Source j -> logits minus logits with category j silenced, (C,), for a grid (1, D, H, W).

    Empty for a network without relations between categories.
    """
    relations = network.relations()
    if relations is None:
        return {}
    features = network.to_classify(grid)
    sources = _candidates(relations, chosen)
    silenced = torch.cat([network.silence(features, part) for part in _parts(sources, features[0].numel())])
    return dict(zip(sources, (logits - silenced).cpu(), strict=True))


def _candidates(graph: Tensor, chosen: Sequence[int]) -> list[int]:
    """The categories to silence: all, or those with the strongest relations to the explained ones."""
    strength = graph[:, chosen].amax(1) + graph[chosen].amax(0)
    order: list[int] = strength.argsort(descending=True, stable=True)[:MOST_SOURCES].tolist()
    return order


def _parts(sources: Sequence[int], numbers: int) -> list[Sequence[int]]:
    size = max(1, BLOCK // numbers)
    return [sources[start : start + size] for start in range(0, len(sources), size)]
