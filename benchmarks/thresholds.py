"""What the thresholds of ``calibrate`` do to OF1 on test photos with few held-out labels.

    python -m benchmarks.thresholds --scenes5 DIR --out results/calibration/thresholds.csv

Cells: demo and scenes5 with 5, 10 and 30 % of the labels known, and 150 photos of each with 20 %, five masks each.
Every cell is measured twice: with random known labels, and after 80 more answers to the questions of ``suggest``, which
are not random. The default method is fitted, and its out-of-fold scores are calibrated as ``sarb calibrate`` does.

Each row holds OF1 in percent on the test photos: ``network`` by the network's probabilities at 0.5, ``half`` by the
calibrated ones at 0.5, ``best_f1`` at the threshold of the best F1 alone (the rule before), ``chosen`` at those that
``calibrate`` chose. ``held_half`` and ``held_chosen`` are what it says about the held-out labels, cross-fitted.
``--fits DIR`` keeps the scores, so that another rule is measured without fits.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import sarb
from benchmarks.fits import commit
from benchmarks.source import Cell, Source, add_folders, add_options, chosen_masks, fit_labels, sources
from sarb.files import write_csv
from sarb.labelling.scale import on_scale
from sarb.labelling.thresholds import best_f1
from sarb.labels import LabelMatrix
from sarb.metrics import evaluate
from sarb.scores import Scores

MASKS = {"test": "61,62,63,64,65", "develop": "161,162,163"}
CELLS = [*((0, share) for share in (0.05, 0.1, 0.3)), (150, 0.2)]
#: answers to the questions of ``suggest``
ANSWERS = 80
RULES = ("network", "half", "best_f1", "chosen")
COLUMNS = (
    *("cell", "mask", "labels", "known", "present", *RULES),
    *("held_half", "held_chosen", "lowest", "highest", "commit", "command"),
)


def fitted(source: Source, cell: Cell, mask: int, file: Path, before: Path | None) -> Path:
    """Fit and keep the scores; after 80 answers if ``before`` has the scores of a fit without them."""
    if file.exists():
        return file
    problem = source.problem(cell, mask)
    labels = problem.labels
    if before is not None:
        labels = answered(source, cell, problem.rows, labels, np.load(before))
    ladder = fit_labels(source, problem.rows, labels)
    train = source.of(problem.rows)
    np.savez(
        file,
        held=ladder.out_of_fold,
        train=ladder(train.vectors, train.concepts),
        test=ladder(source.scored.vectors, source.scored.concepts),
        labels=labels.values,
        answers=source.answers(cell).values,
    )
    return file


def answered(source: Source, cell: Cell, rows: Any, labels: LabelMatrix, stored: Any) -> LabelMatrix:
    """The labels with true answers to the questions of ``suggest``."""
    train, held = (Scores(stored[name], labels.categories, labels.paths) for name in ("train", "held"))
    calibration = sarb.calibrate(held, labels)
    asked = sarb.suggest(train, labels, ANSWERS, calibration=calibration, out_of_fold=held)
    truth = source.data.train.labels.values[rows][:, source.columns(cell)]
    values = labels.values.copy()
    values[asked.row, asked.column] = truth[asked.row, asked.column]
    return LabelMatrix(values, labels.categories, labels.paths)


def measured(file: Path) -> dict[str, Any]:
    """One row of the CSV, from the scores of a fit."""
    stored = np.load(file)
    names = [f"c{number}" for number in range(stored["labels"].shape[1])]
    labels = LabelMatrix(stored["labels"], names)
    held, train = (Scores(stored[name], names) for name in ("held", "train"))
    found = sarb.calibrate(on_scale(held, train, labels), labels)
    test = Scores(stored["test"], names)
    calibrated = found(test)
    half = np.full(len(names), 0.5)
    rules = {
        "network": (test.probabilities, half),
        "half": (calibrated, half),
        "best_f1": (calibrated, best_f1(found.counts)),
        "chosen": (calibrated, found.thresholds),
    }
    decided = found.figures.get("OF1", {})
    return {
        "known": int(labels.known.sum()),
        "present": int(labels.positives.sum()),
        **{name: f"{of1(*rule, stored['answers']):.2f}" for name, rule in rules.items()},
        "held_half": f"{decided.get('half', float('nan')):.2f}",
        "held_chosen": f"{decided.get('chosen', float('nan')):.2f}",
        "lowest": f"{found.thresholds.min():.3f}",
        "highest": f"{found.thresholds.max():.3f}",
    }


def of1(probabilities: Any, thresholds: Any, truth: Any) -> float:
    """OF1 in percent; ``probabilities`` and ``truth`` (N, C)."""
    return float(evaluate(probabilities, truth, thresholds)["OF1"])


def rows(options: argparse.Namespace, folder: Path) -> Iterator[dict[str, Any]]:
    """All cells, masks and sorts of labels."""
    for name, load in sources(options).items():
        source = cache(load)
        for photos, share in CELLS:
            cell = Cell(name, 0, photos, share)
            for mask in chosen_masks(options, MASKS):
                before = None
                for labels in ("random", f"random and {ANSWERS} asked"):
                    file = folder / f"{cell.name} {mask} {labels}.npz".replace("/", "-").replace(" ", "_")
                    done = file if file.exists() else fitted(source(), cell, mask, file, before)
                    row = {"cell": cell.name, "mask": mask, "labels": labels, **measured(done)}
                    print(*(row[column] for column in COLUMNS[:-2]), flush=True)
                    before = done
                    yield row


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure all cells and write the CSV."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    add_folders(parser)
    add_options(parser, MASKS)
    parser.add_argument("--fits", type=Path, help="folder of the scores (default: beside the CSV)")
    options = parser.parse_args(given)
    folder = options.fits or options.out.with_suffix(".fits")
    folder.mkdir(parents=True, exist_ok=True)
    about = {"commit": commit(), "command": "python -m benchmarks.thresholds " + shlex.join(given)}
    found = [{**row, **about} for row in rows(options, folder)]
    write_csv(options.out, COLUMNS, found, line_end="\n")
    print("mean", *(f"{name} {np.mean([float(row[name]) for row in found]):.2f}" for name in RULES))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
