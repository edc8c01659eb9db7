"""How long does the default take once the features are there? coco256 with 10 % of the labels known.

    python -m benchmarks.times --data DIR --out results/auto/times.csv

The fit: ``sarb.fit`` on the training photos, without the time that it spends on features, which a first fit puts
into the cache; what is left is the rungs, and building and writing the model. Then ``sarb calibrate RUN`` as a
command, with starting Python. Both run once with each mask; the median counts. No photo of the test is used.
"""

from __future__ import annotations

import argparse
import os
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median

import sarb
from benchmarks.fits import commit, read_csv
from benchmarks.source import load, located
from sarb.data.dataset import Dataset
from sarb.files import write_csv

COLUMNS = ("step", "mask", "seconds", "photos", "categories", "known", "load", "commit", "command")
#: seconds that acceptance 4 of issue 13 allows
LIMITS = {"fit": 60.0, "calibrate": 10.0}


def fit(whole: Dataset, mask: int, folder: Path, options: argparse.Namespace) -> dict[str, float]:
    """Seconds of the fit after features, and of each rung, by name."""
    known = options.known / 100
    source, reading = located(options.data, options.option)
    started = time.perf_counter()
    sarb.fit(
        whole.hide(known, mask),
        method="auto",
        backbone=options.backbone,
        image_size=options.image_size,
        seed=options.seed,
        out=folder,
        progress=False,
        # what calibrate needs to find the data
        record={"source": source, "options": reading, "known": known, "mask_seed": mask},
    )
    total = time.perf_counter() - started
    rungs = {row["rung"]: float(row["seconds"]) for row in read_csv(folder / "log.csv")}
    features = rungs.pop("features")
    return {"fit": total - features, **{f"rung {name}": seconds for name, seconds in rungs.items()}}


def calibrate(folder: Path) -> dict[str, float]:
    """Seconds of the command ``sarb calibrate``."""
    started = time.perf_counter()
    subprocess.run([sys.executable, "-m", "sarb.cli", "calibrate", str(folder), "--quiet"], check=True)
    return {"calibrate": time.perf_counter() - started}


def measure(whole: Dataset, masks: Sequence[int], options: argparse.Namespace) -> dict[int, dict[str, float]]:
    """Mask -> seconds of every step; a first fit is not counted, it computes the features."""
    found = {}
    with tempfile.TemporaryDirectory() as temporary:
        fit(whole, masks[0], Path(temporary) / "first", options)
        for mask in masks:
            folder = Path(temporary) / str(mask)
            found[mask] = {**fit(whole, mask, folder, options), **calibrate(folder)}
    return found


def summary(found: Mapping[int, Mapping[str, float]]) -> str:
    """The median of each step over the masks that have it, and whether it is within its limit."""
    lines = []
    for step in dict.fromkeys(step for each in found.values() for step in each):
        seconds = median(each[step] for each in found.values() if step in each)
        limit = LIMITS.get(step)
        verdict = "" if limit is None else f"  {'under' if seconds < limit else 'OVER'} {limit:g} s"
        lines.append(f"{step:<20}{seconds:8.2f} s{verdict}")
    return "\n".join(lines)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--data", required=True, metavar="DIR", help="folder with labels.csv, or demo")
    parser.add_argument("--out", type=Path, required=True, help="CSV with one row per step and round")
    parser.add_argument("--known", type=float, default=10, help="percent of the labels known")
    parser.add_argument("--masks", default="21,22,23", help="seeds of the hidden labels, one round each")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--backbone")
    parser.add_argument("--image-size", type=int)
    parser.add_argument("-o", "--option", action="append", default=[], metavar="KEY=VALUE")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, write the CSV, print the medians."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    options = _parser().parse_args(given)
    masks = [int(mask) for mask in options.masks.split(",")]
    train = load(options.data, options.option).train
    about = {
        "photos": len(train),
        "categories": len(train.categories),
        "known": f"{options.known:g}",
        "load": f"{os.getloadavg()[0]:.1f}",
        "commit": commit(),
        "command": "python -m benchmarks.times " + shlex.join(given),
    }
    found = measure(train, masks, options)
    rows = [
        {"step": step, "mask": mask, "seconds": f"{seconds:.2f}", **about}
        for mask, each in found.items()
        for step, seconds in each.items()
    ]
    write_csv(options.out, COLUMNS, rows, line_end="\n")
    print(summary(found))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
