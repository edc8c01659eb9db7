"""Metrics: pure functions of scores (N, C) and labels (N, C) in {-1, 0, +1}.

Scores are logits, so the decision threshold is 0 (probability 0.5). An unknown entry is never scored: it is
neither a hit nor a miss, whatever its score. Averages are percentages 0 to 100; only
:func:`average_precision` and :func:`precision_recall` speak in fractions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sarb.errors import DataError
from sarb.labels import ABSENT, PRESENT, UNKNOWN, LabelMatrix

Floats = NDArray[np.float64]
ScoreArray = NDArray[np.float32] | NDArray[np.float64]
Labels = NDArray[np.int8]
Counts = NDArray[np.int64]
Mask = NDArray[np.bool_]
Decide = Callable[[Floats], Sequence[Mask]]

#: how many categories the ``_top3`` rules let an image have
TOP = 3
#: rows looked at together, which fit the cache; scores transposed together, and the most columns (a cache
#: line)
ROWS = 4096
COLUMN_BUDGET = 1 << 25
MOST_COLUMNS = 16


class Curve(NamedTuple):
    """A precision-recall curve, one point per distinct score, highest score first. All three have shape
    (P,).
    """

    precision: Floats
    recall: Floats
    threshold: Floats


def average_precision(
    scores: ArrayLike, labels: LabelMatrix | ArrayLike, interpolated: bool = False
) -> Floats:
    """Average precision of every category, (C,) fractions, nan for a category without a known positive.

    Plain (as scikit-learn): AP = Σ_k (R_k − R_{k−1}) P_k over the distinct scores k, highest first.
    Interpolated (all points, VOC 2010+): P_k is replaced by max_{j ≥ k} P_j. Entries with equal scores enter
    together, so their order in the file cannot matter.

    Args:
        scores: (N, C), higher means more likely present.
        labels: (N, C) in {-1, 0, +1}; entries with 0 are left out.
        interpolated: use the precision envelope.

    >>> average_precision([[3.0], [2.0], [1.0]], [[1], [-1], [1]]).round(4).tolist()
    [0.8333]
    """
    return _average_precisions(*_checked(scores, labels))[1 if interpolated else 0]


def precision_recall(scores: ArrayLike, labels: ArrayLike) -> Curve:
    """Precision and recall at every distinct score of one category; scores and labels have shape (N,).

    Without a known positive the recall is 0 throughout; without a known entry the curve has no point.
    """
    column, values = _checked(np.asarray(scores)[..., None], np.asarray(labels)[..., None])
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
    """Return every number of the paper's tables.

    mAP (plain), mAP_interpolated, and from decisions OP OR OF1 (all entries pooled) and CP CR CF1 (means over
    categories), three times: scores ≥ threshold; ``_top3`` the image's three highest scores if also ≥
    threshold; ``_top3_raw`` the three highest, whatever they are. The three are taken over **all**
    categories of the image (a tie goes to the earlier category); only then are unknown entries left out of
    the counts.

    A category never predicted has precision 0. One without a known positive is left out of mAP and CR and
    counted in ``categories_without_positive``; it still counts in CP, where every prediction of it is wrong.
    0/0 is 0, except that a mAP over no category is nan.

    Args:
        scores: (N, C) logits.
        labels: (N, C) in {-1, 0, +1}.
        threshold: one number, or one per category (C,).
    """
    scores, values = _checked(scores, labels)
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
    """One row per category: AP, AP_interpolated, precision, recall, F1 (percentages) and the counts of its
    labels.

    AP, AP_interpolated, recall and F1 are nan for a category without a known positive.
    """
    scores, values = _checked(scores, labels)
    if categories is None:
        own = labels.categories if isinstance(labels, LabelMatrix) else None
        categories = own or [str(index) for index in range(scores.shape[1])]
    if len(categories) != scores.shape[1]:
        raise DataError(f"there are {len(categories)} category names for {scores.shape[1]} columns of scores")
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
    """Plain and interpolated AP of every category, each (C,), from one sort per category."""
    rows, categories = scores.shape
    result = np.full((2, categories), np.nan)
    width = min(MOST_COLUMNS, max(1, COLUMN_BUDGET // max(1, rows)))
    for first in range(0, categories, width):
        columns = slice(first, first + width)
        pairs = zip(_columns(scores[:, columns]), _columns(values[:, columns]), strict=True)
        result[:, columns] = np.array([_category_precisions(score, value) for score, value in pairs]).T
    return result[0], result[1]


def _category_precisions(score: ScoreArray, value: Labels) -> tuple[float, float]:
    """Plain and interpolated AP of one category; score and value have shape (N,).

    Both need the precision, #positives ≥ s / #known ≥ s, at the scores s of positives only: it falls between
    two of them. Going up from the lowest positive, the envelope is the running maximum.
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
    """For every positive, lowest score first, the number of entries with a smaller score."""
    # sorting values is several times faster than sorting indices, which pays for searching up to n / 4
    # positives
    if 4 * np.count_nonzero(present) < len(present):
        return np.searchsorted(np.sort(score), np.sort(score[present]))
    order = np.argsort(score)
    return _first_of_equals(score[order])[np.flatnonzero(present[order])]


