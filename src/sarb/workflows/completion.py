"""``sarb complete`` and ``sarb suggest``: fill the gaps, or choose which of them to ask about."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sarb.data import Data, Dataset
from sarb.data.writers.rewrite import Reading, rewrite
from sarb.errors import ConfigError, DataError, check_choice, unknown_name
from sarb.files import is_stdout
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
from sarb.workflows.outputs import are_questions, check_output
from sarb.workflows.seen import known_as

#: lists the given labels that look wrong, beside the completed ones
CONFLICTS_FILE = "conflicts.csv"
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
        learned_as: N names under which the run learned these images; empty for those it did not.
        sizes: how many of the N images are of each split, in their order.
    """

    scores: Scores
    labels: LabelMatrix
    out_of_fold: Scores | None
    calibration: Calibration
    learned_as: Sequence[str]
    sizes: Mapping[str, int]


def score_splits(
    run: Path,
    data: Data,
    splits: Sequence[str],
    which: str,
    *,
    own_data: bool,
    cache_all: bool = False,
    **options: Any,
) -> Scored:
    """Score the images of these splits.

    ``which``: ``model`` scores with the trained model; ``oof`` takes the out-of-fold score of a training
    image instead. ``own_data``: the run was trained on these data, so the features of their splits are
    in the cache. ``cache_all`` keeps those of all splits of other data too, not only of the training images.
    """
    check_choice("kind of scores", which, ("model", "oof"))
    model = load_model(run)
    folder = find_run(run)
    if which == "oof" and folder.out_of_fold is None:
        raise ConfigError([f"{run}: has no out-of-fold scores; 'sarb calibrate {run}' makes them"])
    plain: list[Scores] = []
    judged: list[NDArray[np.float32]] = []
    labels: list[LabelMatrix] = []
    learned: list[str] = []
    skipped: list[tuple[str, str]] = []
    for split in splits:
        dataset = match_categories(model, data.splits[split])
        cache = folder.cached and (cache_all or own_data or split == "train")
        scores = predict(model, dataset, cache=cache, unreadable="skip", **options)
        skipped += scores.skipped
        scores, known = both(scores, dataset.labels)
        plain.append(scores)
        labels.append(known)
        names_there = _learned_as(folder, dataset, known, own_data, split)
        learned += names_there
        judged.append(_replaced(scores, folder, names_there))
    names = [path for part in labels for path in part.paths]
    better = Scores(np.concatenate(judged), model.categories, names, skipped)
    return Scored(
        better
        if which == "oof"
        else Scores(np.concatenate([part.logits for part in plain]), model.categories, names, skipped),
        LabelMatrix(np.concatenate([part.values for part in labels]), model.categories, names),
        None if folder.out_of_fold is None else better,
        model.calibration(),
        learned,
        {split: len(part) for split, part in zip(splits, labels, strict=True)},
    )


def _learned_as(
    folder: RunFolder, dataset: Dataset, scored: LabelMatrix, own_data: bool, split: str
) -> list[str]:
    """The name under which the run learned each scored image; another split of its own data has other images."""
    if own_data and split != "train":
        return [""] * len(scored)
    names = dict(zip(dataset.labels.paths, known_as(folder, dataset, own=own_data), strict=True))
    return [names[path] for path in scored.paths]


def _replaced(scores: Scores, folder: RunFolder, learned_as: Sequence[str]) -> NDArray[np.float32]:
    """Logits, out-of-fold where the run has the image."""
    known = folder.out_of_fold
    if known is None or known.categories != scores.categories:
        return scores.logits
    logits = scores.logits.copy()
    rows = {path: row for row, path in enumerate(known.paths)}
    pairs = [(row, rows[path]) for row, path in enumerate(learned_as) if path in rows]
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
    if out.name == CONFLICTS_FILE:
        raise DataError(f"{out}: the conflicts are written to a file of this name; choose another one")
    if out.exists() and not overwrite and not is_stdout(out):
        raise DataError(f"{out}: exists already; add --overwrite to replace it")
    data = run_data(run, source, data_options)
    split = split or ("train" if to == "wide" else "all")
    check_choice("split", split, ["all", *data.splits])
    chosen = list(data.splits) if split == "all" else [split]
    scored = score_splits(run, data, chosen, which, own_data=source is None, **options)
    _caution(run, scored, own_data=source is None)
    filled = complete(
        scored.scores,
        scored.labels,
        scored.calibration,
        min_confidence,
        min_precision,
        out_of_fold=scored.out_of_fold,
    )
    conflicts = _conflicts_file(filled, out, overwrite)
    _say_test(scored.sizes.get("test", 0) if len(chosen) > 1 else 0, filled)
    if to == "wide":
        written = _write_wide(data, filled, chosen, out, overwrite)
        _say_kept(data, chosen)
        if not is_stdout(out):
            _say_reading(written)
    else:
        filled.save(out, to)
    if conflicts is not None:
        conflicts_csv(filled.conflicts, conflicts)
    return filled


