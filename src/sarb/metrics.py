"""Metrics: pure functions of scores (N, C) and labels (N, C) in {-1, 0, +1}.

Scores are logits, so the decision threshold is 0 (probability 0.5). An unknown entry is never scored: it is
neither a hit nor a miss, whatever its score. Averages are percentages 0 to 100; only :func:`average_precision`
and :func:`precision_recall` speak in fractions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sarb.errors import DataError
from sarb.labels import ABSENT, PRESENT, UNKNOWN, LabelMatrix

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

#: how many categories the ``_top3`` rules let an image have
TOP = 3


class Curve(NamedTuple):
    """A precision-recall curve, one point per distinct score, highest score first. All three have shape (P,)."""

    precision: Floats
    recall: Floats
    threshold: Floats


def average_precision(scores: ArrayLike, labels: LabelMatrix | ArrayLike, interpolated: bool = False) -> Floats:
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
    scores, values = _checked(scores, labels)
    order = np.argsort(-scores, axis=0, kind="stable")
    ranked = np.take_along_axis(scores, order, axis=0)
    present = np.take_along_axis(values, order, axis=0) == PRESENT
    absent = np.take_along_axis(values, order, axis=0) == ABSENT
    hits = np.cumsum(present, axis=0, dtype=np.float64)
    precision = _ratio(hits, hits + np.cumsum(absent, axis=0))
    group_end = np.ones(scores.shape, np.bool_)
    group_end[:-1] = ranked[1:] != ranked[:-1]
    if interpolated:
        reached = _from_below(np.maximum, np.where(group_end, precision, 0.0))
    else:
        row = np.arange(len(scores))[:, None]
        end = _from_below(np.minimum, np.where(group_end, row, len(scores)))
        reached = np.take_along_axis(precision, end, axis=0)
    positives = np.count_nonzero(present, axis=0)
    return _ratio((reached * present).sum(axis=0), positives, undefined=np.nan)


def precision_recall(scores: ArrayLike, labels: ArrayLike) -> Curve:
    """Precision and recall at every distinct score of one category; scores and labels have shape (N,).

    Without a known positive the recall is 0 throughout; without a known entry the curve has no point.
    """
    column, values = _checked(np.asarray(scores)[..., None], np.asarray(labels)[..., None])
    known = values[:, 0] != UNKNOWN
    score, present = column[known, 0], values[known, 0] == PRESENT
    order = np.argsort(-score, kind="stable")
    score, hits = score[order], np.cumsum(present[order], dtype=np.float64)
    last = np.flatnonzero(np.append(score[1:] != score[:-1], True)[: len(score)])
    total = np.full(len(last), np.count_nonzero(present))
    return Curve(_ratio(hits[last], last + 1), _ratio(hits[last], total), score[last])


def evaluate(
    scores: ArrayLike, labels: LabelMatrix | ArrayLike, threshold: float | ArrayLike = 0.0
) -> dict[str, float]:
    """Return every number of the paper's tables.

    mAP (plain), mAP_interpolated, and from decisions OP OR OF1 (all entries pooled) and CP CR CF1 (means over
    categories), three times: scores ≥ threshold; ``_top3`` the image's three highest scores if also ≥ threshold;
    ``_top3_raw`` the three highest, whatever they are. The three are taken over **all** categories of the image
    (a tie goes to the earlier category); only then are unknown entries left out of the counts.

    A category never predicted has precision 0. One without a known positive is left out of mAP and CR and counted in
    ``categories_without_positive``; it still counts in CP, where every prediction of it is wrong. 0/0 is 0, except
    that a mAP over no category is nan.

    Args:
        scores: (N, C) logits.
        labels: (N, C) in {-1, 0, +1}.
        threshold: one number, or one per category (C,).
    """
    scores, values = _checked(scores, labels)
    predicted = scores >= _thresholds(threshold, scores.shape[1])
    highest = _highest(scores, TOP)
    positives = np.count_nonzero(values == PRESENT, axis=0)
    result = {
        "mAP": _mean_percent(average_precision(scores, values), np.nan),
        "mAP_interpolated": _mean_percent(average_precision(scores, values, interpolated=True), np.nan),
    }
    for suffix, decision in (("", predicted), ("_top3", predicted & highest), ("_top3_raw", highest)):
        result |= {name + suffix: value for name, value in _decision_metrics(decision, values).items()}
    return result | {
        "images": scores.shape[0],
        "categories": scores.shape[1],
        "categories_without_positive": int(np.count_nonzero(positives == 0)),
        "known_entries": int(np.count_nonzero(values != UNKNOWN)),
    }


def per_category(
    scores: ArrayLike,
    labels: LabelMatrix | ArrayLike,
    categories: Sequence[str] | None = None,
    threshold: float | ArrayLike = 0.0,
) -> list[dict[str, Any]]:
    """One row per category: AP, AP_interpolated, precision, recall, F1 (percentages) and the counts of its labels.

    AP, AP_interpolated, recall and F1 are nan for a category without a known positive.
    """
    scores, values = _checked(scores, labels)
    if categories is None:
        own = labels.categories if isinstance(labels, LabelMatrix) else None
        categories = own or [str(index) for index in range(scores.shape[1])]
    if len(categories) != scores.shape[1]:
        raise DataError(f"there are {len(categories)} category names for {scores.shape[1]} columns of scores")
    predicted = scores >= _thresholds(threshold, scores.shape[1])
    hits, claimed, positives = _counts(predicted, values)
    columns = {
        "AP": 100 * average_precision(scores, values),
        "AP_interpolated": 100 * average_precision(scores, values, interpolated=True),
        "precision": 100 * _ratio(hits, claimed),
        "recall": 100 * _ratio(hits, positives, undefined=np.nan),
        "F1": np.where(positives > 0, 100 * _ratio(2 * hits, claimed + positives), np.nan),
        "positives": positives,
        "negatives": np.count_nonzero(values == ABSENT, axis=0),
        "unknown": np.count_nonzero(values == UNKNOWN, axis=0),
    }
    lists = {name: column.tolist() for name, column in columns.items()}
    return [
        {"category": str(name)} | {key: column[index] for key, column in lists.items()}
        for index, name in enumerate(categories)
    ]


def _decision_metrics(predicted: Mask, values: NDArray[np.int8]) -> dict[str, float]:
    """OP OR OF1 CP CR CF1 in percent of decisions (N, C), over known entries."""
    hits, claimed, positives = _counts(predicted, values)
    overall_precision = float(_ratio(hits.sum(), claimed.sum()))
    overall_recall = float(_ratio(hits.sum(), positives.sum()))
    category_precision = _mean_percent(_ratio(hits, claimed), 0.0)
    category_recall = _mean_percent(_ratio(hits, positives, undefined=np.nan), 0.0)
    return {
        "OP": 100 * overall_precision,
        "OR": 100 * overall_recall,
        "OF1": _harmonic(100 * overall_precision, 100 * overall_recall),
        "CP": category_precision,
        "CR": category_recall,
        "CF1": _harmonic(category_precision, category_recall),
    }


def _counts(predicted: Mask, values: NDArray[np.int8]) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Per category (C,): right predictions, predictions on known entries, known positives."""
    present = values == PRESENT
    hits = np.count_nonzero(predicted & present, axis=0)
    claimed = np.count_nonzero(predicted & (values != UNKNOWN), axis=0)
    return hits, claimed, np.count_nonzero(present, axis=0)


