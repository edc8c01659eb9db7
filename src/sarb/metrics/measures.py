"""Metrics: pure functions of scores (N, C) and labels (N, C) in {-1, 0, +1}.

Scores are logits, so the decision threshold is 0 (probability 0.5). Unknown entries are ignored: they count
neither as hits nor as misses. Averages are percentages, 0 to 100; only :func:`average_precision` and
:func:`precision_recall` return fractions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sarb.errors import DataError
from sarb.labels import ABSENT, PRESENT, UNKNOWN, LabelMatrix, not_a_label

Floats = NDArray[np.float64]
ScoreArray = NDArray[np.float32] | NDArray[np.float64]
Labels = NDArray[np.int8]
Counts = NDArray[np.int64]
Mask = NDArray[np.bool_]
Decide = Callable[[Floats], Sequence[Mask]]

#: number of categories per image in the ``_top3`` rules
TOP = 3
#: rows per block, which fit into the CPU cache
ROWS = 4096
#: scores that are transposed at once, and the largest number of columns at once (a cache line)
COLUMN_BUDGET = 1 << 25
MOST_COLUMNS = 16


class Curve(NamedTuple):
    """A precision-recall curve: one point per distinct score, highest first; each array has shape (P,)."""

    precision: Floats
    recall: Floats
    threshold: Floats


def average_precision(
    scores: ArrayLike, labels: LabelMatrix | ArrayLike, interpolated: bool = False
) -> Floats:
    """Average precision of each category, (C,) fractions; nan for a category without a known positive.

    Plain (as in scikit-learn): AP = Σ_k (R_k − R_{k−1}) P_k over the distinct scores k, highest first.
    Interpolated (all points, VOC 2010+): P_k is replaced by max_{j ≥ k} P_j. Entries with equal scores are
    counted together, so their order in the file does not matter.

    Args:
        scores: (N, C), higher means more likely present.
        labels: (N, C) in {-1, 0, +1}; entries with 0 are ignored.
        interpolated: use the precision envelope.

    >>> average_precision([[3.0], [2.0], [1.0]], [[1], [-1], [1]]).round(4).tolist()
    [0.8333]
    """
    return _average_precisions(*checked(scores, labels))[1 if interpolated else 0]


def precision_recall(scores: ArrayLike, labels: ArrayLike) -> Curve:
    """Precision and recall at each distinct score of one category; scores and labels have shape (N,).

    Without a known positive the recall is always 0; without a known entry the curve has no points.
    """
    column, values = checked(np.asarray(scores)[..., None], np.asarray(labels)[..., None])
    known = values[:, 0] != UNKNOWN
    score = column[known, 0].astype(np.float64)
    present = values[known, 0] == PRESENT
    order = np.argsort(-score, kind="stable")
    score = score[order]
    hits = np.cumsum(present[order], dtype=np.float64)
    last = np.flatnonzero(np.append(score[1:] != score[:-1], True)[: len(score)])
    total = np.full(len(last), np.count_nonzero(present))
    return Curve(_ratio(hits[last], last + 1), _ratio(hits[last], total), score[last])


def evaluate(
    scores: ArrayLike, labels: LabelMatrix | ArrayLike, threshold: float | ArrayLike = 0.0
) -> dict[str, float]:
    """Return all numbers of the paper's tables.

    These are mAP (plain), mAP_interpolated, and from decisions OP OR OF1 (over all entries) and CP CR CF1
    (averaged over categories). Decisions follow three rules: score ≥ threshold; ``_top3``, among the three
    highest scores of the image and ≥ threshold; ``_top3_raw``, among the three highest. The three highest are
    selected from **all** categories of the image (ties go to the earlier category); unknown entries are
    ignored only afterwards, in the counts.

    A category that is never predicted has precision 0. A category without a known positive is excluded from
    mAP and CR and counted in ``categories_without_positive``; it still counts in CP, where all its
    predictions are wrong. 0/0 is 0, but mAP over no categories is nan.

    Args:
        scores: (N, C) logits.
        labels: (N, C) in {-1, 0, +1}.
        threshold: a number, or one per category (C,).
    """
    scores, values = checked(scores, labels)
    limit = _thresholds(threshold, scores.shape[1])
    plain, interpolated = _average_precisions(scores, values)
    result = {"mAP": _mean_percent(plain, np.nan), "mAP_interpolated": _mean_percent(interpolated, np.nan)}
    hits, predicted, positives = _counts(lambda block: _three_rules(block, limit), scores, values)
    for rule, suffix in enumerate(("", "_top3", "_top3_raw")):
        numbers = _decision_metrics(hits[rule], predicted[rule], positives)
        result |= {name + suffix: value for name, value in numbers.items()}
    return result | {
        "images": scores.shape[0],
        "categories": scores.shape[1],
        "categories_without_positive": int(np.count_nonzero(positives == 0)),
        "known_entries": int(np.count_nonzero(values)),
    }


def per_category(
    scores: ArrayLike,
    labels: LabelMatrix | ArrayLike,
    categories: Sequence[str] | None = None,
    threshold: float | ArrayLike = 0.0,
) -> list[dict[str, Any]]:
    """Return one row per category: AP, AP_interpolated, precision, recall, F1 in percent, and label counts.

    AP, AP_interpolated, recall and F1 are nan for a category without a known positive.
    """
    scores, values = checked(scores, labels)
    if categories is None:
        own = labels.categories if isinstance(labels, LabelMatrix) else None
        categories = own or [str(index) for index in range(scores.shape[1])]
    if len(categories) != scores.shape[1]:
        raise DataError(f"got {len(categories)} category names for {scores.shape[1]} columns of scores")
    limit = _thresholds(threshold, scores.shape[1])
    (hits,), (predicted,), positives = _counts(lambda block: [block >= limit], scores, values)
    plain, interpolated = _average_precisions(scores, values)
    columns = {
        "AP": 100 * plain,
        "AP_interpolated": 100 * interpolated,
        "precision": 100 * _ratio(hits, predicted),
        "recall": 100 * _ratio(hits, positives, undefined=np.nan),
        "F1": np.where(positives > 0, 100 * _ratio(2 * hits, predicted + positives), np.nan),
        "positives": positives,
        "negatives": np.count_nonzero(values == ABSENT, axis=0),
        "unknown": np.count_nonzero(values == UNKNOWN, axis=0),
    }
    lists = {name: column.tolist() for name, column in columns.items()}
    return [
        {"category": str(name)} | {key: column[index] for key, column in lists.items()}
        for index, name in enumerate(categories)
    ]


def _average_precisions(scores: ScoreArray, values: Labels) -> tuple[Floats, Floats]:
    """Return the plain and interpolated AP of all categories, each (C,), with one sort per category."""
    rows, categories = scores.shape
    result = np.full((2, categories), np.nan)
    width = min(MOST_COLUMNS, max(1, COLUMN_BUDGET // max(1, rows)))
    for first in range(0, categories, width):
        columns = slice(first, first + width)
        result[:, columns] = _block_precisions(scores[:, columns], values[:, columns])
    return result[0], result[1]


def _block_precisions(scores: ScoreArray, values: Labels) -> Floats:
    """Return the plain and interpolated AP of some categories (2, C); their copy is gone before the next one is."""
    pairs = zip(_columns(scores), _columns(values), strict=True)
    return np.array([_category_precisions(score, value) for score, value in pairs]).T


def _category_precisions(score: ScoreArray, value: Labels) -> tuple[float, float]:
    """Return the plain and interpolated AP of one category; score and value have shape (N,).

    Both need the precision, #positives ≥ s / #known ≥ s, only at the scores s of positives: between two
    positives it only falls. Going up from the lowest positive, the envelope is the running maximum.
    """
    known = value != UNKNOWN
    if not known.all():
        score = score[known]
        value = value[known]
    below = _entries_below(score, value == PRESENT)
    if not len(below):
        return np.nan, np.nan
    precision = (len(below) - _first_of_equals(below)) / (len(score) - below)
    return float(precision.mean()), float(np.maximum.accumulate(precision).mean())


def _entries_below(score: ScoreArray, present: Mask) -> Counts:
    """Return the number of entries with a smaller score for each positive, lowest score first."""
    # sorting values is several times faster than sorting indices; with fewer than n / 4 positives this makes
    # up for the search
    if 4 * np.count_nonzero(present) < len(present):
        return np.searchsorted(np.sort(score), np.sort(score[present]))
    order = np.argsort(score)
    return _first_of_equals(score[order])[np.flatnonzero(present[order])]


def _first_of_equals(ordered: NDArray[Any]) -> Counts:
    """Return, for each entry of a sorted array, the position of the first entry equal to it."""
    positions = np.arange(len(ordered))
    same = ordered[1:] == ordered[:-1]
    if same.any():
        positions[1:][same] = 0
        np.maximum.accumulate(positions, out=positions)
    return positions


def _columns(matrix: NDArray[Any]) -> NDArray[Any]:
    """Copy (N, C) to (C, N), block by block, which is four times as fast as all rows at once."""
    result = np.empty(matrix.shape[::-1], matrix.dtype)
    for rows in _blocks(len(matrix)):
        result[:, rows] = matrix[rows].T
    return result


def _blocks(rows: int) -> Iterator[slice]:
    """Split the rows into blocks of at most ``ROWS``."""
    return (slice(first, first + ROWS) for first in range(0, rows, ROWS))


def _decision_metrics(hits: Counts, predicted: Counts, positives: Counts) -> dict[str, float]:
    """Return OP OR OF1 CP CR CF1 in percent, from counts per category (C,) over known entries."""
    overall_precision = float(_ratio(hits.sum(), predicted.sum()))
    overall_recall = float(_ratio(hits.sum(), positives.sum()))
    category_precision = _mean_percent(_ratio(hits, predicted), 0.0)
    category_recall = _mean_percent(_ratio(hits, positives, undefined=np.nan), 0.0)
    return {
        "OP": 100 * overall_precision,
        "OR": 100 * overall_recall,
        "OF1": _harmonic(100 * overall_precision, 100 * overall_recall),
        "CP": category_precision,
        "CR": category_recall,
        "CF1": _harmonic(category_precision, category_recall),
    }


def _counts(decide: Decide, scores: ScoreArray, values: Labels) -> tuple[Counts, Counts, Counts]:
    """Count hits (R, C) and predictions (R, C) of R rules on known entries, and known positives (C,)."""
    rules = len(decide(np.zeros((0, scores.shape[1]))))
    hits, predicted = (np.zeros((rules, scores.shape[1]), np.int64) for _ in range(2))
    positives = np.zeros(scores.shape[1], np.int64)
    for rows in _blocks(len(scores)):
        present = values[rows] == PRESENT
        known = values[rows] != UNKNOWN
        positives += np.count_nonzero(present, axis=0)
        for rule, decision in enumerate(decide(scores[rows].astype(np.float64))):
            hits[rule] += np.count_nonzero(decision & present, axis=0)
            predicted[rule] += np.count_nonzero(decision & known, axis=0)
    return hits, predicted, positives


def _three_rules(scores: Floats, limit: Floats) -> tuple[Mask, ...]:
    """Decide by threshold, by threshold among the three highest, and by the three highest alone."""
    above = scores >= limit
    highest = _highest(scores, TOP)
    return above, above & highest, highest


def _highest(scores: Floats, count: int) -> Mask:
    """Return a mask of the ``count`` highest scores of each row; ties go to the earlier category."""
    mask = np.zeros(scores.shape, np.bool_)
    left = scores.copy()
    rows = np.arange(len(scores))
    for _ in range(min(count, scores.shape[1])):
        column = left.argmax(axis=1)  # the first one of a tie
        mask[rows, column] = True
        left[rows, column] = -np.inf
    return mask


def _ratio(numerator: ArrayLike, denominator: ArrayLike, undefined: float = 0.0) -> Floats:
    """Divide without warnings; the result is ``undefined`` where the denominator is 0."""
    top = np.asarray(numerator, np.float64)
    bottom = np.asarray(denominator, np.float64)
    result = np.full(top.shape, undefined)
    np.divide(top, bottom, out=result, where=bottom > 0)
    return result


def _mean_percent(fractions: Floats, empty: float) -> float:
    """Return the mean of the entries that are not nan, in percent; ``empty`` if there are none."""
    defined = fractions[~np.isnan(fractions)]
    return 100 * float(defined.mean()) if len(defined) else empty


def _harmonic(first: float, second: float) -> float:
    """Return the F1 of a precision and a recall; 0/0 is 0."""
    return 2 * first * second / (first + second) if first + second > 0 else 0.0


def _thresholds(threshold: float | ArrayLike, categories: int) -> Floats:
    """Return a threshold as an array, after checking that it is a number or one per category."""
    array = np.asarray(threshold, np.float64)
    if array.shape not in ((), (categories,)) or np.isnan(array).any():
        raise DataError(
            f"threshold must be a number or one per category ({categories}), got shape {array.shape}"
        )
    return array


def checked(scores: ArrayLike, labels: LabelMatrix | ArrayLike) -> tuple[ScoreArray, Labels]:
    """Return scores as float32 (if they are) or float64 and labels as int8, both (N, C), or raise."""
    array = np.asarray(scores)
    values = labels.values if isinstance(labels, LabelMatrix) else np.asarray(labels)
    if array.ndim != 2 or array.shape != values.shape:
        raise DataError(
            f"scores and labels must be matrices (images × categories) of the same shape, "
            f"got scores {array.shape} and labels {values.shape}"
        )
    array = array.astype(np.float32 if array.dtype == np.float32 else np.float64, copy=False)
    if not all(np.isfinite(array[rows]).all() for rows in _blocks(len(array))):
        row, column = np.argwhere(~np.isfinite(array))[0]
        raise DataError(
            f"scores must be finite numbers, got {array[row, column]} for image {row}, category {column} "
            f"({np.count_nonzero(~np.isfinite(array))} such entries); did the training diverge?"
        )
    if not all(_are_labels(values[rows]).all() for rows in _blocks(len(values))):
        raise DataError(not_a_label(values[~_are_labels(values)][0]))
    return array, values.astype(np.int8, copy=False)


def _are_labels(values: NDArray[Any]) -> Mask:
    """Return a mask of the entries that are one of the three labels; np.isin is ten times slower."""
    return np.asarray((values == PRESENT) | (values == ABSENT) | (values == UNKNOWN))