def _conflicts_file(filled: Filled, out: Path, overwrite: bool) -> Path | None:
    """``conflicts.csv`` beside ``out``; a file of its own if that one is of another completion, and kept.

    None where the labels are printed.
    """
    if is_stdout(out):
        count = len(filled.conflicts)
        print(
            f"sarb: {count:,} conflicts are not listed; --out FILE writes them beside FILE", file=sys.stderr
        )
        return None
    usual = out.with_name(CONFLICTS_FILE)
    if not usual.exists() or usual.read_bytes() == conflicts_csv(filled.conflicts).encode():
        return usual
    if overwrite:
        print(f"sarb: {usual}: replaced", file=sys.stderr)
        return usual
    own = out.with_name(f"{out.stem}.{CONFLICTS_FILE}")
    if own.exists():
        raise DataError(
            f"{own}: exists already, and so does {usual.name}; add --overwrite to replace {usual.name}"
        )
    print(f"sarb: {usual} is of another completion and is kept; the conflicts are in {own}", file=sys.stderr)
    return own


def _caution(run: Path, scored: Scored, own_data: bool) -> None:
    """Say which probabilities are used, and what an uncalibrated run is worth."""
    if scored.calibration.fitted:
        print(f"sarb: probabilities: {scored.calibration.probabilities_are}", file=sys.stderr)
    else:
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


def _say_test(images: int, filled: Filled) -> None:
    """Say how many of the filled labels are of test photos, which nobody should train on."""
    count = int((filled.present | filled.absent)[len(filled.labels) - images :].sum())  # they come last
    if count:
        print(
            f"sarb: {count:,} of the filled labels are of test photos; --split train leaves those out",
            file=sys.stderr,
        )


def _say_kept(data: Data, filled_splits: Sequence[str]) -> None:
    """Say which images keep the labels they had."""
    kept = {name: len(part) for name, part in data.splits.items() if name not in filled_splits and len(part)}
    if kept:
        images = " and ".join(f"{count:,} {name} images" for name, count in kept.items())
        print(
            f"sarb: the labels of {images} are left as given and not counted; --split all fills them too",
            file=sys.stderr,
        )


def _say_reading(written: Reading) -> None:
    """Say how to read a wide table."""
    if written.foreign:
        why = f"labels of '{written.foreign}' cannot be written in their own format, so this is a table of words"
        print(f"sarb: {why}; it is read without the options of '{written.foreign}'", file=sys.stderr)
    print(f"sarb: to read it: {written.command('sarb', 'data', 'check')}", file=sys.stderr)


def _write_wide(data: Data, filled: Filled, chosen: Sequence[str], out: Path, overwrite: bool) -> Reading:
    """Write the whole source again, in its own form, with the gaps filled."""
    order = [filled.labels.categories.index(name) for name in data.categories]
    rows = iter(zip(filled.labels.paths, filled.labels.values, strict=True))
    path, values = next(rows, ("", None))
    splits: dict[str, Any] = {}
    for name in chosen:  # in the order in which they were scored; two splits may use a name for two images
        labels = data.splits[name].labels
        new = labels.values.copy()
        for row, label_path in enumerate(labels.paths):
            if values is not None and label_path == path:  # otherwise it could not be read
                new[row] = values[order]
                path, values = next(rows, ("", None))
        splits[name] = replace(data.splits[name], labels=LabelMatrix(new, data.categories, labels.paths))
    return rewrite(replace(data, **splits), out, overwrite=overwrite)


def suggest_session(
    run: Path,
    budget: int | None,
    out: Path,
    *,
    source: str | None = None,
    data_options: Mapping[str, str] | None = None,
    which: str = "model",
    weights: Mapping[str, float] | None = None,
    **options: Any,
) -> tuple[Suggestions, Scores]:
    """Everything behind ``sarb suggest``: questions about the training images, and their scores."""
    check_output(out, are_questions, "questions of 'sarb suggest'")
    data = run_data(run, source, data_options)
    scored = score_splits(run, data, ["train"], which, own_data=source is None, **options)
    measured = _measured(find_run(run), scored) if which == "model" else {}
    given: dict[str, Any] = {**measured, **(weights or {})}
    asked = suggest(scored.scores, scored.labels, budget, calibration=scored.calibration, **given)
    asked.to_csv(out)
    return asked, scored.scores


def _measured(folder: RunFolder, scored: Scored) -> dict[str, Any]:
    """Out-of-fold scores and their parts for :func:`sarb.suggest`; none if some images have no such score."""
    known = folder.out_of_fold
    parts = folder.config.get("out_of_fold") or scored.calibration.figures.get("parts")
    if known is None or parts is None or not set(scored.learned_as) <= set(known.paths):
        return {}
    return {"out_of_fold": scored.out_of_fold, "parts": int(parts)}


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
