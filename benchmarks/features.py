"""How fast are cached features computed? PyTorch against ONNX Runtime, OpenVINO and the automatic choice.

    python -m benchmarks.features --data DIR/labels.csv --out benchmarks/features.csv
    python -m benchmarks.features --data DIR/labels.csv --backbone efficientnet_lite1 --image-size 320 --images 1024

Each run is the whole path of ``cached_features``: read and decode the photos, run the frozen trunk, write the
fp16 file and its checksum, into an empty cache. The engines take turns, with other photos in each round.
``whole`` includes what an engine needs once per process (export, compilation, comparison with PyTorch and, for
``auto``, the measurement); ``start`` is that part alone, and ``steady`` is the speed without it. Ratios are to
PyTorch within a round, median over the rounds. ``whole`` grows towards ``steady`` with the number of images.
"""

from __future__ import annotations

import argparse
import csv
import os
import platform
import time
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
import torch

import sarb
from sarb.batches import engines, features
from sarb.data.dataset import Dataset
from sarb.data.images import EvalTransform
from sarb.networks import create_backbone
from sarb.networks.backbones.base import Backbone
from sarb.progress import Progress

KINDS = ("torch", "onnxruntime", "openvino", "auto")


class Times(NamedTuple):
    """Seconds of one run."""

    start: float
    whole: float

    @property
    def steady(self) -> float:
        """Without the start."""
        return self.whole - self.start


def run(kind: str, backbone: Backbone, photos: Dataset, transform: EvalTransform) -> Times:
    """Compute the features of some photos with a cold engine, in an empty cache."""
    engines._chosen.clear()
    spent = [0.0]

    def timed(*given: Any) -> engines.Engine:
        before = time.perf_counter()
        engine = engines.choose_engine(*given)
        spent[0] = time.perf_counter() - before
        return engine

    with (
        TemporaryDirectory() as folder,
        patch.dict(os.environ, {"SARB_CACHE": folder, engines.VARIABLE: kind}),
        patch.object(features, "choose_engine", timed),
    ):
        before = time.perf_counter()
        features.cached_features(backbone, photos, transform, progress=Progress())
        return Times(spent[0], time.perf_counter() - before)


def rows(times: dict[str, list[Times]], images: int) -> list[dict[str, float | str]]:
    """One row per engine: medians over the rounds."""
    table = []
    for kind, found in times.items():
        pairs = list(zip(times["torch"], found, strict=True))
        table.append(
            {
                "engine": kind,
                "start_seconds": round(median(one.start for one in found), 2),
                "whole_images_per_second": round(median(images / one.whole for one in found), 1),
                "steady_images_per_second": round(median(images / one.steady for one in found), 1),
                "whole_ratio": round(median(plain.whole / one.whole for plain, one in pairs), 2),
                "steady_ratio": round(median(plain.steady / one.steady for plain, one in pairs), 2),
            }
        )
    return table


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", required=True)
    parser.add_argument("--backbone", default="efficientnet_lite0")
    parser.add_argument("--image-size", type=int, default=224)
    parser.add_argument("--images", type=int, default=512)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--engines", default=",".join(KINDS))
    parser.add_argument("--out", type=Path, default=None)
    options = parser.parse_args()
    kinds = ["torch", *(kind for kind in options.engines.split(",") if kind != "torch")]
    train = sarb.load(options.data, encoding="binary").train
    backbone = create_backbone(options.backbone, train_stages=0)
    transform = EvalTransform(options.image_size, backbone.mean, backbone.std)
    shuffled = np.random.default_rng(0).permutation(len(train))
    run("torch", backbone, train.take(shuffled[:64]), transform)  # the first call is slower
    times: dict[str, list[Times]] = {kind: [] for kind in kinds}
    for number in range(options.rounds):
        photos = train.take(np.roll(shuffled, -number * options.images)[: options.images])
        for kind in kinds:
            times[kind].append(run(kind, backbone, photos, transform))
            print(number, kind, *(f"{seconds:.1f}" for seconds in times[kind][-1]), flush=True)
    setting = {
        "backbone": options.backbone,
        "image_size": options.image_size,
        "images": options.images,
        "rounds": options.rounds,
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
        "machine": platform.machine(),
    }
    table = [{**setting, **row} for row in rows(times, options.images)]
    for row in table:
        print(*(f"{name} {value}" for name, value in row.items() if name not in setting), sep="  ")
    if options.out is not None:
        new = not options.out.exists()
        with options.out.open("a", newline="") as file:
            writer = csv.DictWriter(file, table[0])
            if new:
                writer.writeheader()
            writer.writerows(table)


if __name__ == "__main__":
    main()
