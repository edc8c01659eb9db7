"""How much of an OF1 is the threshold? OF1 at 0.5, as the paper counts, and at the best single threshold.

    python results/coco256/best_threshold.py GRID_DIR --csv results/coco256/best_threshold.csv

The best threshold is chosen on the test labels themselves. It is no result of a method, only the most that
any one could give: two methods that differ at 0.5 and not there differ in how high their probabilities are,
not in their order.
"""

from __future__ import annotations

import argparse
import csv
from pathlib import Path

import numpy as np

from sarb import LabelMatrix, Scores
from sarb.files import read_json
from sarb.metrics import evaluate


def best(scores: Scores, labels: LabelMatrix) -> tuple[float, float]:
    """Highest OF1 in percent over all thresholds, and its probability; OF1 = 2 TP / (predicted + present)."""
    x, present = scores.probabilities[labels.known], labels.values[labels.known] > 0
    order = np.argsort(-x, kind="stable")
    found = 2 * np.cumsum(present[order]) / (np.arange(1, len(order) + 1) + present.sum())
    return 100 * float(found.max()), float(x[order][found.argmax()])


def main() -> None:
    """Read every finished cell."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("grid", type=Path)
    parser.add_argument("--csv", type=Path, required=True)
    given = parser.parse_args()
    with given.csv.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["row", "known", "seed", "OF1", "best_OF1", "best_threshold"])
        for cell in sorted((given.grid / "runs").glob("*/cell.json")):
            about = read_json(cell)
            scores = Scores.load(cell.with_name("scores.npz"))
            labels = LabelMatrix.load(cell.with_name("test_labels.npz"))
            top, threshold = best(scores, labels)
            own = evaluate(scores.logits, labels)["OF1"]
            writer.writerow(
                [about["row"], about["known"], about["seed"], f"{own:.2f}", f"{top:.2f}", f"{threshold:.3f}"]
            )


if __name__ == "__main__":
    main()
