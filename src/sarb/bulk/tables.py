"""Scores and completed labels as Arrow tables, with the columns of the CSV that ``--out FILE`` writes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sarb.errors import DataError, setting
from sarb.labelling.calibration import Calibration
from sarb.labelling.completion import Filled
from sarb.labelling.formats import LONG
from sarb.labels import ABSENT, PRESENT, UNKNOWN, word_of
from sarb.scores import Scores

SOURCES = ("given", "machine", "none")
CODES = (ABSENT, UNKNOWN, PRESENT)


def predicted(raw: Scores, calibration: Calibration, options: Mapping[str, Any]) -> Any:
    """``file_name`` and a probability per category; with ``top_k`` or ``threshold`` a row per label that passes."""
    scores = calibration.scores(raw)
    if options["top_k"] is None and options["threshold"] is None:
        return _wide(scores)
    return _long(raw, scores, calibration.fitted, options["top_k"], options["threshold"])


def check_wide(categories: Sequence[str]) -> None:
    """Raise for a category that has the name of the first column."""
    if "file_name" in categories:
        raise DataError(
            "a category is called 'file_name', like the first column; "
            f"add {setting('top_k', len(categories))} for a long table"
        )


def _wide(scores: Scores) -> Any:
    import pyarrow

    check_wide(scores.categories)
    columns = scores.probabilities.astype(np.float32).T
    arrays = [pyarrow.array(scores.paths, pyarrow.string())]
    arrays += [pyarrow.array(np.ascontiguousarray(column), pyarrow.float32()) for column in columns]
    return pyarrow.Table.from_arrays(arrays, names=["file_name", *scores.categories])


def _long(raw: Scores, scores: Scores, fitted: bool, top_k: int | None, threshold: float | None) -> Any:
    import pyarrow

    ranked = scores.top(max(1, len(scores.categories)) if top_k is None else top_k)
    place = {name: column for column, name in enumerate(raw.categories)}
    rows = [
        (name, label, own[place[label]], p)
        for name, found, own in zip(raw.paths, ranked, raw.probabilities, strict=True)
        for label, p in found
        if p >= (threshold or 0)
    ]
    names, labels, plain, calibrated = zip(*rows, strict=True) if rows else ((), (), (), ())
    columns = {
        "file_name": pyarrow.array(names, pyarrow.string()),
        "label": pyarrow.array(labels, pyarrow.string()),
        "probability": pyarrow.array(plain, pyarrow.float32()),
    }
    if fitted:
        columns["calibrated"] = pyarrow.array(calibrated, pyarrow.float32())
    return pyarrow.table(columns)


def completed(filled: Filled) -> Any:
    """One row per image and category: ``LONG``; the threshold is null where a category is never filled as present."""
    import pyarrow

    images, size = filled.labels.shape
    given = filled.given.values
    now = filled.labels.values
    source = np.where(given != UNKNOWN, 0, np.where(now != UNKNOWN, 1, 2))
    thresholds = np.tile(filled.thresholds, images).astype(np.float32)
    words = [word_of(code) for code in CODES]
    columns = (
        pyarrow.array(np.repeat(np.array(filled.labels.paths, object), size), pyarrow.string()),
        _coded(np.tile(np.arange(size), images), filled.labels.categories),
        _coded(given - ABSENT, words),
        pyarrow.array(filled.scores.probabilities.ravel().astype(np.float32)),
        pyarrow.array(filled.calibrated.ravel().astype(np.float32)),
        _coded(now - ABSENT, words),
        pyarrow.array(thresholds, mask=~np.isfinite(thresholds)),
        _coded(source, SOURCES),
    )
    return pyarrow.Table.from_arrays(columns, names=LONG)


def _coded(numbers: NDArray[Any], words: Any) -> Any:
    """A column of few distinct words."""
    import pyarrow

    codes = pyarrow.array(numbers.ravel().astype(np.int32))
    return pyarrow.DictionaryArray.from_arrays(codes, pyarrow.array(list(words), pyarrow.string()))


def unread(pairs: list[tuple[str, str]]) -> Any:
    """``file_name`` and ``reason`` of images that could not be read."""
    import pyarrow

    names, reasons = zip(*pairs, strict=True)
    return pyarrow.table({"file_name": pyarrow.array(names), "reason": pyarrow.array(reasons)})