def _highest(scores: Floats, count: int) -> Mask:
    """Mask of the ``count`` highest scores of every row; among equals the earlier category wins."""
    order = np.argsort(-scores, axis=1, kind="stable")[:, :count]
    mask = np.zeros(scores.shape, np.bool_)
    np.put_along_axis(mask, order, True, axis=1)
    return mask


def _from_below(function: np.ufunc, array: NDArray[Any]) -> NDArray[Any]:
    """Running minimum or maximum from the last row upwards."""
    result: NDArray[Any] = function.accumulate(array[::-1], axis=0)[::-1]
    return result


def _ratio(numerator: ArrayLike, denominator: ArrayLike, undefined: float = 0.0) -> Floats:
    """Divide, with ``undefined`` where the denominator is 0, and no warning."""
    top, bottom = np.asarray(numerator, np.float64), np.asarray(denominator, np.float64)
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
        raise DataError(f"threshold must be one number or one per category ({categories}), got shape {array.shape}")
    return array


def _checked(scores: ArrayLike, labels: LabelMatrix | ArrayLike) -> tuple[Floats, NDArray[np.int8]]:
    """Scores as float64 and labels as int8, both (N, C), or a clear error."""
    array = np.asarray(scores)
    values = labels.values if isinstance(labels, LabelMatrix) else np.asarray(labels)
    if array.ndim != 2 or array.shape != values.shape:
        raise DataError(
            f"scores and labels must be matrices (images × categories) of the same shape, "
            f"got scores {array.shape} and labels {values.shape}"
        )
    array = array.astype(np.float64)
    if not np.isfinite(array).all():
        row, column = np.argwhere(~np.isfinite(array))[0]
        raise DataError(
            f"scores must be finite numbers, got {array[row, column]} for image {row}, category {column} "
            f"({np.count_nonzero(~np.isfinite(array))} such entries); a training that diverged gives such scores"
        )
    if not np.isin(values, (PRESENT, ABSENT, UNKNOWN)).all():
        wrong = values[~np.isin(values, (PRESENT, ABSENT, UNKNOWN))][0]
        raise DataError(f"a label is 1 (present), -1 (absent) or 0 (unknown), got {wrong}; see LabelMatrix.from_codes")
    return array, values.astype(np.int8)
