"""What `make demo` runs: three rows of the paper on the built-in data set, trained alike at 10 % known
labels.

python examples/demo.py [--out runs/demo] [--known 0.1] [--epochs N] [--seed 0]
"""

from __future__ import annotations

import argparse
import shutil
import time
from pathlib import Path

from sarb.report import comparison_page
from sarb.workflows.training import train_session

#: name here -> row of the paper, and what differs from it; all three take the batch-mean form of partial BCE
ROWS = {
    "pooled partial-BCE": ("partial-BCE", ["method.form=batch"]),
    "SSGRL": ("SSGRL", []),
    "SARB": ("Ours", []),
}


def main() -> None:
    """Train the rows one after the other, print the table and where the report is."""
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
    for name, (row, assignments) in ROWS.items():
        folder = arguments.out / row.lower().replace(" ", "-")
        if (folder / "config.json").is_file():  # an earlier demo, and nothing else, makes room
            shutil.rmtree(folder)
        print(f"\n{name}: {100 * arguments.known:g} % of the training labels known", flush=True)
        folder, report = train_session(
            source="demo",
            data_options=dict(pair.split("=", 1) for pair in arguments.option),
            row=row,
            assignments=assignments,
            known=arguments.known,
            seed=arguments.seed,
            out=folder,
            given={"epochs": arguments.epochs, "backbone": arguments.backbone},
        )
        rows.append({"name": name, "run_dir": folder, "metrics": report.metrics})
    page = comparison_page(rows, arguments.out / "report.html")
    print(f"\n{'method':20} {'mAP':>6} {'OF1':>6} {'CF1':>6}")
    for entry in rows:
        print(
            f"{entry['name']:20} "
            + " ".join(f"{entry['metrics'][key]:6.1f}" for key in ("mAP", "OF1", "CF1"))
        )
    print(f"\nreport: {page.resolve()}   ({time.perf_counter() - started:.0f} s)")


if __name__ == "__main__":
    main()
