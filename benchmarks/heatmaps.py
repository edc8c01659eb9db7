"""Do heat maps point at the object? Peaks of the attention against the boxes of the drawn demo pictures.

    python -m benchmarks.heatmaps                            trains on the demo set with 30 % of the labels
    known python -m benchmarks.heatmaps --run runs/demo30          uses a model that is there
    python -m benchmarks.heatmaps --set network.csrl=sam     any setting of ``sarb train``

For each category that is present in a test picture the strongest cell of its map is looked up. It counts if
its centre lies in a box of the category, enlarged by one cell on each side (``hits``), or in the box itself
(``strict``). Chance is the share of all cells that would count, so what a map pointing anywhere gives;
``middle`` is what a map that always points at the middle of the picture gives; ``other`` what the map of
another present category gives, in pictures that have one.
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
    """One present category of one picture."""

    hit: bool
    strict: bool
    chance: float
    middle: bool
    other: float


def inside(boxes: Sequence[Box], shape: tuple[int, int], size: int, margin: float) -> NDArray[np.bool_]:
    """Cells (H, W) whose centre lies in a box, enlarged by ``margin`` cells, of a picture of size × size
    pixels.
    """
    down, across = ((np.arange(count) + 0.5) * size / count for count in shape)
    tall, wide = margin * size / shape[0], margin * size / shape[1]
    found = np.zeros(shape, bool)
    for left, top, right, bottom in boxes:
        rows = (down >= top - tall) & (down < bottom + tall)
        found |= rows[:, None] & ((across >= left - wide) & (across < right + wide))
    return found


def judge(maps: NDArray[np.float32], boxes: Sequence[Sequence[Box]], size: int) -> list[Looked]:
    """Judge the maps (C', H, W) of the categories present in one picture, given the boxes of each."""
    shape = maps.shape[1], maps.shape[2]
    peaks = [int(heat.argmax()) for heat in maps]
    looked = []
    for place, own in enumerate(boxes):
        near, exact = (inside(own, shape, size, margin).ravel() for margin in (1, 0))
        others = [bool(near[peak]) for at, peak in enumerate(peaks) if at != place]
        middle = (shape[0] // 2) * shape[1] + shape[1] // 2
        looked.append(
            Looked(
                bool(near[peaks[place]]),
                bool(exact[peaks[place]]),
                float(near.mean()),
                bool(near[middle]),
                float(np.mean(others)) if others else np.nan,
            )
        )
    return looked


def measure(model: Model, data: sarb.Data, count: int, maps: str = "attention") -> dict[str, float]:
    """Percentages over all present categories of the first ``count`` test pictures."""
    size, looked = int(data.notes["size"]), list[Looked]()
    for path, boxes in zip(data.test.paths, demo_boxes(data, "test", count), strict=False):
        present = sorted({category for category, _ in boxes})
        if present:
            found = sarb.explain(model, path, present, maps=maps, influences=0)
            looked += judge(
                found.arrays, [[box for name, box in boxes if name == each] for each in present], size
            )
    table = np.array(looked, float)
    names = ("hits", "strict", "chance", "middle", "other")
    shares = dict(zip(names, (100 * np.nanmean(table, axis=0)).tolist(), strict=True))
    return {**shares, "categories": float(len(looked)), "images": float(min(count, len(data.test)))}


def main(arguments: Sequence[str] | None = None) -> int:
    """Train or load, measure, print; 1 if the goal is missed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--run", type=Path, help="run or model folder trained on the demo set")
    parser.add_argument("--images", type=int, default=200)
    parser.add_argument("--known", type=float, default=0.3)
    parser.add_argument("--maps", default="attention", help="attention or evidence")
    parser.add_argument(
        "-o", "--option", action="append", default=[], metavar="KEY=VALUE", help="of the demo set"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args(arguments)
    options = dict(text.split("=", 1) for text in given.option)
    data = sarb.load("demo", **options)
    with TemporaryDirectory() as place:
        run = (
            given.run
            or train_session(
                source="demo",
                data_options=options,
                known=given.known,
                seed=given.seed,
                out=Path(place) / "run",
                assignments=given.set,
                page=False,
            )[0]
        )
        found = measure(sarb.load_model(run), data, given.images, given.maps)
    if given.json:
        print(json.dumps(found))
    else:
        print(
            f"heat maps ({given.maps}) on {found['images']:.0f} demo test pictures, "
            f"{found['categories']:.0f} present categories: "
            f"{found['hits']:.1f} % of the peaks in a box of the category or one cell beside it (goal {GOAL:g}); in "
            f"the box itself {found['strict']:.1f}; chance {found['chance']:.1f}; the middle of the picture "
            f"{found['middle']:.1f}; the peak of another present category {found['other']:.1f}"
        )
    return 0 if found["hits"] >= GOAL else 1


if __name__ == "__main__":
    raise SystemExit(main())
