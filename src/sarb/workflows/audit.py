"""``sarb data audit``: duplicates, doubtful labels, faulty images and related categories of a run's data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from sarb.data import Data
from sarb.data.images import MOST_UNREADABLE
from sarb.errors import DataError, check_type, setting
from sarb.files import atomic_write
from sarb.health.categories import related_categories
from sarb.health.duplicates import exact_duplicates, near_duplicates
from sarb.health.findings import Audit, Finding, Images
from sarb.health.looks import Look, look_at_all
from sarb.health.mislabelled import doubtful_labels
from sarb.health.neighbours import directions, nearest
from sarb.health.odd import odd_images
from sarb.health.quality import faulty_images
from sarb.labels import LabelMatrix
from sarb.progress import Progress
from sarb.report.audit_page import audit_page
from sarb.runs.lookup import find_model
from sarb.workflows.completion import Scored, score_splits
from sarb.workflows.labelled import run_data

#: what is written to the folder
PAGE = "audit.html"
TABLE = "audit.csv"


def audit(
    run: str | Path,
    data: Data | None = None,
    *,
    out: str | Path | None = None,
    overwrite: bool = False,
    batch_size: int = 32,
    progress: bool | Progress = False,
) -> Audit:
    """Look for what is wrong with a data set, with the features and scores of a run.

    Args:
        run: run folder. Labels of training images are judged by its out-of-fold scores.
        data: from :func:`sarb.load`; None takes the data the run was trained on.
        out: folder for ``audit.html``, a page with thumbnails, and ``audit.csv``, one row per finding.
        overwrite: replace an earlier audit in ``out``.
        batch_size: images per step of the network.
        progress: show progress on stderr.
    """
    check_type("run", run, (str, Path), "a run folder")
    check_type("data", data, (Data, type(None)), "a Data, from sarb.load")
    run = Path(run)
    if out is not None and not overwrite:
        _check_free(Path(out))
    own_data = data is None
    data = data or run_data(run)
    find_model(run)
    found = _audit(run, data, own_data, Progress.of(progress), batch_size)
    if out is not None:
        _save(found, Path(out))
    return found


def audit_session(
    run: Path,
    out: Path,
    *,
    source: str | None = None,
    data_options: Mapping[str, str] | None = None,
    overwrite: bool = False,
    batch_size: int = 32,
    progress: bool = False,
) -> Audit:
    """Everything behind ``sarb data audit``."""
    if not overwrite:
        _check_free(out)
    data = run_data(run, source, data_options)
    find_model(run)
    found = _audit(run, data, source is None, Progress.of(progress), batch_size)
    _save(found, out)
    return found


def _save(found: Audit, out: Path) -> None:
    page = audit_page(found)
    found.to_csv(out / TABLE)
    with atomic_write(out / PAGE) as file:
        file.write(page)


def _check_free(out: Path) -> None:
    for file in (out / PAGE, out / TABLE):
        if file.exists():
            raise DataError(f"{file}: exists already; add {setting('overwrite')} to replace it")


@dataclass
class _Collected:
    """What one pass over the splits gathers."""

    pooled: list[NDArray[np.float32]] = field(default_factory=list)
    labels: list[Finding] = field(default_factory=list)
    left_out: int = 0


def _audit(run: Path, data: Data, own_data: bool, talk: Progress, batch_size: int) -> Audit:
    """All checks, one after the other; each image file is read once for its pixels, once for its features."""
    images, looks, skipped = _look(data, talk)
    readable = _without_unreadable(data, skipped)
    collected = _score(run, readable, {*images.names}, own_data, talk, batch_size)
    digests = [look.digest for look in looks]
    findings = exact_duplicates(images, digests)
    if len(images) > 1:
        talk.say(f"comparing {len(images):,} images")
        similar = nearest(directions(np.concatenate(collected.pooled)), talk)
        findings += near_duplicates(images, looks, similar, talk)
        odd = odd_images(images, similar)
    else:
        odd = []
    findings += sorted(collected.labels, key=lambda finding: -finding.score)
    findings += [*faulty_images(images, looks), *odd, *related_categories(images.labels)]
    notes = _notes(run, collected)
    return Audit(data.name, images, findings, skipped, notes)


def _look(data: Data, talk: Progress) -> tuple[Images, list[Look], list[tuple[str, str]]]:
    """Look at the files of all splits; the unreadable ones are left out and listed."""
    talk.say(f"looking at {sum(map(len, data.splits.values())):,} images")
    entries = [(split, dataset, row) for split, dataset in data.splits.items() for row in range(len(dataset))]
    results = look_at_all([dataset.root / dataset.labels.paths[row] for _, dataset, row in entries], talk)
    looks: list[Look] = []
    kept = []
    skipped = []
    for entry, result in zip(entries, results, strict=True):
        if isinstance(result, str):
            skipped.append((entry[1].labels.paths[entry[2]], result))
        else:
            looks.append(result)
            kept.append(entry)
    names = [dataset.labels.paths[row] for _, dataset, row in kept]
    values = [dataset.labels.values[row] for _, dataset, row in kept]
    labels = LabelMatrix(np.reshape(values, (len(kept), len(data.categories))), data.categories, names)
    files = [dataset.root / dataset.labels.paths[row] for _, dataset, row in kept]
    return Images(names, files, [split for split, _, _ in kept], labels), looks, skipped


def _without_unreadable(data: Data, skipped: list[tuple[str, str]]) -> Data:
    """The data as they are while the feature cache accepts them; with more bad files, only the good ones."""
    bad = {name for name, _ in skipped}
    total = sum(map(len, data.splits.values()))
    if len(bad) == total:
        raise DataError(f"{data.name}: none of its {total:,} images can be read, the first: {skipped[0][1]}")
    changed: dict[str, Any] = {}
    for split, dataset in data.splits.items():
        good = np.array([name not in bad for name in dataset.labels.paths], bool)
        if np.mean(~good) > MOST_UNREADABLE:
            changed[split] = dataset.take(good)
    return replace(data, **changed)


def _score(
    run: Path, data: Data, names: set[str], own_data: bool, talk: Progress, batch_size: int
) -> _Collected:
    """Features of the images in ``names`` and doubtful labels, split by split, in one pass of the network."""
    collected = _Collected()
    for split, dataset in data.splits.items():
        talk.say(f"features and scores of {len(dataset):,} {split} images")
        vectors: dict[int, NDArray[np.float32]] = {}

        def keep(
            index: NDArray[np.int64], maps: torch.Tensor, vectors: dict[int, NDArray[np.float32]] = vectors
        ) -> None:
            vectors.update(zip(index.tolist(), maps.mean((2, 3)).float().cpu().numpy(), strict=True))

        scored = score_splits(
            run,
            data,
            [split],
            "model",
            own_data=own_data,
            cache_all=True,
            on_maps=keep,
            batch_size=batch_size,
            progress=talk.enabled,
        )
        wanted = [row for row, name in enumerate(dataset.labels.paths) if name in names]
        collected.pooled.append(np.stack([vectors[row] for row in wanted]))
        _judge(run, scored, split, collected)
    return collected


def _judge(run: Path, scored: Scored, split: str, collected: _Collected) -> None:
    """Doubtful labels; those of images which the model was trained on, without out-of-fold scores, are left out."""
    folder = find_model(run)
    trained = set() if folder.train is None else {*folder.train.paths}
    held_out = set() if folder.out_of_fold is None else {*folder.out_of_fold.paths}
    honest = np.array([name not in trained or name in held_out for name in scored.learned_as], bool)
    collected.left_out += int(np.sum(~honest))
    scores = (scored.out_of_fold or scored.scores).take(honest)
    thresholds = scored.calibration.ordered(scores.categories).thresholds
    labels = scored.labels.take(honest)
    collected.labels += doubtful_labels(scored.calibration(scores), labels, thresholds, split)


def _notes(run: Path, collected: _Collected) -> list[str]:
    if not collected.left_out:
        return []
    return [
        f"the labels of {collected.left_out:,} images, because the model was trained on them; "
        f"'sarb calibrate {run}' makes out-of-fold scores"
    ]
