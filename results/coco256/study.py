"""What the two studies of labels share: settings, a training run, rows of a CSV."""

from __future__ import annotations

import argparse
import csv
import os
from pathlib import Path
from typing import Any

os.environ |= dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")

#: sizes that show in seconds that everything runs; the numbers mean nothing
QUICK = {"backbone": "tiny", "image_size": 64, "epochs": 1}


def arguments(description: str, known: float) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path, help="folder with labels.csv, images/ and, if any, glove.300d.txt")
    parser.add_argument("out", type=Path, help="folder for the runs")
    parser.add_argument("--csv", type=Path, required=True, help="table to which finished rows are added")
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--known", type=float, default=known)
    parser.add_argument("--folds", type=int, default=3)
    parser.add_argument("--row", default="Ours")
    parser.add_argument("--quick", action="store_true", help="a tiny network, one epoch")
    parser.add_argument(
        "--budgets", default="500,1000,2000", help="labels asked so far after each round (suggest)"
    )
    given = parser.parse_args()
    given.seeds = [int(seed) for seed in given.seeds.split(",")]
    given.budgets = [int(budget) for budget in given.budgets.split(",")]
    return given


def options(given: argparse.Namespace, seed: int) -> dict[str, Any]:
    """Settings of every training."""
    import torch

    import sarb

    torch.set_num_threads(1)
    row, words = sarb.ROWS[given.row], given.data / "glove.300d.txt"
    return {
        "recipe": "small",
        "network": row.network,
        "method": row.method,
        "network_options": row.network_options,
        "method_options": row.method_options,
        "words": words if words.is_file() else None,
        "seed": seed,
        "cache": True,
        **(QUICK if given.quick else {}),
    }


def rows(path: Path) -> list[dict[str, str]]:
    """What the table holds already."""
    if not path.is_file():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def add(path: Path, columns: tuple[str, ...], row: dict[str, Any]) -> None:
    """Add a row to the table, and print it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    new = not path.is_file()
    shown = {key: round(value, 5) if isinstance(value, float) else value for key, value in row.items()}
    with path.open("a", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, columns, restval="")
        if new:
            writer.writeheader()
        writer.writerow(shown)
    print("  ".join(f"{key} {value}" for key, value in shown.items()), flush=True)
