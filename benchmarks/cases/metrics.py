"""Average precision and the co-occurrence graph in the sizes of COCO; scale.py has other sizes."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from benchmarks.harness import Case, lazy, seconds
from sarb.counts import _packed
from sarb.labels import ABSENT, PRESENT, UNKNOWN, LabelMatrix
from sarb.metrics import average_precision
from sarb.metrics.measures import _average_precisions, checked

#: mean share of present labels per category in COCO
PRESENT_SHARE = 0.036


def random_scores(
    images: int, categories: int, dtype: Any = np.float32
) -> tuple[NDArray[Any], NDArray[np.int8]]:
    """Return scores (N, C) with a fairly good ranking, and labels (N, C), all known."""
    random = np.random.default_rng(0)
    labels = random_labels(images, categories)
    scores = random.standard_normal(labels.shape, np.float32) + 1.5 * (labels == PRESENT)
    return scores.astype(dtype), labels


def random_labels(images: int, categories: int, known: float = 1.0) -> NDArray[np.int8]:
    """Return labels (N, C): the first category is in half of the images, the others in 3.6 % on average."""
    random = np.random.default_rng(1)
    share = np.minimum(0.5, PRESENT_SHARE * random.gamma(2.0, 0.5, categories) * min(1, 80 / categories))
    share[0] = 0.5
    labels = np.empty((images, categories), np.int8)
    for first in range(0, images, 10_000):
        rows = labels[first : first + 10_000]
        rows[:] = np.where(random.random(rows.shape, np.float32) < share, PRESENT, ABSENT)
        rows[random.random(rows.shape, np.float32) >= known] = UNKNOWN
    return labels


def literal_precision(score: Iterable[float], label: Iterable[int]) -> tuple[float, float]:
    """Return plain and interpolated AP of one category, computed down the ranking; scores have no ties."""
    ranking = sorted(((s, y) for s, y in zip(score, label, strict=True) if y != UNKNOWN), reverse=True)
    hits = 0
    precisions = []
    for rank, (_, y) in enumerate(ranking, 1):
        if y == PRESENT:
            hits += 1
            precisions.append(hits / rank)
    best = 0.0
    envelope = []
    for precision in reversed(precisions):
        best = max(best, precision)
        envelope.append(best)
    return sum(precisions) / hits, sum(envelope) / hits


def literal_graph(values: NDArray[np.int8], images: int | None = None) -> NDArray[np.float64]:
    """Return P(j present | i present) among known j, κ = 0, counted image by image."""
    categories = values.shape[1]
    both = np.zeros((categories, categories))
    given = np.zeros((categories, categories))
    for row in values[:images]:
        for i in range(categories):
            if row[i] == PRESENT:
                for j in range(categories):
                    both[i, j] += row[j] == PRESENT
                    given[i, j] += row[j] != UNKNOWN
    return _shares(both, given)


def outer_graph(values: NDArray[np.int8], images: int | None = None) -> NDArray[np.float64]:
    """Return the same from two outer products per image, without the inner loops."""
    categories = values.shape[1]
    both = np.zeros((categories, categories))
    given = np.zeros((categories, categories))
    for row in values[:images]:
        present = row == PRESENT
        both += np.outer(present, present)
        given += np.outer(present, row != UNKNOWN)
    return _shares(both, given)


def _shares(both: NDArray[np.float64], given: NDArray[np.float64]) -> NDArray[np.float64]:
    graph = np.divide(both, given, out=np.zeros_like(both), where=given > 0)
    np.fill_diagonal(graph, 1)
    return graph


def cases(quick: bool = False) -> list[Case]:
    """COCO's number of validation images for the metrics, and of training images for the graph."""
    images, categories = (300, 5) if quick else (40_504, 80)
    train = 500 if quick else 82_783
    dtypes = (np.float32, np.float64)
    return [
        *(_loop_case(images, categories, dtype) for dtype in dtypes),
        *(_scikit_learn_case(images, categories, dtype) for dtype in dtypes),
        *(_graph_case(train, categories, known) for known in (1.0, 0.1)),
        _graph_case(train, categories, 1.0, "two outer products per image", outer_graph),
    ]


def _loop_case(images: int, categories: int, dtype: Any) -> Case:
    made = lazy(lambda: random_scores(images, categories, dtype))
    part = max(1, categories // 40)

    def literal() -> list[tuple[float, float]]:
        scores, labels = made()
        return [literal_precision(scores[:, c].tolist(), labels[:, c].tolist()) for c in range(part)]

    def ours() -> object:
        return _average_precisions(*checked(*made()))

    def detail() -> str:
        ratio = _median(ours) / _median(lambda: _sorts(made()[0], np.argsort))
        return f"{ratio:.2f}× as long as np.argsort of each column"

    return Case(
        f"mAP: plain and interpolated, {np.dtype(dtype)}, {images:,} × {categories}",
        literal=literal,
        ours=ours,
        floor=lambda: _sorts(made()[0]),
        scale=categories / part,
        note="literal: a Python loop down each ranking; floor: np.sort of each column; "
        "goal: at most 2 × the floor",
        detail=detail,
    )


def _sorts(scores: NDArray[Any], sort: Callable[[NDArray[Any]], NDArray[Any]] = np.sort) -> None:
    for column in scores.T:
        sort(column)


def _median(work: Callable[[], object]) -> float:
    return statistics.median(seconds(work) for _ in range(5))


def _scikit_learn_case(images: int, categories: int, dtype: Any) -> Case:
    made = lazy(lambda: random_scores(images, categories, dtype))

    def literal() -> list[float]:
        from sklearn.metrics import average_precision_score

        scores, labels = made()
        return [average_precision_score(labels[:, c] == PRESENT, scores[:, c]) for c in range(categories)]

    return Case(
        f"mAP: scikit-learn, {np.dtype(dtype)}, {images:,} × {categories}",
        literal=literal,
        ours=lambda: average_precision(*made()),
        floor=lambda: _sorts(made()[0]),
        note="literal: average_precision_score of each column; floor: np.sort of each column; "
        "goal: at least 3 ×",
    )


def _graph_case(
    images: int,
    categories: int,
    known: float,
    name: str = "three Python loops",
    loop: Callable[[NDArray[np.int8], int], object] = literal_graph,
) -> Case:
    def build() -> tuple[LabelMatrix, list[NDArray[np.float32]]]:
        values = random_labels(images, categories, known)
        return LabelMatrix(values, [str(c) for c in range(categories)]), list(_packed(values))

    made = lazy(build)
    part = max(1, images // 100)

    def floor() -> None:
        present, packed = made()[1]
        with threadpool_limits(1, "blas"):
            present.T @ packed

    return Case(
        f"co-occurrence: {name}, {known:.0%} known, {images:,} × {categories}",
        literal=lambda: loop(made()[0].values, part),
        ours=lambda: made()[0].cooccurrence(),
        floor=floor,
        scale=images / part,
        note="floor: the one product of float32 matrices that are ready, one thread; goal: at least 100 ×",
    )
