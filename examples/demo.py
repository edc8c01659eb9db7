"""What `make demo` runs: the default and two rows of the paper on the built-in data set, at 10 % known labels.

python examples/demo.py [--out runs/demo] [--known 0.1] [--epochs N] [--seed 0]
"""

from __future__ import annotations

import argparse
import shutil
import time
from pathlib import Path
from typing import Any

import sarb
from sarb.files import write_csv
from sarb.workflows.training import train_session

#: name here -> row of the paper; None for what runs if nothing is chosen
ROWS = {"auto, the default": None, "SSGRL": "SSGRL", "SARB": "Ours"}


def main() -> None:
    """Train one after the other, print the table, what it means and where the report is."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("runs/demo"))
    parser.add_argument("--known", type=float, default=0.1)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=None)
    parser.add_argument("--backbone", default=None)
    parser.add_argument(
        "--option", "-o", action="append", default=[], help="option of the demo set, key=value"
    )
    arguments = parser.parse_args()
    started = time.perf_counter()
    rows = []
    for name, row in ROWS.items():
        folder = arguments.out / (row or "auto").lower()
        if (folder / "config.json").is_file():  # an earlier demo, and nothing else, makes room
            shutil.rmtree(folder)
        print(f"\n{name}: {100 * arguments.known:g} % of the training labels known", flush=True)
        folder, report = train_session(
            source="demo",
            data_options=dict(pair.split("=", 1) for pair in arguments.option),
            row=row,
            known=arguments.known,
            seed=arguments.seed,
            out=folder,
            given={"epochs": arguments.epochs, "backbone": arguments.backbone},
        )
        rows.append({"name": name, "run_dir": folder, "metrics": report.metrics})
    comparison = sarb.compare([entry["run_dir"] for entry in rows], names=list(ROWS))
    page = comparison.to_html(arguments.out / "report.html")
    table = [
        {"name": entry["name"], **{key: f"{entry['metrics'][key]:.1f}" for key in ("mAP", "OF1", "CF1")}}
        for entry in rows
    ]
    write_csv(arguments.out / "demo.csv", list(table[0]), table)
    print(f"\n{'test images':20} {'mAP':>6} {'OF1':>6} {'CF1':>6}")
    for line in table:
        print(f"{line['name']:20} {line['mAP']:>6} {line['OF1']:>6} {line['CF1']:>6}")
    for found in comparison.entries[1:]:
        print(f"{found.name} against {comparison.entries[0].name}: {found.verdict}")
    print(f"\n{verdict(*(entry['metrics'] for entry in rows))}")
    print(f"\nreport: {page.resolve()}   ({time.perf_counter() - started:.0f} s)")


def verdict(auto: dict[str, Any], ssgrl: dict[str, Any], sarb: dict[str, Any]) -> str:
    """Say in one sentence each what blending and the ladder add to mAP here."""
    blending = sarb["mAP"] - ssgrl["mAP"]
    ladder = auto["mAP"] - max(sarb["mAP"], ssgrl["mAP"])
    first = f"Blending (SARB) adds {blending:+.1f} mAP to SSGRL here"
    if blending <= 0:
        first = f"Blending (SARB) adds nothing to SSGRL here ({blending:+.1f} mAP)"
    second = f"the ladder of the default adds {ladder:+.1f} mAP to the better of the two."
    if ladder <= 0:
        second = f"the ladder of the default is {-ladder:.1f} mAP below the better of the two."
    return f"{first}; {second} One seed, one small set: see docs/results.md for more."


if __name__ == "__main__":
    main()
