"""Tune every row of the comparison with the same effort, on validation images and their known labels only.

    python results/coco256/tune.py COCO256_DIR OUT_DIR

For each row: three learning rates around the recipe's, one more outwards if the best is at the edge, then
half and twice the epochs at the best of them: five or six runs. All at 10 % known under a mask that the
study does not use (seed 100), on 75 % of the training images, judged by the mAP of the last epoch over the
known labels of the other 25 %. The test images are never scored. One line per run goes to ``tuning.csv``.
"""

from __future__ import annotations

import csv
import os
import sys
import time
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

os.environ |= dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")

TUNED = ("Ours", "KGGR", "SSGRL", "Curriculum labeling", "GCN-ML", "partial-BCE", "Pooled")
SEED, KNOWN, VALID = 100, 0.1, 0.25
COLUMNS = ("row", "lr", "epochs", "valid_mAP", "curve", "seconds")


def run(coco256: Path, folder: Path, row: str, factor: float, growth: float) -> dict[str, Any]:
    """One run; learning rate and epochs are multiples of the recipe's."""
    import torch

    import sarb
    from sarb.settings import resolve

    torch.set_num_threads(1)
    chosen = sarb.ROWS[row]
    options = {"network": chosen.network, "method": chosen.method, "words": coco256 / "glove.300d.txt"}
    options |= {"network_options": chosen.network_options, "method_options": chosen.method_options}
    recipe = resolve("small", **options)
    lr, epochs = recipe.lr * factor, max(1, round(recipe.epochs * growth))
    train = sarb.load(coco256 / "labels.csv", encoding="binary").train.hide(KNOWN, SEED)
    out, started = folder / f"{row}-{lr:g}-{epochs}".replace(" ", "-"), time.perf_counter()
    sarb.fit(
        train,
        recipe="small",
        valid=VALID,
        lr=lr,
        epochs=epochs,
        seed=SEED,
        out=out,
        resume=True,
        progress=False,
        **options,
    )
    with (out / "log.csv").open(encoding="utf-8", newline="") as file:
        curve = [round(float(line["valid_mAP"]), 2) for line in csv.DictReader(file)]
    seconds = round(time.perf_counter() - started, 1)
    return {
        "row": row,
        "lr": lr,
        "epochs": epochs,
        "valid_mAP": curve[-1],
        "curve": curve,
        "seconds": seconds,
        "factor": factor,
        "growth": growth,
    }


def main() -> None:
    """Run both stages, two runs at a time."""
    coco256, folder = Path(sys.argv[1]), Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    lines: list[dict[str, Any]] = []
    with ProcessPoolExecutor(2) as pool:

        def start(row: str, factor: float, growth: float) -> Future[dict[str, Any]]:
            return pool.submit(run, coco256, folder, row, factor, growth)

        first = {row: [start(row, factor, 1.0) for factor in (1 / 3, 1.0, 3.0)] for row in TUNED}
        for runs in first.values():
            factor = max((each.result() for each in runs), key=score)["factor"]
            if factor != 1:
                runs.append(start(runs[0].result()["row"], factor**2, 1.0))
        second = []
        for runs in first.values():
            found = [each.result() for each in runs]
            best = max(found, key=score)
            second += [start(best["row"], best["factor"], growth) for growth in (0.5, 2.0)]
            lines += found
            write(folder / "tuning.csv", lines)
        for each in as_completed(second):
            lines.append(each.result())
            write(folder / "tuning.csv", lines)


def score(line: dict[str, Any]) -> float:
    """What a run is judged by."""
    return float(line["valid_mAP"])


def write(path: Path, lines: list[dict[str, Any]]) -> None:
    """Write what is there so far, the best of each row first."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, extrasaction="ignore")
        writer.writeheader()
        writer.writerows(sorted(lines, key=lambda line: (TUNED.index(line["row"]), -line["valid_mAP"])))


if __name__ == "__main__":
    main()
