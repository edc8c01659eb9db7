"""Time and memory of `sarb data check` on a large table, without opening images.

    python benchmarks/data_check.py --rows 1000000 --columns 80 --out benchmarks/data_check.csv

Writes a random CSV (4 % present, 16 % absent, 80 % blank), checks it in a separate process, and appends one
row with seconds, peak resident memory and, as a lower bound, the seconds that the csv module takes to parse
the same file.
"""

import argparse
import csv
import json
import platform
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np


def write_table(path: Path, rows: int, columns: int, kind: str) -> None:
    """Write the table; ``bad`` has a wrong value in every hundredth row, ``words`` uses yes and no."""
    random = np.random.default_rng(0)
    codes = np.array(["yes", "no", ""] if kind == "words" else ["1", "0", ""])
    with path.open("w") as file:
        file.write("file_name,split," + ",".join(f"category {number}" for number in range(columns)) + "\n")
        for start in range(0, rows, 10_000):
            cells = codes[random.choice(3, (min(10_000, rows - start), columns), p=[0.04, 0.16, 0.8])]
            for number, row in enumerate(cells.tolist(), start):
                if kind == "bad" and number % 100 == 0:
                    row[number % columns] = "maybe"
                split = "test" if number % 5 == 0 else "train"
                file.write(f"images/{number:08d}.jpg,{split},{','.join(row)}\n")


def csv_only(path: Path) -> float:
    started = time.perf_counter()
    with path.open(newline="") as file:
        for _ in csv.reader(file):
            pass
    return time.perf_counter() - started


def check(path: Path, kind: str) -> tuple[float, float, int]:
    """Return seconds, peak memory in GB and the number of errors."""
    options = ["-o", "check_files=false", *([] if kind == "words" else ["-o", "encoding=binary"])]
    code = "from sarb.cli.app import main; main()"
    arguments = ["data", "check", str(path), *options, "--no-images", "--json"]
    started = time.perf_counter()
    command = [sys.executable, "-c", code, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    seconds = time.perf_counter() - started
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1e6
    return seconds, peak, json.loads(done.stdout)["counts"]["error"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--columns", type=int, default=80)
    parser.add_argument("--kind", choices=("good", "bad", "words"), default="good")
    parser.add_argument("--out", type=Path, default=None)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "large.csv"
        write_table(path, options.rows, options.columns, options.kind)
        floor = csv_only(path)
        seconds, peak, errors = check(path, options.kind)
        size = path.stat().st_size / 1e6
    row = {
        "rows": options.rows,
        "columns": options.columns,
        "kind": options.kind,
        "megabytes": round(size, 1),
        "seconds": round(seconds, 1),
        "peak_gigabytes": round(peak, 2),
        "csv_only_seconds": round(floor, 1),
        "ratio": round(seconds / floor, 1),
        "errors": errors,
    }
    print(platform.platform(), *(f"{name} {value}" for name, value in row.items()), sep="\n")
    if options.out is not None:
        new = not options.out.exists()
        with options.out.open("a", newline="") as file:
            writer = csv.DictWriter(file, row)
            if new:
                writer.writeheader()
            writer.writerow(row)


if __name__ == "__main__":
    main()
