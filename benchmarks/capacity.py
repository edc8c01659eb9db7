"""A model of time and memory in N, C, image size and processes, checked on points it was not fitted to.

    python -m benchmarks.capacity --out results/capacity              measure what is missing, fit, check, examples
    python -m benchmarks.capacity --out results/capacity --again      another round over all points
    python -m benchmarks.capacity --out results/capacity --refit      the same from the points that are there

Every point runs in a process of its own, with one thread, and two runs with other ``--only`` may share a folder. A
round measures fitted and held-out points alike, and the best time of all rounds counts: other processes share the
machine, and can only make a point slower.

Writes ``points.csv``, ``model.csv`` (the coefficients), ``check.csv`` (prediction against measurement where the model
was not fitted) and ``examples.csv``. docs/scaling.md explains them.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from benchmarks.capacity_examples import examples
from benchmarks.capacity_model import Sizes, check, fit, predictor, sizes_of
from benchmarks.capacity_parts import PARTS
from benchmarks.fits import commit, read_csv, write_table
from sarb.files import write_csv

#: what a point may have
QUANTITIES = ("seconds", "memory", "flop", "count", "bytes")
POINTS = ("part", *Sizes._fields, "held", *QUANTITIES, "slowest", "rounds", "load", "commit", "command")
KEY = ("part", *Sizes._fields)
MODEL = ("part", "quantity", "term", "coefficient")
CHECK = ("part", *Sizes._fields, "quantity", "measured", "predicted", "error")
#: largest error that acceptance 5 of issue 16 allows
ALLOWED = 0.2
Row = dict[str, str]


def alone(part: str, at: Sizes) -> dict[str, float]:
    """Measure one point in a process of its own.

    It is a fork of this one, which has loaded torch but used nothing of it: to start Python takes longer than most
    points.
    """
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    child = context.Process(target=_point, args=(part, at, sender))
    child.start()
    sender.close()  # so that a child that dies is the end of the pipe, not a wait
    try:
        found: dict[str, float] = receiver.recv()
    finally:
        child.join()
    return found


def _point(part: str, at: Sizes, sender: Connection) -> None:
    sender.send(dict(PARTS[part].measure(at)))


def one_thread() -> None:
    """Load torch and bind it and the libraries of NumPy to one thread; forks inherit that."""
    import torch
    from threadpoolctl import threadpool_limits

    torch.set_num_threads(1)
    threadpool_limits(1)


def row_of(name: str, held: bool, at: Sizes, found: Mapping[str, float], command: str) -> Row:
    """The row of a point that was measured once."""
    return {
        "part": name,
        **{key: str(value) for key, value in at._asdict().items()},
        "held": "yes" if held else "no",
        **{key: f"{found[key]:.6g}" if key in found else "" for key in QUANTITIES},
        "slowest": f"{found['seconds']:.6g}" if "seconds" in found else "",
        "rounds": "1",
        "load": f"{os.getloadavg()[0]:.1f}",
        "commit": commit(),
        "command": command,
    }


def merged(old: Row, new: Row) -> Row:
    """Two rounds of a point: the one with the better time, the slower time and the number of rounds beside it."""
    best = min(old, new, key=lambda row: float(row["seconds"] or 0))
    slowest = max((old["slowest"], new["slowest"]), key=lambda text: float(text or 0))
    return {**best, "slowest": slowest, "rounds": str(int(old["rounds"]) + int(new["rounds"]))}


def measure(path: Path, only: Sequence[str], again: bool, command: str) -> list[Row]:
    """Measure every point that the CSV lacks, or all for another round; write the CSV after each."""
    rows = {(row["part"], sizes_of(row)): row for row in read_csv(path)}
    for name, part in PARTS.items():
        if only and name not in only:
            continue
        for held, at in [*((False, at) for at in part.fitted), *((True, at) for at in part.held)]:
            old = rows.get((name, at))
            if old is not None and not (again and old["seconds"]):  # what is counted needs no second round
                continue
            new = row_of(name, held, at, alone(name, at), command)
            print(
                name,
                *at,
                {key: new[key] for key in QUANTITIES if new[key]},
                f"load {new['load']}",
                flush=True,
            )
            rows[name, at] = new if old is None else merged(old, new)
            write_table(path, POINTS, KEY, [rows[name, at]])  # another process may measure other parts
    return read_csv(path)


def summary(checked: Sequence[Mapping[str, str]]) -> str:
    """The largest error of each part, and how many points are within the limit."""
    lines = []
    for part, quantity in dict.fromkeys((row["part"], row["quantity"]) for row in checked):
        errors = [
            float(row["error"]) for row in checked if (row["part"], row["quantity"]) == (part, quantity)
        ]
        lines.append(f"{part:<20}{quantity:<10}{max(errors, key=abs):+8.1%} at worst, {len(errors)} points")
    inside = sum(abs(float(row["error"])) <= ALLOWED for row in checked)
    return "\n".join([*lines, f"{inside} of {len(checked)} held-out predictions are within {ALLOWED:.0%}"])


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--out", type=Path, default=Path("results/capacity"), help="folder of the CSV files")
    parser.add_argument("--only", nargs="*", default=[], choices=list(PARTS), help="measure only these parts")
    parser.add_argument("--again", action="store_true", help="another round; the best time counts")
    parser.add_argument("--refit", action="store_true", help="measure nothing")
    return parser


def _write(folder: Path, points: Sequence[Row]) -> list[Row]:
    """Fit, check and work out the examples; return the rows of the check."""
    model = fit(PARTS, points)
    coefficients: list[dict[str, Any]] = [
        {"part": part, "quantity": quantity, "term": term, "coefficient": f"{value:.6g}"}
        for (part, quantity), terms in model.items()
        for term, value in terms.items()
    ]
    checked = check(PARTS, model, points)
    write_csv(folder / "model.csv", MODEL, coefficients, line_end="\n")
    write_csv(folder / "check.csv", CHECK, checked, line_end="\n")
    shown = examples(predictor(PARTS, model))
    write_csv(folder / "examples.csv", tuple(shown[0]), shown, line_end="\n")
    return checked


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, fit and check; return 1 if a held-out point is not within the limit."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    options = _parser().parse_args(given)
    options.out.mkdir(parents=True, exist_ok=True)
    file = options.out / "points.csv"
    command = "python -m benchmarks.capacity " + shlex.join(given)
    one_thread()
    points = read_csv(file) if options.refit else measure(file, options.only, options.again, command)
    checked = _write(options.out, points)
    print(summary(checked))
    return int(any(abs(float(row["error"])) > ALLOWED for row in checked))


if __name__ == "__main__":
    raise SystemExit(main())