def _first_of_equals(ordered: NDArray[Any]) -> Counts:
    """For every entry of a sorted array, the place of the first entry equal to it."""
    positions = np.arange(len(ordered))
    same = ordered[1:] == ordered[:-1]
    if same.any():
        positions[1:][same] = 0
        np.maximum.accumulate(positions, out=positions)
    return positions


def _columns(matrix: NDArray[Any]) -> NDArray[Any]:
    """Transpose into memory, (N, C) to (C, N), a block of rows at a time: four times as fast as all rows at
    once.
    """
    result = np.empty(matrix.shape[::-1], matrix.dtype)
    for rows in _blocks(len(matrix)):
        result[:, rows] = matrix[rows].T
    return result


def _blocks(rows: int) -> Iterator[slice]:
    """Cut the rows into blocks of at most ``ROWS``."""
    return (slice(first, first + ROWS) for first in range(0, rows, ROWS))


def _decision_metrics(hits: Counts, predicted: Counts, positives: Counts) -> dict[str, float]:
    """OP OR OF1 CP CR CF1 in percent, from counts per category (C,) over known entries."""
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
    """Count for R rules right predictions (R, C), predictions on known entries (R, C), and known positives
    (C,).
    """
    rules = len(decide(np.zeros((0, scores.shape[1]))))
    hits, predicted = (np.zeros((rules, scores.shape[1]), np.int64) for _ in range(2))
    for rows in _blocks(len(scores)):
        present = values[rows] == PRESENT
        known = values[rows] != UNKNOWN
        for rule, decision in enumerate(decide(scores[rows].astype(np.float64))):
            hits[rule] += np.count_nonzero(decision & present, axis=0)
            predicted[rule] += np.count_nonzero(decision & known, axis=0)
    return hits, predicted, np.count_nonzero(values == PRESENT, axis=0)


def _three_rules(scores: Floats, limit: Floats) -> tuple[Mask, ...]:
    """Decide by threshold, by threshold among the highest, and by the highest alone."""
    above = scores >= limit
    highest = _highest(scores, TOP)
    return above, above & highest, highest


def _highest(scores: Floats, count: int) -> Mask:
    """Mask of the ``count`` highest scores of every row; among equals the earlier category wins."""
    mask = np.zeros(scores.shape, np.bool_)
    left = scores.copy()
    rows = np.arange(len(scores))
    for _ in range(min(count, scores.shape[1])):
        column = left.argmax(axis=1)  # the first of equals
        mask[rows, column] = True
        left[rows, column] = -np.inf
    return mask


def _ratio(numerator: ArrayLike, denominator: ArrayLike, undefined: float = 0.0) -> Floats:
    """Divide, with ``undefined`` where the denominator is 0, and no warning."""
    top = np.asarray(numerator, np.float64)
    bottom = np.asarray(denominator, np.float64)
    result = np.full(top.shape, undefined)
    np.divide(top, bottom, out=result, where=bottom > 0)
    return result


def _mean_percent(fractions: Floats, empty: float) -> float:
    """Mean of the entries that are not nan, in percent."""
    defined = fractions[~np.isnan(fractions)]
    return 100 * float(defined.mean()) if len(defined) else empty


def _harmonic(first: float, second: float) -> float:
    """F1 of a precision and a recall; 0/0 is 0."""
    return 2 * first * second / (first + second) if first + second > 0 else 0.0


def _thresholds(threshold: float | ArrayLike, categories: int) -> Floats:
    """Check a threshold: one number or one per category."""
    array = np.asarray(threshold, np.float64)
    if array.shape not in ((), (categories,)) or np.isnan(array).any():
        raise DataError(
            f"threshold must be one number or one per category ({categories}), got shape {array.shape}"
        )
    return array


def _checked(scores: ArrayLike, labels: LabelMatrix | ArrayLike) -> tuple[ScoreArray, Labels]:
    """Scores as float32 (if they are) or float64 and labels as int8, both (N, C), or a clear error."""
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
            f"({np.count_nonzero(~np.isfinite(array))} such entries); a training that diverged gives such scores"
        )
    if not all(_are_labels(values[rows]).all() for rows in _blocks(len(values))):
        wrong = values[~_are_labels(values)][0]
        raise DataError(
            f"a label is 1 (present), -1 (absent) or 0 (unknown), got {wrong}; see LabelMatrix.from_codes"
        )
    return array, values.astype(np.int8, copy=False)


def _are_labels(values: NDArray[Any]) -> Mask:
    """Mask of the entries that are one of the three labels; np.isin takes ten times as long."""
    return np.asarray((values == PRESENT) | (values == ABSENT) | (values == UNKNOWN))
