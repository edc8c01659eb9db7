"""Where is the default beaten? ``auto`` against ten lines of scikit-learn and ``pooled``, cell by cell.

    python -m benchmarks.default --coco256 DIR --scenes5 DIR --develop --out results/auto/default-develop.csv
    python -m benchmarks.default … --cells 'scenes5/*,coco256-80/10' --masks 1,2 --pooled

Cells: coco256 with its 80, 20 and 5 most frequent training categories, scenes5 and demo, each with 5, 10 and
30 % of the labels known (three masks) and with all of them (once); and 60 training photos of scenes5 and
coco256-5 with 30 % and all. The test photos are scored, or with ``--develop`` a fifth of the training photos,
which are then not trained on. Without ``--pooled`` the slow network ``pooled`` is left out.

Each fit is one row of the CSV, written when it ends; what is there already is not run again. Scores are kept
beside it in ``NAME.scores/``. At the end each cell gets a paired bootstrap over photos, its masks pooled, of
(auto − better of the others), in ``NAME-cells.csv`` and as a table.
"""

from __future__ import annotations

import argparse
import csv
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatch
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import sarb
from benchmarks.baseline import baseline
from benchmarks.harness import lazy
from benchmarks.paired import compare
from sarb.batches.sources import Split
from sarb.data.dataset import Data, Dataset
from sarb.labels import LabelMatrix
from sarb.methods.auto import Auto
from sarb.metrics import evaluate
from sarb.progress import Progress
from sarb.settings import resolve
from sarb.training.fitted import Fitting, Pooled

SHARES = (0.05, 0.1, 0.3, 1.0)
FEW_PHOTOS = 60
#: nothing is chosen on the masks of the test
MASKS = {"test": "11,12,13", "develop": "1,2,3"}
#: share of the training photos that ``--develop`` holds out
HELD_OUT = 0.2
#: largest difference of a logit between the fit on shared features and ``sarb.fit``
TOLERANCE = 1e-4
CLAIMS = ("strict", "names")
COLUMNS = (
    *("split", "cell", "mask", "model", "mAP", "note", "train_photos", "photos", "categories", "image_size"),
    *("seed", "seconds", "commit", "command"),
)


class Cell(NamedTuple):
    """One cell of the grid; 0 categories or photos are all of them."""

    source: str
    categories: int
    photos: int
    known: float

    @property
    def name(self) -> str:
        """``coco256-5-60photos/30``: data, then percent known."""
        categories = f"-{self.categories}" if self.categories else ""
        photos = f"-{self.photos}photos" if self.photos else ""
        return f"{self.source}{categories}{photos}/{100 * self.known:g}"

    def masks(self, masks: Sequence[int]) -> Sequence[int]:
        """Seeds of ``hide``; with all labels known there is only one mask."""
        return masks if self.known < 1 else masks[:1]


def grid() -> list[Cell]:
    """All cells of acceptance 2 of issue 13, the quick ones first."""
    data = [("scenes5", 0), ("demo", 0), ("coco256", 5), ("coco256", 20), ("coco256", 80)]
    few = [Cell(*each, FEW_PHOTOS, known) for each in (data[0], data[2]) for known in (0.3, 1.0)]
    return [*few, *(Cell(*each, 0, known) for each in data for known in SHARES)]


@dataclass(frozen=True)
class How:
    """What all cells share."""

    develop: bool
    seed: int
    backbone: str | None
    image_size: int | None

    @property
    def split(self) -> str:
        """Which photos are scored."""
        return "develop" if self.develop else "test"

    @property
    def settings(self) -> dict[str, Any]:
        """Arguments of ``sarb.fit`` that change the features."""
        return {"backbone": self.backbone, "image_size": self.image_size, "seed": self.seed}


