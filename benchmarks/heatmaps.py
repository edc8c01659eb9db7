"""Do heat maps point at the object? Compare their peaks with the object boxes of the demo images.

    python -m benchmarks.heatmaps                            train on the demo set, 30 % of the labels known
    python -m benchmarks.heatmaps --run runs/demo30          use an existing model
    python -m benchmarks.heatmaps --set network.csrl=sam     any setting of ``sarb train``

For each category that is present in a test image, take the strongest cell of its map. It is a hit if its
centre lies in a box of the category that is enlarged by one cell on each side (``hits``), or in the box
itself (``strict``). For comparison: ``chance`` is the share of all cells that would be a hit, ``middle`` is
the result of a map that always points at the middle of the image, and ``other`` is the result of the map of
another present category, in images that have one.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

import sarb
from sarb.data.demo.dataset import demo_boxes
from sarb.data.demo.scene import Box
from sarb.model import Model
from sarb.workflows.training import train_session

GOAL = 70.0


class Looked(NamedTuple):
    """Result for one present category of one image."""

    hit: bool
    strict: bool
    chance: float
    middle: bool
    other: float


def inside(boxes: Sequence[Box], shape: tuple[int, int], size: int, margin: float) -> NDArray[np.bool_]:
    """Return a mask (H, W) of the cells whose centre lies in a box that is enlarged by ``margin`` cells."""
    down, across = ((np.arange(count) + 0.5) * size / count for count in shape)
    tall, wide = (margin * size / count for count in shape)
    covered = np.zeros(shape, bool)
    for left, top, right, bottom in boxes:
        rows = (down >= top - tall) & (down < bottom + tall)
        covered |= rows[:, None] & ((across >= left - wide) & (across < right + wide))
    return covered


def judge(maps: NDArray[np.float32], boxes: Sequence[Sequence[Box]], size: int) -> list[Looked]:
    """Judge the maps (C', H, W) of the categories present in one image, given the boxes of each."""
    shape = (maps.shape[1], maps.shape[2])
    middle = (shape[0] // 2) * shape[1] + shape[1] // 2
    peaks = [int(heat.argmax()) for heat in maps]
    looked = []
    for category, (peak, category_boxes) in enumerate(zip(peaks, boxes, strict=True)):
        near, exact = (inside(category_boxes, shape, size, margin).ravel() for margin in (1, 0))
        others = [bool(near[other]) for number, other in enumerate(peaks) if number != category]
        looked.append(
            Looked(
                hit=bool(near[peak]),
                strict=bool(exact[peak]),
                chance=float(near.mean()),
                middle=bool(near[middle]),
                other=float(np.mean(others)) if others else np.nan,
            )
        )
    return looked


def measure(model: Model, data: sarb.Data, count: int, maps: str = "attention") -> dict[str, float]:
    """Return percentages over all present categories of the first ``count`` test images."""
    size = int(data.notes["size"])
    looked: list[Looked] = []
    for path, boxes in zip(data.test.paths, demo_boxes(data, "test", count), strict=False):
        present = sorted({category for category, _ in boxes})
        if present:
            heat = sarb.explain(model, path, present, maps=maps, influences=0).arrays
            by_category = [[box for name, box in boxes if name == category] for category in present]
            looked += judge(heat, by_category, size)
    table = np.array(looked, float)
    names = ("hits", "strict", "chance", "middle", "other")
    shares = dict(zip(names, (100 * np.nanmean(table, axis=0)).tolist(), strict=True))
    return {**shares, "categories": float(len(looked)), "images": float(min(count, len(data.test)))}


def summary(measured: dict[str, float], maps: str) -> str:
    """Return one sentence with all numbers."""
    return (
        f"heat maps ({maps}) on {measured['images']:.0f} demo test images, "
        f"{measured['categories']:.0f} present categories: "
        f"{measured['hits']:.1f} % of the peaks in a box of the category or one cell next to it "
        f"(goal {GOAL:g}); in the box itself {measured['strict']:.1f}; chance {measured['chance']:.1f}; "
        f"the middle of the image {measured['middle']:.1f}; "
        f"the peak of another present category {measured['other']:.1f}"
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--run", type=Path, help="run or model folder trained on the demo set")
    parser.add_argument("--images", type=int, default=200)
    parser.add_argument("--known", type=float, default=0.3)
    parser.add_argument("--maps", default="attention", help="attention or evidence")
    parser.add_argument(
        "-o", "--option", action="append", default=[], metavar="KEY=VALUE", help="option of the demo set"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("--json", action="store_true")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Train or load a model, measure, print; return 1 if the goal is missed."""
    options = _parser().parse_args(arguments)
    data_options = dict(text.split("=", 1) for text in options.option)
    data = sarb.load("demo", **data_options)
    with TemporaryDirectory() as temporary:
        run = options.run
        if run is None:
            run = train_session(
                source="demo",
                data_options=data_options,
                known=options.known,
                seed=options.seed,
                out=Path(temporary) / "run",
                assignments=["method=sarb", *options.set],
                page=False,
            )[0]
        measured = measure(sarb.load_model(run), data, options.images, options.maps)
    print(json.dumps(measured) if options.json else summary(measured, options.maps))
    return 0 if measured["hits"] >= GOAL else 1


if __name__ == "__main__":
    raise SystemExit(main())
