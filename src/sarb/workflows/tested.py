"""Models with their scores of test images: stored by a run, or of images that none of them was trained on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from sarb.data import Dataset
from sarb.errors import ConfigError, SarbError, either
from sarb.inference.prediction import predict
from sarb.labels import LabelMatrix
from sarb.model import Model, load_model
from sarb.runs.folder import RunFolder
from sarb.runs.lookup import find_run
from sarb.scores import Scores
from sarb.workflows.seen import Seen


@dataclass(frozen=True)
class Tested:
    """A model with its scores.

    Attributes:
        name: for tables.
        run: its folder; None for a model that has none.
        scores: (n, C) of its test images, with whole paths.
        labels: (n, C) of the same images.
        facts: method, network, known share and seed.
    """

    name: str
    run: RunFolder | None
    scores: Scores
    labels: LabelMatrix
    facts: Mapping[str, Any]


def place(path: str | Path) -> str:
    """Where a file is: the same text however its path was written."""
    return str(Path(path).resolve())


def stored(run: str | Path | Model, name: str) -> Tested:
    """Scores and labels of the test images, from the run folder."""
    if isinstance(run, Model):
        raise ConfigError([f"{name}: a model stores no test scores; give the images to compare on: data=…"])
    folder = find_run(run)
    if folder.scores is None or folder.test is None:
        raise SarbError(
            f"{run}: has no scores of test images; give the images to compare on with {either('--data SRC', 'data=…')}"
        )
    places = [place(path) for path in folder.test.paths]
    return Tested(
        name,
        folder,
        Scores(folder.scores.logits, folder.scores.categories, places),
        LabelMatrix(folder.test.values, folder.test.categories, places),
        _facts(folder),
    )


def scored(
    runs: Sequence[str | Path | Model],
    names: Sequence[str],
    data: Dataset,
    skipped: dict[str, str],
    **options: Any,
) -> tuple[list[Tested], list[str]]:
    """Score images with all models, without those that one of them was trained on."""
    folders = [None if isinstance(run, Model) else find_run(run) for run in runs]
    unseen = np.ones(len(data), bool)
    notes: list[str] = []
    for name, folder in zip(names, folders, strict=True):
        seen = None if folder is None else Seen.of(folder)
        if seen is not None and seen.training:
            unseen &= ~seen.trained_on(data)
        else:
            notes.append(f"Cannot check which of the images {name} was trained on: it does not say.")
    if not unseen.any():
        raise SarbError(
            f"{data.name}: at least one of the runs was trained on each of the {len(data):,} images"
        )
    if not unseen.all():
        notes.append(
            f"{int((~unseen).sum()):,} of {len(data):,} images are left out: a run was trained on them."
        )
    data = data.take(unseen)
    whole = {path: place(file) for path, file in zip(data.labels.paths, data.paths, strict=True)}
    labels = LabelMatrix(data.labels.values, data.categories, list(whole.values()))
    tested = []
    for run, name, folder in zip(runs, names, folders, strict=True):
        model = run if isinstance(run, Model) else load_model(run)
        scores = predict(model, data, unreadable="skip", **options)
        skipped |= dict(scores.skipped)
        there = Scores(scores.logits, scores.categories, [whole[path] for path in scores.paths])
        tested.append(Tested(name, folder, there, labels, {} if folder is None else _facts(folder)))
    return tested, notes


def _facts(folder: RunFolder) -> dict[str, Any]:
    """What distinguishes a run from others."""
    return {name: folder.setting(name) for name in ("method", "network", "known", "seed")}