class Source:
    """A data set with the features of its photos, which are the same in all cells."""

    def __init__(self, data: Data, how: How) -> None:
        self.data = data
        self.how = how
        self.parts = Split.of(data.train, HELD_OUT if how.develop else None, how.seed)
        self.fitting = self._fitting(data.train)
        self.image_size = self.fitting.settings.image_size
        self.train = self._pool(self.fitting)
        # In development the test photos are not even opened.
        self.scored = (
            _rows(self.train, self.parts.held) if how.develop else self._pool(self._fitting(data.test))
        )

    def _fitting(self, photos: Dataset) -> Fitting:
        settings = resolve(None, method="auto", **self.how.settings)
        return Fitting(photos, settings, None, None, Progress.of(True))

    def _pool(self, fitting: Fitting) -> Pooled:
        pooled = fitting._pool(self.fitting.model.network.backbone)
        if pooled.failures:
            raise SystemExit(f"an image cannot be read: {pooled.failures[0][1]}")
        return pooled

    def columns(self, cell: Cell) -> NDArray[np.int64]:
        """The most frequent categories of the training photos, in the order of the file."""
        order = np.argsort(-self.data.train.labels.positives, kind="stable")
        return np.sort(order[: cell.categories or None])

    def answers(self, cell: Cell) -> LabelMatrix:
        """True labels of the photos that are scored."""
        photos = self.parts.valid if self.how.develop else self.data.test
        return _columns(photos, self.columns(cell)).labels

    def problem(self, cell: Cell, mask: int) -> Problem:
        """Training photos of a cell with some of their labels hidden."""
        whole = _columns(self.data.train, self.columns(cell))
        rows = self.parts.rows
        if cell.photos:
            rows = np.sort(np.random.RandomState(self.how.seed).permutation(rows)[: cell.photos])
            given = whole.take(rows).hide(cell.known, mask)
            return Problem(given, None, rows, given.labels)
        given = whole.hide(cell.known, mask)
        return Problem(given, HELD_OUT if self.how.develop else None, rows, given.labels.take(rows))

    def predict(self, model: sarb.Model, cell: Cell) -> NDArray[np.float32]:
        """Logits of the scored photos; cached features are of whole splits."""
        photos = self.data.train if self.how.develop else self.data.test
        logits = sarb.predict(model, _columns(photos, self.columns(cell)), cache=True).logits
        return logits[self.parts.held] if self.how.develop else logits


class Problem(NamedTuple):
    """What to fit: arguments of ``sarb.fit``, and the same as rows of the training photos and labels."""

    photos: Dataset
    valid: float | None
    rows: NDArray[np.int64]
    labels: LabelMatrix


def _columns(photos: Dataset, columns: NDArray[np.int64]) -> Dataset:
    """Only some of the categories."""
    labels = photos.labels
    names = [labels.categories[column] for column in columns]
    return replace(photos, labels=LabelMatrix(labels.values[:, columns], names, labels.paths))


def _rows(pooled: Pooled, rows: NDArray[np.int64]) -> Pooled:
    concepts = None if pooled.concepts is None else pooled.concepts.rows(rows)
    return Pooled(pooled.vectors[rows], concepts, rows, [])


class Fitted(NamedTuple):
    """Logits of the scored photos, and a note for the table."""

    scores: NDArray[np.floating]
    note: str = ""


def fit_auto(source: Source, cell: Cell, mask: int, claims: str) -> Fitted:
    """The default, on features that are computed once for all cells."""
    problem = source.problem(cell, mask)
    train = _rows(source.train, problem.rows)
    options = {**source.fitting.settings.method_options, "claims": claims}
    method = Auto(source.fitting.model.network, **options)
    ladder = method.fit(train.vectors, problem.labels, train.concepts, source.how.seed)
    kept = " ".join(ladder.kept)
    return Fitted(ladder(source.scored.vectors, source.scored.concepts), f"ridge {ladder.ridge:g}: {kept}")


def fit_baseline(source: Source, cell: Cell, mask: int) -> Fitted:
    """Ten lines of scikit-learn on the same averaged maps."""
    problem = source.problem(cell, mask)
    vectors = source.train.vectors[problem.rows]
    scores, c = baseline(vectors, problem.labels.values, source.scored.vectors)
    return Fitted(scores, f"C {c:g}")


def fit_pooled(source: Source, cell: Cell, mask: int) -> Fitted:
    """A linear layer on the averaged map, trained step by step."""
    problem = source.problem(cell, mask)
    model = sarb.fit(
        problem.photos,
        valid=problem.valid,
        network="pooled",
        method="partial_bce",
        recipe="small",
        progress=False,
        **source.how.settings,
    )
    return Fitted(source.predict(model, cell))


def check_same(source: Source, cell: Cell, mask: int) -> float:
    """Largest difference between ``fit_auto`` and the model of ``sarb.fit``, over all logits."""
    problem = source.problem(cell, mask)
    model = sarb.fit(
        problem.photos, valid=problem.valid, method="auto", progress=False, **source.how.settings
    )
    ours = fit_auto(source, cell, mask, "names").scores
    return float(np.abs(ours - source.predict(model, cell)).max())


Fit = Callable[[Source, Cell, int], Fitted]


def models(pooled: bool) -> dict[str, Fit]:
    """Name in the CSV -> how it is fitted."""
    found: dict[str, Fit] = {
        "auto strict": lambda source, cell, mask: fit_auto(source, cell, mask, "strict"),
        "auto names": lambda source, cell, mask: fit_auto(source, cell, mask, "names"),
        "ten lines": fit_baseline,
    }
    return {**found, "pooled": fit_pooled} if pooled else found


