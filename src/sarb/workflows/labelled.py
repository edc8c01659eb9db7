"""What the sub-commands share: the data of a run, and scores beside labels."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from sarb.data import Data, Dataset, load
from sarb.errors import ConfigError, DataNote, SarbError
from sarb.labels import LabelMatrix
from sarb.runs.folder import LABELS, RunFolder
from sarb.runs.lookup import hub_id, missing
from sarb.scores import Scores


def run_source(
    run: Path, source: str | None = None, options: Mapping[str, Any] | None = None
) -> tuple[str, dict[str, Any], Mapping[str, Any]]:
    """Source, options and record of the data a run was trained on; or another source, without a record."""
    if not run.exists() and (source is None or not hub_id(run)):
        raise missing(run)
    if source is not None:
        return source, dict(options or {}), {}
    record = RunFolder(run).data_record
    if "source" not in record:
        raise ConfigError([f"{run}: does not say which data it was trained on; add --data SRC"])
    return record["source"], {**record["options"], **(options or {})}, record


def run_data(run: Path, source: str | None = None, options: Mapping[str, Any] | None = None) -> Data:
    """Load the data a run was trained on, with the same labels hidden; or load another source unchanged."""
    given = source
    source, options, record = run_source(run, source, options)
    with warnings.catch_warnings():
        if given is None and record:  # how the table is read was said when the run was trained
            warnings.filterwarnings("ignore", category=DataNote)
        data = load(source, **options)
    return hidden(
        data, record.get("known", 1), record.get("single_positive", False), record.get("mask_seed", 0)
    )


def hidden(data: Data, known: float, single_positive: bool, seed: int) -> Data:
    """Hide labels if that was asked for."""
    return data.hide(known, seed, single_positive) if known < 1 or single_positive else data


def trained_on(run: Path, train: Dataset) -> Dataset:
    """The training images of a run with the labels it learned from; those of validation images unknown."""
    used = RunFolder(run).train
    if used is None:
        raise SarbError(f"{run}: not a run folder with {LABELS}, so its training cannot be repeated")
    if used.categories != train.categories or not set(used.paths) <= set(train.labels.paths):
        raise SarbError(f"{run}: these are not the data it was trained on (other images or categories)")
    rows = {path: row for row, path in enumerate(train.labels.paths)}
    values = np.zeros(train.labels.shape, np.int8)
    values[[rows[path] for path in used.paths]] = used.values
    return replace(train, labels=LabelMatrix(values, train.categories, train.labels.paths))


def both(scores: Scores, labels: LabelMatrix) -> tuple[Scores, LabelMatrix]:
    """The images that are in both, in the order of the labels."""
    rows = {path: row for row, path in enumerate(scores.paths)}
    inside = np.array([path in rows for path in labels.paths], bool)
    labels = labels.take(inside)
    return scores.take(np.array([rows[path] for path in labels.paths], np.int64)), labels
