"""What do a larger image, a larger backbone and a second resolution give the default, and what do they cost?

    python -m benchmarks.sizes --coco256 DIR --scenes5 DIR --out results/auto/sizes-develop.csv
    python -m benchmarks.sizes … --features efficientnet_lite0/224,efficientnet_lite0/320/1.0+0.7

Each kind of features is BACKBONE/PIXELS or BACKBONE/PIXELS/SCALES. The ladder of ``auto`` (without the network on
top) is fitted on four fifths of the training photos and scored on the other fifth; the test photos are not
opened. ``cpu_ms`` is the processor time per photo of reading, decoding and computing its features, in PyTorch
and in OpenVINO, on one thread: unlike seconds it hardly depends on what else the machine does.
"""

from __future__ import annotations

import argparse
import os
import shlex
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import numpy as np
import torch

from benchmarks import source as sources
from benchmarks.fits import commit, read_csv
from sarb.auto.ladder import RUNGS
from sarb.batches import engines
from sarb.batches.features import cached_features
from sarb.files import write_csv
from sarb.metrics import evaluate

FEATURES = (
    *("efficientnet_lite0/224", "efficientnet_lite0/320", "efficientnet_lite0/320/1.0+0.7"),
    *("efficientnet_lite1/224", "efficientnet_lite2/224", "efficientnet_lite1/320", "efficientnet_lite2/320"),
)
CELLS = (sources.Cell("scenes5", 0, 0, 0.3), sources.Cell("coco256", 80, 0, 0.1))
CLAIMS = ("strict", "names")
COLUMNS = (
    *("features", "cell", "mask", "claims", "mAP", "note", "width", "cpu_ms_torch", "cpu_ms_openvino"),
    *("commit", "command"),
)
#: photos whose features are timed
TIMED = 48
ROUNDS = 3


def how(features: str) -> sources.How:
    """Read BACKBONE/PIXELS or BACKBONE/PIXELS/SCALES."""
    backbone, pixels, *scales = features.split("/")
    given = [float(scale) for scale in scales[0].split("+")] if scales else None
    return sources.How(True, 0, backbone, int(pixels), given)


def processor_time(source: sources.Source, kinds: Sequence[str]) -> dict[str, str]:
    """Milliseconds per photo on one thread by each engine, without what it needs once; the least of three."""
    model = source.fitting.model
    times: dict[str, list[float]] = {kind: [] for kind in kinds}
    chosen: dict[str, dict[Any, Any]] = {kind: {} for kind in kinds}
    for number in range(ROUNDS + 1):  # the first round exports and compiles
        photos = source.data.train.take(np.arange(TIMED) + number * TIMED)
        for kind in kinds:
            engines._chosen.clear()
            engines._chosen.update(chosen[kind])
            with TemporaryDirectory() as folder, patch.dict(os.environ, _environment(kind, folder)):
                before = time.process_time()
                cached_features(model.network.backbone, photos, model.transform)
                times[kind].append(1000 * (time.process_time() - before) / TIMED)
            chosen[kind] = dict(engines._chosen)
    return {f"cpu_ms_{kind}": f"{min(times[kind][1:]):.1f}" for kind in kinds}


def _environment(kind: str, folder: str) -> dict[str, str]:
    return {engines.VARIABLE: kind, "SARB_CACHE": folder}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--coco256", type=Path, required=True)
    parser.add_argument("--scenes5", type=Path, required=True)
    parser.add_argument("--features", default=",".join(FEATURES))
    parser.add_argument("--cells", default=",".join(cell.name for cell in CELLS))
    parser.add_argument("--masks", default="1,2,3")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    torch.set_num_threads(1)
    command = "python -m benchmarks.sizes " + shlex.join(sys.argv[1:])
    for cell in (cell for cell in CELLS if cell.name in options.cells.split(",")):
        for features in options.features.split(","):
            read = ["file_column=Filenames"] if cell.source == "scenes5" else []
            source = sources.Source(sources.load(getattr(options, cell.source), read), how(features))
            shared = {
                "features": features,
                "cell": cell.name,
                "width": source.fitting.model.network.backbone.width,
                **processor_time(source, ("torch", "openvino")),
                "commit": commit(),
                "command": command,
            }
            for mask in map(int, options.masks.split(",")):
                for claims in CLAIMS:
                    fitted = sources.fit_rungs(source, cell, mask, claims, RUNGS)
                    quality = evaluate(fitted.scores, source.answers(cell))["mAP"]
                    row = {
                        **shared,
                        "mask": mask,
                        "claims": claims,
                        "mAP": f"{quality:.3f}",
                        "note": fitted.note,
                    }
                    write_csv(options.out, COLUMNS, [*read_csv(options.out), row], line_end="\n")
                    print(features, cell.name, mask, claims, f"{quality:.2f}", fitted.note, flush=True)


if __name__ == "__main__":
    main()
