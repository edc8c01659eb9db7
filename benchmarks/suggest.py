"""Are the questions of ``suggest`` worth more than random ones? One round of answers, cell by cell.

    python -m benchmarks.suggest --coco256 DIR --out results/suggest/suggest.csv
    python -m benchmarks.suggest … --develop --cells 'scenes5/*' --models auto --out x.csv

Cells: coco256 with all its 80 categories and with the five most frequent ones, and demo, with 5, 10 and 30 % of the
labels known, and with ``auto`` also 50 % (scenes5 only if its folder is given). Each cell starts with a fit on the
known labels (``start``). Then the truth answers as many questions as 1 % of the entries of the training photos, at
most 2,000: once those of ``suggest``, once random ones. Both sets are fitted from scratch. The models are the
default (``auto``, 320 px) and the row ``Ours`` of the paper (recipe ``small``, 224 px). Probabilities are calibrated
on out-of-fold scores of the known labels, as ``sarb calibrate`` does; for ``Ours`` on one of three parts, to save two
trainings.

Each fit is one row of the CSV, written when it ends; what is there already is not run again. Scores are kept
beside it in ``NAME.scores/``. At the end each cell gets a paired bootstrap over photos of (suggest − random), its
masks pooled, in ``NAME-cells.csv``, beside the gain that ``suggest`` predicted, and ``NAME.png`` shows them.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatch
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import sarb
from benchmarks.fits import Fit, Key, Results, read_csv, run_cell, write_table
from benchmarks.source import (
    Cell,
    Fitted,
    Problem,
    Source,
    add_folders,
    add_options,
    chosen_masks,
    fit_labels,
    sources,
)
from benchmarks.suggest_tables import CELL_COLUMNS, CELL_KEY, STRATEGIES, draw, judge_cell, summary
from sarb.data.dataset import Dataset
from sarb.labelling.folds import fold_numbers, without
from sarb.labelling.outlook import Outlook
from sarb.labelling.scale import on_scale
from sarb.labels import LabelMatrix
from sarb.scores import Scores

SHARES = (0.05, 0.1, 0.3)
#: nothing is chosen on the masks of the test
MASKS = {"test": "31,32,33", "develop": "101,102,103"}
#: answers of one round: this share of the entries, and at most so many
ROUND = (0.01, 2000)

Floats = NDArray[np.floating]
Indices = NDArray[np.int64]


@dataclass(frozen=True)
class Learned:
    """Logits after one fit.

    Attributes:
        scored: (M, C) of the photos that are scored.
        train: (N, C) of the training photos.
        held: (N, C) of the training photos, by models that have not seen the labels where ``judged`` is True.
        judged: (N, C) the entries of ``held`` to calibrate on.
    """

    scored: Floats
    train: Floats
    held: Floats | None = None
    judged: NDArray[np.bool_] | None = None


class Auto:
    """The default, on features that are computed once; its out-of-fold scores come with the fit."""

    name = "auto"
    image_size = 320
    parts = 5

    def __call__(self, source: Source, cell: Cell, mask: int, labels: LabelMatrix, held: bool) -> Learned:
        """Fit these labels (N, C) of the training photos."""
        rows = source.problem(cell, mask).rows
        ladder = fit_labels(source, rows, labels)
        train = source.of(rows)
        scored = ladder(source.scored.vectors, source.scored.concepts)
        final = ladder(train.vectors, train.concepts)
        return Learned(scored, final, ladder.out_of_fold, labels.known)


@dataclass(frozen=True)
class Ours:
    """The row ``Ours`` of the paper; ``words`` are word vectors for each data set that has them."""

    words: dict[str, Path]
    name = "Ours"
    image_size = 224
    parts = 3

    def __call__(self, source: Source, cell: Cell, mask: int, labels: LabelMatrix, held: bool) -> Learned:
        """Train on these labels; with ``held``, once more without the first part of the known ones."""
        scored, train = self.train(source, cell, mask, labels)
        if not held:
            return Learned(scored, train)
        part = fold_numbers(labels, self.parts, 0) == 0
        _, unseen = self.train(source, cell, mask, without(labels, part))
        return Learned(scored, train, unseen, labels.known & part)

    def train(self, source: Source, cell: Cell, mask: int, labels: LabelMatrix) -> tuple[Floats, Floats]:
        """Logits of the scored photos and of the training photos after one training."""
        problem = source.problem(cell, mask)
        photos = with_labels(problem, labels)
        row = sarb.ROWS[self.name]
        model = sarb.fit(
            photos,
            valid=problem.valid,
            recipe="small",
            network=row.network,
            method=row.method,
            network_options=row.network_options,
            method_options=row.method_options,
            words=self.words.get(cell.source),
            seed=mask,
            cache=True,
            progress=False,
        )
        train = sarb.predict(model, photos, cache=True).logits[problem.rows]
        return source.predict(model, cell), train


def with_labels(problem: Problem, labels: LabelMatrix) -> Dataset:
    """All training photos, because cached features are of whole splits; those of the problem have these labels."""
    whole = problem.photos.labels
    values = whole.values.copy()
    values[problem.rows] = labels.values
    return replace(problem.photos, labels=LabelMatrix(values, whole.categories, whole.paths))


def budget(labels: LabelMatrix) -> int:
    """Answers of one round."""
    return min(ROUND[1], round(ROUND[0] * labels.values.size))


@dataclass(frozen=True)
class Round:
    """One round of answers with one model."""

    model: Auto | Ours
    results: Results

    @property
    def fits(self) -> dict[str, Fit]:
        """Name in the CSV -> how it is fitted."""
        each = {"start": self.start, "random": self.random, "suggest": self.suggest}
        return {f"{self.model.name} {name}": fit for name, fit in each.items()}

    def start(self, source: Source, cell: Cell, mask: int) -> Fitted:
        """The fit on the known labels; what ``suggest`` needs of it is kept."""
        found = self.model(source, cell, mask, source.problem(cell, mask).labels, True)
        assert found.held is not None and found.judged is not None
        np.savez(self.kept(source, cell, mask), train=found.train, held=found.held, judged=found.judged)
        return Fitted(found.scored)

    def kept(self, source: Source, cell: Cell, mask: int) -> Path:
        """File with the scores of the training photos."""
        name = Key.of(source, cell, mask, f"{self.model.name} start").file_name
        return self.results.folder / name.replace(".npy", "_train.npz")

    def random(self, source: Source, cell: Cell, mask: int) -> Fitted:
        """After answers to random questions."""
        labels = source.problem(cell, mask).labels
        row, column = np.nonzero(~labels.known)
        chosen = np.random.default_rng(mask).choice(len(row), budget(labels), replace=False)
        return self.answered(source, cell, mask, row[chosen], column[chosen])

    def suggest(self, source: Source, cell: Cell, mask: int) -> Fitted:
        """After answers to the questions of ``suggest``, which get what ``sarb calibrate`` would give them."""
        labels = source.problem(cell, mask).labels
        stored = np.load(self.kept(source, cell, mask))
        scores = Scores(stored["train"], labels.categories, labels.paths)
        held = on_scale(Scores(stored["held"], labels.categories, labels.paths), scores, labels)
        calibration = sarb.calibrate(held, without(labels, ~stored["judged"]))
        asked = sarb.suggest(
            scores,
            labels,
            budget(labels),
            calibration=calibration,
            out_of_fold=held,
            parts=self.model.parts,
        )
        return self.answered(source, cell, mask, asked.row, asked.column, asked.outlook)

    def answered(
        self,
        source: Source,
        cell: Cell,
        mask: int,
        row: Indices,
        column: Indices,
        outlook: Outlook | None = None,
    ) -> Fitted:
        """Fit again with the true labels of these entries; the note has what was expected."""
        problem = source.problem(cell, mask)
        truth = source.data.train.labels.values[problem.rows][:, source.columns(cell)]
        values = problem.labels.values.copy()
        values[row, column] = truth[row, column]
        labels = LabelMatrix(values, problem.labels.categories, problem.labels.paths)
        found = self.model(source, cell, mask, labels, False)
        present = np.count_nonzero(truth[row, column] > 0)
        note = f"asked={len(row)} present={present}"
        if outlook is not None:
            note += f" expected_present={outlook.present:.1f} predicted={outlook.gain:.3f}"
        return Fitted(found.scored, note)


def grid(scenes: bool) -> list[tuple[str, Cell]]:
    """All cells with the name of the model, the quick and the important ones first."""
    small = [("coco256", 5), ("demo", 0), *([("scenes5", 0)] if scenes else [])]
    large = [Cell("coco256", 80, 0, known) for known in SHARES]
    few = [Cell(*each, 0, known) for each in small for known in SHARES]
    half = [Cell(*each, 0, 0.5) for each in (*small, ("coco256", 80))]
    auto = [("auto", cell) for cell in (*few, *large, *half)]
    return [
        *auto,
        ("Ours", large[0]),
        *(("Ours", cell) for cell in few),
        *(("Ours", cell) for cell in large[1:]),
    ]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    add_folders(parser)
    add_options(parser, MASKS)
    parser.add_argument("--cells", default="*", help="names or patterns, such as 'demo/*,coco256-80/5'")
    parser.add_argument("--models", default="auto,Ours")
    parser.add_argument("--fits", default=",".join(STRATEGIES), help="which fits to run")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the cells, print the table; return 1 if ``suggest`` is worse than random somewhere."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    options = _parser().parse_args(given)
    masks = chosen_masks(options, MASKS)
    results = Results(options.out)
    command = "python -m benchmarks.suggest " + shlex.join(given)
    words = {} if options.coco256 is None else {"coco256": options.coco256 / "glove.300d.txt"}
    models = {each.name: each for each in (Auto(), Ours(words))}

    @cache
    def loaded(name: str, image_size: int) -> Source:
        return sources(argparse.Namespace(**{**vars(options), "image_size": image_size}))[name]()

    table = options.out.with_name(f"{options.out.stem}-cells.csv")
    judged: list[dict[str, str]] = []
    for name, cell in grid(options.scenes5 is not None):
        chosen = any(fnmatch(cell.name, pattern) for pattern in options.cells.split(","))
        if not chosen or name not in options.models.split(","):
            continue
        source = loaded(cell.source, options.image_size or models[name].image_size)
        wanted = [f"{name} {each}" for each in options.fits.split(",")]
        fits = Round(models[name], results).fits
        run_cell(source, cell, masks, {key: fits[key] for key in wanted}, results, command)
        found = judge_cell(source, cell, masks, results, name)
        if found is not None:
            write_table(table, CELL_COLUMNS, CELL_KEY, [found])
            judged.append(found)
    if judged:
        draw(read_csv(table), options.out.with_suffix(".png"))
    print("\n" + summary(judged))
    return int(any(float(row["high"]) < 0 for row in judged))


if __name__ == "__main__":
    raise SystemExit(main())
