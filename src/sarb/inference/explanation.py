"""Why a score is what it is: where the model looked for a category, and which other categories moved the
score.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from sarb.data.images import Source, decode
from sarb.errors import ConfigError, check_choice, did_you_mean
from sarb.model import Model
from sarb.networks.base import Network
from sarb.networks.gcn_ml import GCNML
from sarb.networks.ssgrl import SSGRL
from sarb.scores import Scores

if TYPE_CHECKING:
    from sarb.report.style import Theme

#: what a heat map may show
MAPS = ("attention", "evidence")
#: with more categories only so many are silenced in turn: those with the strongest edges to the explained
#: ones
MOST_SOURCES = 100
#: numbers of changed representations that are classified at once
BLOCK = 1 << 24


@dataclass(frozen=True)
class Influence:
    """What another category did to a score: the logit with it minus the logit when ``source`` is silent."""

    source: str
    change: float


@dataclass(frozen=True, eq=False)
class Explanation:
    """Heat maps, scores and influences of C' categories on one image.

    Attributes:
        arrays: (C', H, W) float32. SD: shares of a sum of 1; SAM: masks in (0, 1); class activation maps:
            the product of each cell with the classifier; evidence: what each cell adds to the logit.
        categories: C' names.
        probabilities: (C',) as ``sarb predict`` prints them: calibrated, if the model's folder has a
            calibration.
        influences: per name the strongest other categories, largest change first; empty without a graph.
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
        return f"Explanation({', '.join(self.categories)}; {self.kind} {self.arrays.shape[1]}×{self.arrays.shape[2]})"

    def __str__(self) -> str:
        lines = []
        for name, probability in zip(self.categories, self.probabilities, strict=True):
            moved = ", ".join(f"{each.source} {each.change:+.2f}" for each in self.influences[name])
            lines.append(f"{name} {probability:.2f}" + (f"  (logit by others: {moved})" if moved else ""))
        return "\n".join(lines)

    def peak(self, category: str) -> tuple[float, float]:
        """Return (x, y) of the strongest cell's centre, as shares of the picture's width and height."""
        heat = self.arrays[_place(self.categories, category)]
        row, column = np.unravel_index(int(heat.argmax()), heat.shape)
        return (float(column) + 0.5) / heat.shape[1], (float(row) + 0.5) / heat.shape[0]

    def picture(self, category: str, side: int | None = None) -> Image.Image:
        """Return the image, its longer side at most ``side``, with one heat map laid over it; no text."""
        from sarb.report.overlay import blend

        return blend(self.image, self.arrays[_place(self.categories, category)], side)

    def save(self, path: str | Path, *, theme: Theme = "light") -> Path:
        """Write a PNG: one panel per category with name, probability, heat map and colour bar."""
        from sarb.report.overlay import strip
        from sarb.report.style import write_png

        panels = zip(self.categories, self.probabilities.tolist(), self.arrays, strict=True)
        return write_png(path, strip(self.image, list(panels), self.kind, theme=theme))

    def to_dict(self) -> dict[str, Any]:
        """Everything but the picture, ready for JSON."""
        found = [
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
            "categories": found,
        }


def explain(
    model: Model,
    image: Source,
    categories: Sequence[str] | str | None = None,
    *,
    maps: str = "attention",
    influences: int = 5,
) -> Explanation:
    """Show where a model looked, and what the co-occurrence graph did to the scores.

    Args:
        model: from :func:`sarb.fit` or :func:`sarb.load_model`.
        image: path, bytes, Pillow image or array.
        categories: names; None takes those that reach their threshold (0.5 without a calibration), or the
            most probable one.
        maps: ``"attention"``, where the network looked, or ``"evidence"``, what each place added to the
            score.
        influences: how many of the strongest other categories to name for each; 0 leaves them out, which is
            faster.

    Raises:
        ConfigError: a category that the model does not have, with the near match.
    """
    check_choice("maps", maps, MAPS)
    network = model.network
    picture = decode(image)
    names = [categories] if isinstance(categories, str) else categories
    chosen = None if names is None else [_place(model.categories, name) for name in names]
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
            heat = (
                _evidence(network, grid, chosen) if maps == "evidence" else network.attention(grid)[0, chosen]
            )
            changes = _changes(network, grid, logits, chosen) if influences > 0 else {}
    finally:
        network.train(training)
    return Explanation(
        heat.float().cpu().numpy(),
        tuple(model.categories[place] for place in chosen),
        probabilities[chosen],
        {
            model.categories[place]: _strongest(changes, place, model.categories, influences)
            for place in chosen
        },
        picture,
        _kind(network, maps),
    )


def _evidence(network: Network, maps: Tensor, chosen: Sequence[int]) -> Tensor:
    r"""What each cell of maps (1, D, H, W) adds to the logits of the chosen categories, (C', H, W).

        e_cp = a_cp · (y_p · ∂logit_c/∂f_c)        f_c = Σ_p a_cp y_p

    y is the grid that the network attends to: x in SD, W_t x in SAM. Σ_p e_cp is the gradient times f_c, the
    first order of what the representation does to the score. A class activation map is this already, without
    an attention.
    """
    attention = network.attention(maps)[0, chosen]
    if not isinstance(network, SSGRL):
        return attention
    values = maps
    if network.sam is not None:
        values = network.sam.transform(maps) * (2 / attention[0].numel() if network.sam.normalise else 1)
    reps = network.represent(maps).requires_grad_()
    with torch.enable_grad():
        logits = network.classify(reps)[0]
        slopes = [
            torch.autograd.grad(logits[place], reps, retain_graph=True)[0][0, place] for place in chosen
        ]
    return attention * torch.einsum("cd,dhw->chw", torch.stack(slopes), values[0])


def _place(categories: Sequence[str], name: str) -> int:
    if name not in categories:
        shown = ", ".join(categories[:20]) + (" …" if len(categories) > 20 else "")
        raise ConfigError(
            [f"unknown category '{name}'.{did_you_mean(name, categories)} The model has: {shown}"]
        )
    return list(categories).index(name)


def _probable(probabilities: NDArray[np.float64], thresholds: NDArray[np.float64]) -> list[int]:
    order = np.argsort(-probabilities, kind="stable")
    return [int(place) for place in order if probabilities[place] >= thresholds[place]] or [int(order[0])]


def _kind(network: Network, maps: str) -> str:
    if "represent" not in network.stages:
        return "activation"
    if maps == "evidence":
        return "evidence"
    return "mask" if getattr(network, "sam", None) is not None else "attention"


def _strongest(
    changes: dict[int, Tensor], place: int, categories: Sequence[str], count: int
) -> tuple[Influence, ...]:
    """The ``count`` sources with the largest change of one logit, either way; a category is no influence on
    itself.
    """
    found = [(source, float(change[place])) for source, change in changes.items() if source != place]
    found = sorted((each for each in found if each[1] != 0), key=lambda each: -abs(each[1]))
    return tuple(Influence(categories[source], change) for source, change in found[:count])


def _changes(network: Network, maps: Tensor, logits: Tensor, chosen: Sequence[int]) -> dict[int, Tensor]:
    r"""Source j -> logit(f) − logit(f with category j silent), (C,), for maps (1, D, H, W).

    Silent means f_j = 0 in a network with representations: A h and Aᵀ h then lack what j would have said,
    and with one graph step that is all that changes for the others. In GCN-ML it means a zero word vector.
    Other networks have no graph, so nothing.
    """
    if isinstance(network, SSGRL):
        reps = network.represent(maps)
        graph = network.cooccurrence
        sources = _candidates(graph, chosen)
        silenced = torch.cat([_classified(network, reps, part) for part in _parts(sources, reps[0].numel())])
    elif isinstance(network, GCNML):
        sources = _candidates(network.adjacency, chosen)
        words = network.words()
        features = maps.amax((2, 3))
        rows = []
        for source in sources:
            without = words.clone()
            without[source] = 0
            rows.append(network.classifier(features, network.graph(without, network.adjacency)))
        silenced = torch.cat(rows)
    else:
        return {}
    return dict(zip(sources, (logits - silenced).cpu(), strict=True))


def _candidates(graph: Tensor, chosen: Sequence[int]) -> list[int]:
    """The categories to silence: all, or those with the strongest edges to and from the explained ones."""
    strength = graph[:, chosen].amax(1) + graph[chosen].amax(0)
    order: list[int] = strength.argsort(descending=True, stable=True)[:MOST_SOURCES].tolist()
    return order


def _parts(sources: Sequence[int], numbers: int) -> list[Sequence[int]]:
    size = max(1, BLOCK // numbers)
    return [sources[start : start + size] for start in range(0, len(sources), size)]


def _classified(network: Network, reps: Tensor, sources: Sequence[int]) -> Tensor:
    """Logits (n, C) of representations (1, C, D) with one category of ``sources`` silent in each copy."""
    copies = reps.repeat(len(sources), 1, 1)
    copies[torch.arange(len(sources)), list(sources)] = 0
    return network.classify(copies)
