"""Data sets of the benchmarks with features that are computed once, and fits of the ladder on them."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import sarb
from benchmarks.harness import lazy
from sarb.auto.ladder import Ladder, fit_ladder
from sarb.auto.names import tie
from sarb.batches.sources import Split
from sarb.data.dataset import Data, Dataset
from sarb.labels import LabelMatrix
from sarb.progress import Progress
from sarb.settings import resolve
from sarb.training.fitted import Fitting, Pooled

#: share of the training photos that ``--develop`` holds out
HELD_OUT = 0.2


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


@dataclass(frozen=True)
class How:
    """What all cells share."""

    develop: bool
    seed: int
    backbone: str | None
    image_size: int | None
    scales: list[float] | None = None

    @property
    def split(self) -> str:
        """Which photos are scored."""
        return "develop" if self.develop else "test"

    @property
    def settings(self) -> dict[str, Any]:
        """Arguments of ``sarb.fit`` that change the features."""
        settings: dict[str, Any] = {
            "backbone": self.backbone,
            "image_size": self.image_size,
            "seed": self.seed,
        }
        return {**settings, "backbone_options": {"scales": self.scales}} if self.scales else settings


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
        pooled = fitting.pool(self.fitting.model.network.backbone)
        if pooled.failures:
            raise SystemExit(f"an image cannot be read: {pooled.failures[0][1]}")
        return pooled

    def of(self, rows: NDArray[np.int64]) -> Pooled:
        """Features of some of the training photos."""
        return _rows(self.train, rows)

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


def fit_auto(
    source: Source,
    cell: Cell,
    mask: int,
    claims: str,
    permutation: int | None = None,
    residual: str | None = None,
) -> Fitted:
    """The default, on features that are computed once for all cells.

    A permutation mixes the names up; ``residual`` is the method of the last rung, None leaves it to the default.
    """
    problem = source.problem(cell, mask)
    photos = problem.photos
    if permutation is not None:
        photos = replace(photos, labels=_renamed(photos.labels, permutation))
    options = {"claims": claims, **({} if residual is None else {"residual": residual})}
    settings = resolve(None, method="auto", method_options=options, **source.how.settings)
    fitting = Fitting(photos, settings, problem.valid, None, Progress(enabled=False))
    train = _rows(source.train, problem.rows)
    found = fitting.fit(replace(train, rows=np.arange(len(problem.rows))))
    scored = _scored(source, found.ladder)
    if found.residual is None:
        return scored
    model = fitting.filled(found.ladder, found.residual)
    return Fitted(source.predict(model, cell), f"{scored.note} {found.residual.weight:g}")


def fit_rungs(
    source: Source, cell: Cell, mask: int, claims: str, rungs: Collection[str], force: bool = False
) -> Fitted:
    """The ladder with only some of its rungs; none of them is the tuned probe."""
    problem = source.problem(cell, mask)
    return _scored(source, fit_labels(source, problem.rows, problem.labels, claims, rungs, force))


def fit_labels(
    source: Source,
    rows: NDArray[np.int64],
    labels: LabelMatrix,
    claims: str = "names",
    rungs: Collection[str] | None = None,
    force: bool = False,
) -> Ladder:
    """The ladder of these labels (n, C) of the training photos in ``rows`` (n,); by default that of ``auto``."""
    train = source.of(rows)
    return fit_ladder(
        train.vectors,
        labels,
        train.concepts,
        tie(labels.categories).matrix if claims == "names" else None,
        claims=claims,
        seed=source.how.seed,
        rungs=rungs,
        force=force,
    )


def _scored(source: Source, ladder: Ladder) -> Fitted:
    kept = " ".join(row["rung"] for row in ladder.rows if row["kept"])
    return Fitted(ladder(source.scored.vectors, source.scored.concepts), f"ridge {ladder.ridge:g}: {kept}")


def _renamed(labels: LabelMatrix, seed: int) -> LabelMatrix:
    """The same labels under the names of other categories."""
    names = np.random.RandomState(seed).permutation(labels.categories)
    return LabelMatrix(labels.values, [str(name) for name in names], labels.paths)


def add_options(parser: argparse.ArgumentParser, masks: Mapping[str, str]) -> None:
    """Options that all benchmarks of the default have; ``masks`` are the seeds for each split."""
    told = " or ".join(f"{seeds} ({split})" for split, seeds in masks.items())
    parser.add_argument("--out", type=Path, required=True, help="CSV with one row per fit")
    parser.add_argument("--masks", help=f"seeds of the hidden labels; {told}")
    parser.add_argument("--develop", action="store_true", help="score held-out training photos, not the test")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--backbone")
    parser.add_argument(
        "-o", "--option", action="append", default=[], metavar="KEY=VALUE", help="option of the data source"
    )


def chosen_masks(options: argparse.Namespace, masks: Mapping[str, str]) -> list[int]:
    """Seeds of ``--masks``, or those for the split."""
    text: str = options.masks or masks["develop" if options.develop else "test"]
    return [int(seed) for seed in text.split(",")]


def located(source: str | Path, options: Sequence[str] = ()) -> tuple[str, dict[str, str]]:
    """Arguments of ``sarb.load`` for ``demo`` or the folder of a table; options are texts ``KEY=VALUE``."""
    given = dict(text.split("=", 1) for text in options)
    if str(source) == "demo":
        return "demo", given
    return str(Path(source).resolve() / "labels.csv"), {"encoding": "binary", **given}


def load(source: str | Path, options: Sequence[str] = ()) -> Data:
    """Load ``demo``, or the folder of a table ``labels.csv``."""
    name, given = located(source, options)
    return sarb.load(name, **given)


def add_folders(parser: argparse.ArgumentParser) -> None:
    """Options for the folders of the data sets that are not made on the spot."""
    parser.add_argument("--coco256", type=Path, metavar="DIR", help="folder of the coco256 data set")
    parser.add_argument("--scenes5", type=Path, metavar="DIR", help="folder of the scenes5 data set")
    parser.add_argument("--image-size", type=int)


def sources(options: argparse.Namespace) -> dict[str, Callable[[], Source]]:
    """Name of a data set -> its source, loaded when its first cell runs."""
    how = How(options.develop, options.seed, options.backbone, options.image_size)
    found = {"demo": lazy(lambda: Source(load("demo", options.option), how))}
    if options.scenes5 is not None:
        found["scenes5"] = lazy(lambda: Source(load(options.scenes5, ["file_column=Filenames"]), how))
    if options.coco256 is not None:
        found["coco256"] = lazy(lambda: Source(load(options.coco256), how))
    return found
