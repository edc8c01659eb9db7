"""``sarb complete`` and ``sarb suggest``: fill the gaps, or choose which of them to ask about."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sarb.data import Data
from sarb.data.writers.write import write
from sarb.errors import ConfigError, DataError, check_choice, unknown_name
from sarb.inference.prediction import match_categories, predict
from sarb.labelling.calibration import Calibration
from sarb.labelling.completion import Filled, complete
from sarb.labelling.formats import conflicts_csv
from sarb.labelling.suggestion import Suggestions, suggest
from sarb.labels import LabelMatrix
from sarb.model import load_model
from sarb.runs.folder import RunFolder
from sarb.runs.lookup import find_run
from sarb.scores import Scores
from sarb.workflows.labelled import both, run_data

FORMATS = ("long", "wide", "open_images", "label_studio")
#: factors of :func:`sarb.suggest` that ``--weight`` may set
WEIGHTS = ("finds", "uncertainty", "cooccurrence", "rarity", "diversity")


@dataclass(frozen=True)
class Scored:
    """Images with a score and labels, and how to read the scores.

    Attributes:
        scores: (N, C); ``scores.skipped`` lists the images that could not be read.
        labels: (N, C) of the same images.
        out_of_fold: the same with out-of-fold scores of training images; None if the run has none.
        calibration: of the model.
    """

    scores: Scores
    labels: LabelMatrix
    out_of_fold: Scores | None
    calibration: Calibration


def score_splits(run: Path, data: Data, splits: Sequence[str], which: str, **options: Any) -> Scored:
    """Score the images of these splits.

    ``which``: ``model`` scores with the trained model; ``oof`` takes the out-of-fold score of a training
    image instead.
    """
    check_choice("kind of scores", which, ("model", "oof"))
    model = load_model(run)
    folder = find_run(run)
    if which == "oof" and folder.out_of_fold is None:
        raise ConfigError([f"{run}: has no out-of-fold scores; 'sarb calibrate {run}' makes them"])
    plain: list[Scores] = []
    judged: list[NDArray[np.float32]] = []
    labels: list[LabelMatrix] = []
    skipped: list[tuple[str, str]] = []
    for split in splits:
        dataset = match_categories(model, data.splits[split])
        scores = predict(
            model, dataset, cache=folder.cached and split == "train", unreadable="skip", **options
        )
        skipped += scores.skipped
        scores, known = both(scores, dataset.labels)
        plain.append(scores)
        labels.append(known)
        judged.append(_replaced(scores, folder) if split == "train" else scores.logits)
    names = [path for part in labels for path in part.paths]
    better = Scores(np.concatenate(judged), model.categories, names, skipped)
    return Scored(
        better
        if which == "oof"
        else Scores(np.concatenate([part.logits for part in plain]), model.categories, names, skipped),
        LabelMatrix(np.concatenate([part.values for part in labels]), model.categories, names),
        None if folder.out_of_fold is None else better,
        model.calibration(),
    )


def _replaced(scores: Scores, folder: RunFolder) -> NDArray[np.float32]:
    """Logits, out-of-fold where the run has the image."""
    known = folder.out_of_fold
    if known is None or known.categories != scores.categories:
        return scores.logits
    logits = scores.logits.copy()
    rows = {path: row for row, path in enumerate(known.paths)}
    pairs = [(row, rows[path]) for row, path in enumerate(scores.paths) if path in rows]
    if pairs:
        here, there = np.array(pairs).T
        logits[here] = known.logits[there]
    return logits


def complete_session(
    run: Path,
    out: Path,
    *,
    source: str | None = None,
    data_options: Mapping[str, str] | None = None,
    to: str = "long",
    min_confidence: float | None = None,
    min_precision: float | None = None,
    which: str = "model",
    split: str | None = None,
    overwrite: bool = False,
    **options: Any,
) -> Filled:
    """Everything behind ``sarb complete``; return what was filled.

    ``split`` says which images are filled, ``all`` or one split. A wide table may be trained on, so its test
    images keep the given labels unless they are asked for.
    """
    check_choice("format of completed labels", to, FORMATS)
    if out.exists() and not overwrite:
        raise DataError(f"{out}: exists already; add --overwrite to replace it")
    data = run_data(run, source, data_options)
    split = split or ("train" if to == "wide" else "all")
    check_choice("split", split, ["all", *data.splits])
    chosen = list(data.splits) if split == "all" else [split]
    scored = score_splits(run, data, chosen, which, **options)
    _caution(run, scored, own_data=source is None)
    filled = complete(
        scored.scores,
        scored.labels,
        scored.calibration,
        min_confidence,
        min_precision,
        out_of_fold=scored.out_of_fold,
    )
    if to == "wide":
        _write_wide(data, filled, out, overwrite)
        _say_kept(data, chosen)
    else:
        filled.save(out, to)
    conflicts_csv(filled.conflicts, out.with_name("conflicts.csv"))
    return filled


def _caution(run: Path, scored: Scored, own_data: bool) -> None:
    """Say what an uncalibrated run is worth."""
    if not scored.calibration.fitted:
        print(
            f"sarb: {run} is not calibrated, so its probabilities are used as they are; "
            f"run 'sarb calibrate {run}' first to calibrate them",
            file=sys.stderr,
        )
    if scored.out_of_fold is None and own_data:
        print(
            "sarb: many conflicts will be missed, because the model was trained on the labels it judges; "
            f"run 'sarb calibrate {run}' first to get out-of-fold scores",
            file=sys.stderr,
        )
    folder = find_run(run)
    if own_data and folder.out_of_fold is not None and folder.train is not None:
        images = len(folder.out_of_fold)
        if images < len(folder.train):
            print(
                f"sarb: only {images:,} of {len(folder.train):,} training images have out-of-fold scores; "
                "many conflicts in the others will be missed, because the model was trained on their labels",
                file=sys.stderr,
            )


def _say_kept(data: Data, filled_splits: Sequence[str]) -> None:
    """Say which images keep the labels they had."""
    kept = {name: len(part) for name, part in data.splits.items() if name not in filled_splits and len(part)}
    if kept:
        images = " and ".join(f"{count:,} {name} images" for name, count in kept.items())
        print(f"sarb: the labels of {images} are left as given; --split all fills them too", file=sys.stderr)


def _write_wide(data: Data, filled: Filled, out: Path, overwrite: bool) -> None:
    """Write the whole source again, in its own encoding and order, with the gaps filled."""
    new = dict(zip(filled.labels.paths, filled.labels.values, strict=True))
    order = [filled.labels.categories.index(name) for name in data.categories]
    splits: dict[str, Any] = {}
    for name, dataset in data.splits.items():
        values = dataset.labels.values.copy()
        for row, path in enumerate(dataset.labels.paths):
            if path in new:
                values[row] = new[path][order]
        splits[name] = replace(dataset, labels=LabelMatrix(values, data.categories, dataset.labels.paths))
    write(replace(data, **splits), out, overwrite=overwrite)


def suggest_session(
    run: Path,
    budget: int,
    out: Path,
    *,
    source: str | None = None,
    data_options: Mapping[str, str] | None = None,
    which: str = "model",
    weights: Mapping[str, float] | None = None,
    **options: Any,
) -> tuple[Suggestions, Scores]:
    """Everything behind ``sarb suggest``: questions about the training images, and their scores."""
    data = run_data(run, source, data_options)
    scored = score_splits(run, data, ["train"], which, **options)
    asked = suggest(scored.scores, scored.labels, budget, calibration=scored.calibration, **(weights or {}))
    asked.to_csv(out)
    return asked, scored.scores


def suggest_weights(texts: Mapping[str, str]) -> dict[str, float]:
    """Read ``--weight NAME=NUMBER``; all mistakes in one message."""
    problems = list[str]()
    weights = dict[str, float]()
    for name, text in texts.items():
        if name not in WEIGHTS:
            problems.append(unknown_name("weight", name, WEIGHTS))
            continue
        try:
            weights[name] = float(text)
        except ValueError:
            problems.append(f"--weight {name}={text}: expected a number")
    if problems:
        raise ConfigError(problems)
    return weights
