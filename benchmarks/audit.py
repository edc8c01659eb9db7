"""What does ``sarb data audit`` find? Plant faults in real photos, train the default, audit, and count.

    python -m benchmarks.audit --coco256 DIR --work /tmp/audit --develop --out results/audit/develop.csv
    python -m benchmarks.audit --coco256 DIR --work /tmp/audit --out results/audit/audit.csv
    python -m benchmarks.audit --scenes5 DIR --work /tmp/audit --out results/audit/scenes5.csv

With ``--develop`` half of the photos and seed 1, on which limits were chosen; without it the other half and
seed 2, to be run once. scenes5 is a check on other photos, whole, with 50 faults of each kind. Photos and pairs
that are faulty by nature were looked at and are listed in ``natural.csv`` beside the results: they are neither
planted nor false. ``found.csv`` of the run lists what is left: look at it and add it to ``natural.csv``, if it
is one. A finding that is not listed there counts as false.
"""

from __future__ import annotations

import argparse
import csv
import shlex
import sys
import time
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import sarb
from benchmarks.faults import COPIES, IN_PLACE, Fault, plant
from benchmarks.fits import markdown
from sarb.files import write_rows
from sarb.health.findings import Audit, Finding
from sarb.workflows.audit import audit
from sarb.workflows.training import train_session

#: name -> half of the photos, seed
RUNS = {"tune": (0, 1), "test": (1, 2), "scenes5": (None, 3)}
NEAR = COPIES[1:]
#: so many of the most doubtful labels are looked at
TOP = (100, 200, 400)

Item = frozenset[str]


def item(finding: Finding) -> Item:
    """What identifies a finding: the image or images, or the image and its label."""
    return frozenset({finding.file_name, finding.other_file or finding.label} - {""})


def planted_item(fault: Fault) -> Item:
    """The same of a planted fault."""
    return frozenset({fault.file_name, fault.original or fault.label} - {""})


def line(
    kind: str,
    planted: Collection[Item],
    found: Collection[Item],
    natural: Collection[Item],
    known: Collection[Item],
) -> dict[str, Any]:
    """One row of the table.

    Args:
        kind: of fault.
        planted: what was planted.
        found: what the audit lists as this kind.
        natural: faulty by nature.
        known: other planted faults that the audit may rightly list as this kind.
    """
    hits = len({*planted} & {*found})
    right = len({*found} & {*planted, *known})
    genuine = len({*found} & {*natural})
    false = len({*found}) - right - genuine
    return {
        "kind": kind,
        "planted": len(planted),
        "found": hits,
        "recall": round(100 * hits / len(planted), 1),
        "listed": len({*found}),
        "natural": genuine,
        "false": false,
        "precision": round(100 * right / max(1, right + false), 1),
    }


def table(found: Audit, faults: Sequence[Fault], natural: dict[str, set[Item]]) -> list[dict[str, Any]]:
    """Recall and precision of each kind of fault."""
    planted = {
        kind: [planted_item(fault) for fault in faults if fault.kind == kind]
        for kind in (*COPIES, *IN_PLACE, "label")
    }
    listed = {kind: [item(finding) for finding in found.of(kind)] for kind in found.counts()}
    near = [one for kind in NEAR for one in planted[kind]]
    pairs = natural.get("near_duplicate", set())
    exact = natural.get("exact_duplicate", set())
    rows = [line("exact", planted["exact"], listed["exact_duplicate"], exact, [])]
    rows += [line(kind, planted[kind], listed["near_duplicate"], pairs, near) for kind in NEAR]
    rows.append(line("near, all four", near, listed["near_duplicate"], pairs, []))
    rows += [line(kind, planted[kind], listed[kind], natural.get(kind, set()), []) for kind in IN_PLACE]
    rows += [
        line(
            f"label, first {count}",
            planted["label"],
            listed["label"][:count],
            natural.get("label", set()),
            [],
        )
        for count in sorted({*(count for count in TOP if count < len(listed["label"])), len(listed["label"])})
    ]
    return rows


def unexplained(found: Audit, faults: Sequence[Fault], natural: dict[str, set[Item]]) -> list[dict[str, Any]]:
    """Findings that are neither planted nor known to be natural; labels are too many to look at."""
    planted = {planted_item(fault) for fault in faults}
    return [
        finding._asdict()
        for finding in found.findings
        if finding.kind not in ("label", "contained_category", "same_category", "similar_name")
        and item(finding) not in planted | natural.get(finding.kind, set())
    ]


def read_natural(path: Path) -> dict[str, set[Item]]:
    """Kind -> findings that were looked at and are right; the file may also list findings that are wrong."""
    natural: dict[str, set[Item]] = {}
    if path.is_file():
        with path.open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                if row["verdict"] == "right":
                    other = row["other_file"] or row["label"]
                    natural.setdefault(row["kind"], set()).add(frozenset({row["file_name"], other} - {""}))
    return natural


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Read the options."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--coco256", type=Path, help="folder of coco256")
    parser.add_argument("--scenes5", type=Path, help="folder of scenes5, instead of coco256")
    parser.add_argument("--develop", action="store_true", help="the half on which limits may be chosen")
    parser.add_argument("--faults", type=int, help="faults of each kind (default 200, scenes5 50)")
    parser.add_argument("--work", type=Path, required=True, help="folder for planted photos, runs and audits")
    parser.add_argument("--out", type=Path, required=True, help="CSV to write")
    given = parser.parse_args(arguments)
    if (given.coco256 is None) == (given.scenes5 is None):
        parser.error("give one of --coco256 and --scenes5")
    return given


def main(arguments: Sequence[str]) -> int:
    """Plant, train, audit, count; what is in the work folder already is used again."""
    given = parse(arguments)
    name = "scenes5" if given.scenes5 else "tune" if given.develop else "test"
    half, seed = RUNS[name]
    folder = given.scenes5 or given.coco256
    column = "Filenames" if given.scenes5 else "file_name"
    count = given.faults or (50 if given.scenes5 else 200)
    photos = given.work / name
    root = folder / "images" if given.scenes5 else folder
    faults = planted_faults(
        folder / "labels.csv", root, photos, count=count, seed=seed, half=half, file_column=column
    )
    run = given.work / "runs" / name
    options = {"encoding": "binary", "file_column": column}
    data = sarb.load(photos / "labels.csv", **options)
    if not run.exists():
        train_session(
            source=str(photos / "labels.csv"), data_options=options, known=1.0, out=run, given={}, page=False
        )
    started = time.perf_counter()
    found = audit(run, data, out=given.work / f"out-{name}", overwrite=True, progress=True)
    seconds = time.perf_counter() - started
    natural = read_natural(given.out.parent / "natural.csv")
    command = shlex.join(["python", "-m", "benchmarks.audit", *arguments])
    shared = {"data": folder.name, "run": name, "images": len(found.images), "seed": seed}
    rows = [{**shared, **row} for row in table(found, faults, natural)]
    write_rows(given.out, [{**row, "audit_seconds": round(seconds), "command": command} for row in rows])
    write_rows(given.work / f"out-{name}" / "found.csv", unexplained(found, faults, natural))
    print(markdown([*rows[0]], [[str(value) for value in row.values()] for row in rows]))
    return 0


def planted_faults(table: Path, root: Path, out: Path, **options: Any) -> list[Fault]:
    """Plant, or read what was planted before."""
    if not (out / "truth.csv").is_file():
        return plant(table, root, out, **options)
    with (out / "truth.csv").open(encoding="utf-8", newline="") as file:
        return [Fault(**row) for row in csv.DictReader(file)]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