class Results:
    """The CSV of fits, and the scores beside it."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.folder = file.with_suffix(".scores")
        self.folder.mkdir(parents=True, exist_ok=True)
        self.rows = read_csv(file)

    def scores_file(self, split: str, cell: Cell, mask: int, model: str) -> Path:
        """Where the scores of one fit are."""
        return self.folder / f"{split} {cell.name.replace('/', ' ')} {mask} {model}.npy".replace(" ", "_")

    def has(self, split: str, cell: Cell, mask: int, model: str) -> bool:
        """Whether a fit is done, with scores to compare."""
        wanted = (split, cell.name, str(mask), model)
        done = any((row["split"], row["cell"], row["mask"], row["model"]) == wanted for row in self.rows)
        return done and self.scores_file(split, cell, mask, model).exists()

    def add(self, row: dict[str, Any], cell: Cell, scores: NDArray[np.floating]) -> None:
        """Write scores first: a row promises them. A row whose scores were lost is replaced."""
        np.save(self.scores_file(row["split"], cell, row["mask"], row["model"]), scores)
        texts = {column: str(row[column]) for column in COLUMNS}
        key = ("split", "cell", "mask", "model")
        others = [old for old in self.rows if any(old[name] != texts[name] for name in key)]
        self.rows = [*others, texts]
        write_csv(self.file, COLUMNS, self.rows)

    def scores(self, split: str, cell: Cell, mask: int, model: str) -> NDArray[np.floating]:
        """Logits (photos, categories) of a finished fit."""
        loaded: NDArray[np.floating] = np.load(self.scores_file(split, cell, mask, model))
        return loaded


def read_csv(file: Path) -> list[dict[str, str]]:
    """Rows of a CSV; none if there is no such file."""
    if not file.exists():
        return []
    with file.open(newline="", encoding="utf-8") as opened:
        return list(csv.DictReader(opened))


def write_csv(file: Path, columns: Sequence[str], rows: Sequence[dict[str, Any]]) -> None:
    """Replace a CSV."""
    with file.open("w", newline="", encoding="utf-8") as opened:
        writer = csv.DictWriter(opened, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def run_cell(
    source: Source, cell: Cell, masks: Sequence[int], fits: dict[str, Fit], results: Results, command: str
) -> None:
    """Fit every model with every mask, unless the CSV has it."""
    answers = source.answers(cell)
    for mask in cell.masks(masks):
        for model, fit in fits.items():
            if results.has(source.how.split, cell, mask, model):
                continue
            started = time.perf_counter()
            fitted = fit(source, cell, mask)
            seconds = time.perf_counter() - started
            quality = evaluate(fitted.scores, answers)["mAP"]
            row = {
                "split": source.how.split,
                "cell": cell.name,
                "mask": mask,
                "model": model,
                "mAP": f"{quality:.3f}",
                "note": fitted.note,
                "train_photos": len(source.problem(cell, mask).rows),
                "photos": len(answers),
                "categories": len(answers.categories),
                "image_size": source.image_size,
                "seed": source.how.seed,
                "seconds": f"{seconds:.1f}",
                "commit": commit(),
                "command": command,
            }
            results.add(row, cell, fitted.scores)
            print(
                f"{cell.name} mask {mask} {model}: {quality:.2f}  {fitted.note}  {seconds:.1f} s", flush=True
            )


@cache
def commit() -> str:
    """The commit that is checked out, with a ``+`` if files differ from it; empty outside git."""
    told = subprocess.run(["git", "describe", "--always", "--dirty=+"], capture_output=True, text=True)
    return told.stdout.strip()


CELL_COLUMNS = (
    *("split", "cell", "masks", "claims", "auto", "ten lines", "pooled", "against", "gain", "low", "high"),
)


def judge_cell(
    source: Source, cell: Cell, masks: Sequence[int], results: Results
) -> Iterator[dict[str, str]]:
    """One row per kind of claims: auto against the better of the others, masks pooled."""
    split = source.how.split
    answers = source.answers(cell)
    masks = cell.masks(masks)

    def stored(model: str) -> list[NDArray[np.floating]]:
        return [results.scores(split, cell, mask, model) for mask in masks]

    others = [
        model
        for model in ("ten lines", "pooled")
        if all(results.has(split, cell, mask, model) for mask in masks)
    ]
    quality = {
        model: float(np.mean([evaluate(scores, answers)["mAP"] for scores in stored(model)]))
        for model in (*(f"auto {claims}" for claims in CLAIMS), *others)
    }
    better = max(others, key=quality.__getitem__)
    for claims in CLAIMS:
        difference = compare(stored(f"auto {claims}"), stored(better), answers.values)
        yield {
            "split": split,
            "cell": cell.name,
            "masks": " ".join(map(str, masks)),
            "claims": claims,
            "auto": f"{quality[f'auto {claims}']:.2f}",
            **{
                model: f"{quality[model]:.2f}" if model in quality else ""
                for model in ("ten lines", "pooled")
            },
            "against": better,
            "gain": f"{difference.mean:+.2f}",
            "low": f"{difference.low:+.2f}",
            "high": f"{difference.high:+.2f}",
        }


def write_cells(file: Path, rows: Sequence[dict[str, str]]) -> None:
    """Replace the rows of the same cells and masks; those of other runs stay."""
    key = ("split", "cell", "masks", "claims")
    new = {tuple(row[name] for name in key) for row in rows}
    old = [row for row in read_csv(file) if tuple(row[name] for name in key) not in new]
    write_csv(file, CELL_COLUMNS, [*old, *rows])


def summary(rows: Sequence[dict[str, str]]) -> str:
    """The table, where the default is beaten, and the mean gains."""
    lines = ["| cell | claims | auto | ten lines | pooled | gain | 95 % interval | |", "|---" * 8 + "|"]
    for row in rows:
        verdict = "beaten" if float(row["high"]) < 0 else "behind" if float(row["gain"]) < 0 else ""
        shown = [row[name] or "–" for name in ("cell", "claims", "auto", "ten lines", "pooled", "gain")]
        lines.append(f"| {' | '.join(shown)} | {row['low']} to {row['high']} | {verdict} |")
    lines.append("")
    for claims in CLAIMS:
        gains = [float(row["gain"]) for row in rows if row["claims"] == claims]
        if gains:
            lines.append(f"{claims}: mean gain over {len(gains)} cells {np.mean(gains):+.2f} mAP")
    beaten = [row for row in rows if float(row["high"]) < 0]
    for row in beaten:
        lines.append(f"beaten: {row['cell']} ({row['claims']}) by {row['against']}, {row['gain']} mAP")
    return "\n".join([*lines, *([] if beaten else ["the default is beaten in no cell"])])


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--coco256", type=Path, metavar="DIR", help="folder of the coco256 data set")
    parser.add_argument("--scenes5", type=Path, metavar="DIR", help="folder of the scenes5 data set")
    parser.add_argument("--out", type=Path, required=True, help="CSV with one row per fit")
    parser.add_argument("--cells", default="*", help="names or patterns, such as 'scenes5/*,coco256-80/10'")
    parser.add_argument("--masks", help="seeds of the hidden labels; 11,12,13, or 1,2,3 with --develop")
    parser.add_argument("--develop", action="store_true", help="score held-out training photos, not the test")
    parser.add_argument("--pooled", action="store_true", help="also train the network pooled, which is slow")
    parser.add_argument("--list", action="store_true", help="print the cells and stop")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--backbone")
    parser.add_argument("--image-size", type=int)
    parser.add_argument(
        "-o", "--option", action="append", default=[], metavar="KEY=VALUE", help="option of the demo set"
    )
    return parser


def _loaders(options: argparse.Namespace, how: How) -> dict[str, Callable[[], Source]]:
    """Name of a data set -> its source, loaded when its first cell runs."""

    def table(folder: Path, **reading: str) -> Callable[[], Source]:
        return lazy(lambda: Source(sarb.load(folder / "labels.csv", encoding="binary", **reading), how))

    demo = dict(text.split("=", 1) for text in options.option)
    found = {"demo": lazy(lambda: Source(sarb.load("demo", **demo), how))}
    if options.scenes5 is not None:
        found["scenes5"] = table(options.scenes5, file_column="Filenames")
    if options.coco256 is not None:
        found["coco256"] = table(options.coco256)
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the cells, print the table; return 1 if the default is beaten somewhere."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    options = _parser().parse_args(given)
    patterns = options.cells.split(",")
    cells = [cell for cell in grid() if any(fnmatch(cell.name, pattern) for pattern in patterns)]
    if options.list or not cells:
        print("\n".join(cell.name for cell in cells or grid()))
        return 0 if cells else 2
    how = How(options.develop, options.seed, options.backbone, options.image_size)
    loaders = _loaders(options, how)
    masks = [int(text) for text in (options.masks or MASKS[how.split]).split(",")]
    results = Results(options.out)
    command = "python -m benchmarks.default " + shlex.join(given)
    judged: list[dict[str, str]] = []
    unchecked = True
    for cell in cells:
        if cell.source not in loaders:
            print(f"{cell.name}: left out, give its folder with --{cell.source} DIR")
            continue
        source = loaders[cell.source]()
        if unchecked:
            difference = check_same(source, cell, masks[0])
            print(f"{cell.name}: at most {difference:.1e} from sarb.fit", flush=True)
            assert difference < TOLERANCE
            unchecked = False
        run_cell(source, cell, masks, models(options.pooled), results, command)
        found = list(judge_cell(source, cell, masks, results))
        write_cells(options.out.with_name(f"{options.out.stem}-cells.csv"), found)
        judged += found
    print("\n" + summary(judged))
    return int(any(float(row["high"]) < 0 for row in judged))


if __name__ == "__main__":
    raise SystemExit(main())
