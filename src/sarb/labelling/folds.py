"""Out-of-fold scores: every known label is scored by a model that was not trained on it."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sarb.bulk.ranks import rank
from sarb.data.dataset import Dataset
from sarb.errors import ConfigError
from sarb.inference.prediction import predict
from sarb.labels import LabelMatrix
from sarb.progress import Progress
from sarb.runs.folder import kept_scores, write_kept_scores
from sarb.scores import Scores
from sarb.settings import Settings, resolve
from sarb.training.run import start_run


def fold_numbers(labels: LabelMatrix, folds: int, seed: int = 0) -> NDArray[np.int64]:
    """Fold 0 … folds−1 of every entry (N, C), stratified by category and by present, absent, unknown.

    Entries are divided, not images: a model then scores an unseen label of an image it has seen, as it does
    when it fills unknown labels, and all folds use the same cached features.
    """
    if folds < 2:
        raise ConfigError([f"folds must be at least 2, got {folds}"])
    random = np.random.RandomState(seed)
    noise = random.random_sample(labels.shape)
    result = np.empty(labels.shape, np.int64)
    # a random start, so that a lone positive is not always in the first fold
    start = random.randint(folds, size=(labels.shape[1], 3))
    for column, codes in enumerate(labels.values.T):
        order = np.lexsort((noise[:, column], codes))
        first = np.searchsorted(codes[order], codes[order], side="left")
        result[order, column] = (np.arange(len(order)) - first + start[column, codes[order] + 1]) % folds
    return result


def without(labels: LabelMatrix, hidden: NDArray[np.bool_]) -> LabelMatrix:
    """The labels with the entries of the mask (N, C) unknown."""
    return LabelMatrix(np.where(hidden, 0, labels.values), labels.categories, labels.paths)


def out_of_fold(
    train: Dataset,
    folds: int = 3,
    *,
    part_seed: int = 0,
    out: str | Path | None = None,
    progress: bool | Progress = True,
    settings: Settings | None = None,
    **options: Any,
) -> Scores:
    """Train ``folds`` times, each time without one part of the known labels, and score that part.

    Args:
        train: the training images with their labels.
        folds: how many parts; more cost more trainings and leave each model more labels.
        part_seed: of the parts; the trainings have the seed in ``options``.
        out: folder that keeps the scores of each finished part and the checkpoint of the one in training, so that
            an interrupted call goes on there.
        progress: talk to stderr.
        settings: of the trainings, resolved already.
        options: settings of :func:`sarb.fit`, where ``settings`` is not given.

    Returns:
        Logits (N, C) of all entries, each by the model of its own part; unknown entries have a part too, so
        that they are scored just as the known ones were. Images that cannot be read are left out.
    """
    settings = settings or resolve(**options)
    first = rank() == 0  # of torchrun: all train, one writes
    talk = Progress.of(progress and first)
    part = fold_numbers(train.labels, folds, part_seed)
    logits = np.full(train.labels.shape, np.nan, np.float32)
    rows = {path: row for row, path in enumerate(train.labels.paths)}
    for number in range(folds):
        kept = Path(out) / f"fold-{number}-of-{folds}.npz" if out is not None else None
        scores = None if kept is None else kept_scores(kept, talk.say)
        if scores is None:
            learned = replace(train, labels=without(train.labels, part == number))
            talk.say(f"part {number + 1} of {folds}")
            # with checkpoints; the labels are in the name, so that no other part is ever continued
            run = None if out is None else Path(out) / f"run-{learned.labels.fingerprint()[:16]}"
            model = start_run(learned, settings, out=run, resume=run is not None, progress=talk).model
            scores = predict(model, train, cache=bool(settings.cache), unreadable="skip", shared=True)
            if kept is not None and run is not None and first:
                write_kept_scores(kept, scores)
                shutil.rmtree(run, ignore_errors=True)
        found = np.array([rows[path] for path in scores.paths], np.int64)
        logits[found] = np.where(part[found] == number, scores.logits, logits[found])
    readable = ~np.asarray(np.isnan(logits).any(1), bool)
    names = [path for path, whole in zip(train.labels.paths, readable, strict=True) if whole]
    return Scores(logits[readable], train.categories, names)
