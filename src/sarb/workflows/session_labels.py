"""What ``sarb calibrate``, ``complete`` and ``suggest`` do, in terms of the library."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sarb.errors import ConfigError, DataError, SarbError, check_choice, unknown_name
from sarb.files import read_json
from sarb.inference.hub import hub_id, missing
from sarb.labelling.calibration import FILE, Calibration, calibrate, load_calibration
from sarb.labelling.completion import Filled, complete
from sarb.labelling.folds import FILE as OUT_OF_FOLD
from sarb.labelling.folds import on_scale, out_of_fold, run_options
from sarb.labelling.formats import conflicts_csv
from sarb.labelling.suggestion import Suggestions, suggest
from sarb.labels import LabelMatrix
from sarb.report.report import FEW_POSITIVES
from sarb.scores import Scores

if TYPE_CHECKING:
    from sarb.data.dataset import Data, Dataset
    from sarb.model import Model

FORMATS = ("long", "wide", "open_images", "label_studio")


def run_source(
    run: Path, source: str | None = None, options: Mapping[str, Any] | None = None
) -> tuple[str, dict[str, Any], Mapping[str, Any]]:
    """Source, its options and the record of the data a run was trained on; or another source, without a
    record.
    """
    if not run.exists() and (source is None or not hub_id(run)):
        raise missing(run)
    if source is not None:
        return source, dict(options or {}), {}
    config = run / "config.json"
    stored = read_json(config).get("data", {}) if config.is_file() else {}
    if "source" not in stored:
        raise ConfigError([f"{run}: does not say which data it was trained on; add --data SRC"])
    return stored["source"], {**stored["options"], **(options or {})}, stored


def run_data(run: Path, source: str | None = None, options: Mapping[str, Any] | None = None) -> Data:
    """Load the data a run was trained on, with the same labels hidden; or another source, as it is."""
    from sarb.data import load

    source, options, stored = run_source(run, source, options)
    data = load(source, **options)
    return data.hide(stored["known"], stored["mask_seed"]) if stored.get("known", 1) < 1 else data


def trained_on(run: Path, train: Dataset) -> Dataset:
    """The training images of a run with the labels it has learned from; those of its validation images
    unknown.
    """
    if not (run / "labels.npz").is_file():
        raise SarbError(f"{run}: not a run folder with labels.npz, so its training cannot be repeated")
    used = LabelMatrix.load(run / "labels.npz")
    if used.categories != train.categories or not set(used.paths) <= set(train.labels.paths):
        raise SarbError(f"{run}: the data are no longer those it was trained on; give another run or data")
    rows = {path: row for row, path in enumerate(train.labels.paths)}
    values = np.zeros(train.labels.shape, np.int8)
    values[[rows[path] for path in used.paths]] = used.values
    return replace(train, labels=LabelMatrix(values, train.categories, train.labels.paths))


def store(run: Path, calibration: Calibration) -> None:
    """Write ``thresholds.json`` into the run folder and its model folder, which also works alone."""
    calibration.save(run / FILE)
    if (run / "model").is_dir():
        calibration.save(run / "model" / FILE)


def calibrate_validation(
    run: Path, model: Model, train: Dataset, valid: float | Dataset | None, cache: bool
) -> bool:
    """After a training with validation images: calibrate on their known labels; say whether there were
    enough.
    """
    from sarb.batches.sources import Split
    from sarb.data.dataset import Dataset
    from sarb.inference.prediction import match_categories, predict

    if not valid:
        return False
    seed = int(read_json(run / "config.json")["settings"]["seed"])
    held = valid if isinstance(valid, Dataset) else Split.of(train, valid, seed).valid
    held = match_categories(model, held)
    if not (held.labels.positives.sum() and held.labels.negatives.sum()):
        return False
    # cached features belong to a whole data set, of which the images split off are a part
    whole = held if isinstance(valid, Dataset) or not cache else train
    scores = predict(model, whole, cache=cache, skipped=[])
    store(run, calibrate(*_both(scores, held.labels), source="known labels of the validation images"))
    return True


def _both(scores: Scores, labels: LabelMatrix) -> tuple[Scores, LabelMatrix]:
    """The images that are in both, in the order of the labels."""
    rows = {path: row for row, path in enumerate(scores.paths)}
    inside = np.array([path in rows for path in labels.paths], bool)
    labels = labels.take(inside)
    return scores.take(np.array([rows[path] for path in labels.paths], np.int64)), labels


def calibrate_session(
    run: Path, *, folds: int = 3, method: str = "platt", seed: int = 0, progress: bool = True
) -> Calibration:
    """Everything behind ``sarb calibrate``: out-of-fold scores of the training labels, ``oof.npz``,
    thresholds.
    """
    from sarb.inference.prediction import predict
    from sarb.model import load_model

    train = trained_on(run, run_data(run).train)
    parts = run / "folds"
    scores = out_of_fold(
        train, folds, part_seed=seed, out=parts, progress=progress, **run_options(run, parts)
    )
    final = predict(load_model(run), train, cache=_cached(run), skipped=[])
    (final, labels), (scores, _) = _both(final, train.labels), _both(scores, train.labels)
    scores = on_scale(scores, final, labels)
    scores.save(run / OUT_OF_FOLD)
    source = f"out-of-fold scores of the known training labels, {folds} parts"
    calibration = calibrate(scores, labels, method=method, source=source)
    store(run, calibration)
    shutil.rmtree(parts, ignore_errors=True)
    return calibration


def describe(calibration: Calibration) -> str:
    """The figures of a calibration in a few lines."""
    lines = [f"calibrated ({calibration.method}) on {calibration.source}"]
    for name, key in (("calibration error", "calibration_error"), ("Brier score", "brier_score")):
        found = calibration.figures.get(key, {})
        parts = (f"{kind.replace('_', ' ')} {value:.4f}" for kind, value in found.items())
        lines.append(f"{name}: " + ", ".join(parts))
    return "\n".join([*lines, *_doubt(calibration)])


def _doubt(calibration: Calibration) -> list[str]:
    """A sentence where the figures say little, or speak against the calibration."""
    positives = int(calibration.counts[0].sum())
    error = calibration.figures.get("calibration_error", {})
    if positives < FEW_POSITIVES:
        return [
            f"only {positives} of the held-out labels are present: differences between these numbers are noise"
        ]
    if error.get("after", 0) >= error.get("before", np.inf):
        return ["no better than before: the probabilities were already as good as these labels can tell"]
    return []


def scored(
    run: Path, data: Data, splits: Sequence[str], which: str, **options: Any
) -> tuple[Scores, LabelMatrix, Scores | None, list[tuple[str, str]]]:
    """Scores and labels of the readable images of these splits, their out-of-fold scores if there are any
    for all.

    ``which``: ``model`` scores with the trained model; ``oof`` takes the out-of-fold score of a training
        image instead.
    """
    from sarb.inference.prediction import match_categories, predict
    from sarb.model import load_model

    check_choice("kind of scores", which, ("model", "oof"))
    model = load_model(run)
    skipped = list[tuple[str, str]]()
    known = Scores.load(run / OUT_OF_FOLD) if (run / OUT_OF_FOLD).is_file() else None
    if which == "oof" and known is None:
        raise ConfigError([f"{run}: has no out-of-fold scores; 'sarb calibrate {run}' makes them"])
    logits = []
    judged = []
    values = []
    names = list[str]()
    for split in splits:
        dataset = match_categories(model, data.splits[split])
        scores = predict(model, dataset, cache=_cached(run) and split == "train", skipped=skipped, **options)
        scores, labels = _both(scores, dataset.labels)
        better = _replaced(scores, known) if split == "train" else scores.logits
        logits.append(better if which == "oof" else scores.logits)
        judged.append(better)
        values.append(labels.values)
        names += labels.paths
    labels = LabelMatrix(np.concatenate(values), model.categories, names)
    held = Scores(np.concatenate(judged), model.categories, names) if known is not None else None
    return Scores(np.concatenate(logits), model.categories, names), labels, held, skipped


def _cached(run: Path) -> bool:
    """Whether the training images of a run are in the feature cache."""
    return (run / "config.json").is_file() and bool(read_json(run / "config.json").get("cached"))


def _replaced(scores: Scores, known: Scores | None) -> np.ndarray[Any, np.dtype[np.float32]]:
    """Logits with those of ``known`` where it has the image."""
    if known is None or known.categories != scores.categories:
        return scores.logits
    logits = scores.logits.copy()
    rows = {path: row for row, path in enumerate(known.paths)}
    both = [(row, rows[path]) for row, path in enumerate(scores.paths) if path in rows]
    if both:
        here, there = np.array(both).T
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
) -> tuple[Filled, list[tuple[str, str]]]:
    """Everything behind ``sarb complete``; returns what was filled and the images that could not be read.

    ``split`` says which images are filled, ``all`` or one split. A wide table may be trained on, so that its
    test images keep the given labels unless they are asked for.
    """
    check_choice("format of completed labels", to, FORMATS)
    if out.exists() and not overwrite:
        raise DataError(f"{out}: exists already; add --overwrite to replace it")
    data = run_data(run, source, data_options)
    calibration = load_calibration(run)
    if calibration is None:
        print(
            f"sarb: {run} is not calibrated: its probabilities are taken at their word; "
            f"'sarb calibrate {run}' mends that",
            file=sys.stderr,
        )
    split = split or ("train" if to == "wide" else "all")
    check_choice("split", split, ["all", *data.splits])
    chosen = list(data.splits) if split == "all" else [split]
    scores, labels, held, skipped = scored(run, data, chosen, which, **options)
    if held is None and source is None:
        print(
            "sarb: conflicts come from a model that was trained on the labels it judges and so misses many; "
            f"'sarb calibrate {run}' gives it out-of-fold scores",
            file=sys.stderr,
        )
    filled = complete(scores, labels, calibration, min_confidence, min_precision, out_of_fold=held)
    if to == "wide":
        _write_wide(data, filled, out, overwrite)
        kept = {name: len(part) for name, part in data.splits.items() if name not in chosen and len(part)}
        if kept:
            what = " and ".join(f"{count:,} {name} images" for name, count in kept.items())
            print(
                f"sarb: the labels of {what} are left as given; --split all fills them too", file=sys.stderr
            )
    else:
        filled.save(out, to)
    conflicts_csv(filled.conflicts, out.with_name("conflicts.csv"))
    return filled, skipped


def _write_wide(data: Data, filled: Filled, out: Path, overwrite: bool) -> None:
    """Write the whole source again, in its own encoding and order, with the gaps filled."""
    from sarb.data.writers.write import write

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
) -> tuple[Suggestions, list[tuple[str, str]]]:
    """Everything behind ``sarb suggest``: questions about the training images."""
    data = run_data(run, source, data_options)
    scores, labels, _, skipped = scored(run, data, ["train"], which, **options)
    found = suggest(scores, labels, budget, calibration=load_calibration(run), **(weights or {}))
    found.to_csv(out)
    return found, skipped


def suggest_weights(texts: Mapping[str, str]) -> dict[str, float]:
    """Read ``--weight NAME=NUMBER``; all mistakes in one message."""
    names = ("finds", "uncertainty", "cooccurrence", "rarity", "diversity")
    problems = list[str]()
    weights = dict[str, float]()
    for name, text in texts.items():
        if name not in names:
            problems.append(unknown_name("weight", name, names))
            continue
        try:
            weights[name] = float(text)
        except ValueError:
            problems.append(f"--weight {name}={text}: expected a number")
    if problems:
        raise ConfigError(problems)
    return weights
