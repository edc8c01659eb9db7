"""Calibration: logits to calibrated probabilities, and a threshold per category. Needs no torch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sarb.errors import DataError, SarbError, check_choice, did_you_mean
from sarb.files import read_json, write_json
from sarb.labelling.platt import Known, fit_platt, fit_temperature, sigmoid
from sarb.labelling.reliability import base_rates, brier_score, calibration_error, reliability_table
from sarb.labelling.thresholds import LEVELS, best_f1, level_counts
from sarb.labels import PRESENT, LabelMatrix
from sarb.scores import Scores

Floats = NDArray[np.float64]
Knots = tuple[Floats, Floats]

METHODS = ("platt", "temperature", "isotonic")
#: the method of a calibration that changes nothing
UNCALIBRATED = "none"
#: the threshold of a probability that nothing else is known about
HALF = 0.5
FORMAT = 1
#: a category with at least this many known labels of each kind gets its own isotonic curve
ISOTONIC_LEAST = 30
#: the figures are cross-validated over this many parts of the held-out labels
PARTS = 5


@dataclass(frozen=True, eq=False)
class Calibration:
    """How to read a model's logits.

    Attributes:
        categories: C names.
        slope: (C,) of the logit.
        offset: (C,); probability = σ(slope · logit + offset), then through ``knots`` if there are any.
        thresholds: (C,) a label is present at or above this calibrated probability (best F1).
        method: platt, temperature or isotonic.
        source: description of the held-out labels it was fitted on.
        counts: (2, C, L) of the held-out present and absent entries by calibrated probability, see
            ``thresholds.py``.
        knots: isotonic curves, one (x, y) per category, of σ⁻¹ of the scaled logit; empty for the other
            methods.
        figures: calibration error and Brier score before, after and of the base rate; reliability tables;
            spread.
        weights: SHA-256 of the weights it was fitted to, which are the only ones it applies to; empty before
            it is stored with a model.
    """

    categories: tuple[str, ...]
    slope: Floats
    offset: Floats
    thresholds: Floats
    method: str = "platt"
    source: str = "held-out labels"
    counts: NDArray[np.int64] = field(default_factory=lambda: np.zeros((2, 0, LEVELS), np.int64))
    knots: tuple[Knots, ...] = ()
    figures: Mapping[str, Any] = field(default_factory=dict)
    weights: str = ""

    @classmethod
    def identity(cls, categories: Sequence[str]) -> Calibration:
        """Probabilities as the network gives them, threshold 0.5: what an uncalibrated model has."""
        size = len(categories)
        return cls(
            tuple(categories),
            slope=np.ones(size),
            offset=np.zeros(size),
            thresholds=np.full(size, HALF),
            method=UNCALIBRATED,
            source="nothing",
            counts=np.zeros((2, size, LEVELS), np.int64),
        )

    @property
    def fitted(self) -> bool:
        """False for the :meth:`identity`."""
        return self.method != UNCALIBRATED

    def __repr__(self) -> str:
        return f"Calibration({self.method}, {len(self.categories)} categories, {self.source})"

    def __call__(self, scores: Scores) -> Floats:
        """Calibrated probabilities (N, C) of scores of the same categories, in the order of the scores."""
        own = self.ordered(scores.categories)
        scaled = own.slope * scores.logits.astype(np.float64) + own.offset
        for column, (x, y) in enumerate(own.knots):
            scaled[:, column] = np.interp(scaled[:, column], x, y)
        return scaled if own.knots else sigmoid(scaled)

    def scores(self, scores: Scores) -> Scores:
        """Scores whose probabilities are the calibrated ones."""
        if not self.fitted:
            return scores
        p = np.clip(self(scores), 1e-9, 1 - 1e-9)
        return Scores(np.log(p / (1 - p)), scores.categories, scores.paths, scores.skipped)

    def decided(self, scores: Scores) -> list[list[tuple[str, float]]]:
        """Per image the (name, probability) of categories that reach their threshold, most probable first."""
        p = self(scores)
        thresholds = self.ordered(scores.categories).thresholds
        order = np.argsort(-p, axis=1, kind="stable")
        return [
            [
                (scores.categories[place], float(row[place]))
                for place in places
                if row[place] >= thresholds[place]
            ]
            for row, places in zip(p, order, strict=True)
        ]

    def ordered(self, categories: Sequence[str]) -> Calibration:
        """The same calibration with its categories in this order."""
        if tuple(categories) == self.categories:
            return self
        missing = [name for name in categories if name not in self.categories]
        if missing:
            near = did_you_mean(missing[0], self.categories)
            raise SarbError(
                f"the calibration has no category '{missing[0]}'.{near} Run 'sarb calibrate' again"
            )
        order = [self.categories.index(name) for name in categories]
        knots = tuple(self.knots[place] for place in order) if self.knots else ()
        return replace(
            self,
            categories=tuple(categories),
            slope=self.slope[order],
            offset=self.offset[order],
            thresholds=self.thresholds[order],
            counts=self.counts[:, order],
            knots=knots,
        )

    def to_dict(self) -> dict[str, Any]:
        """Content of ``thresholds.json``; counts are kept only where there are any."""
        rows = [
            {
                "category": name,
                "threshold": float(self.thresholds[place]),
                "slope": float(self.slope[place]),
                "offset": float(self.offset[place]),
                "positives": int(self.counts[0, place].sum()),
                "negatives": int(self.counts[1, place].sum()),
                "present_at": _sparse(self.counts[0, place]),
                "absent_at": _sparse(self.counts[1, place]),
                **({"knots": [values.tolist() for values in self.knots[place]]} if self.knots else {}),
            }
            for place, name in enumerate(self.categories)
        ]
        head = {
            "format": FORMAT,
            "method": self.method,
            "source": self.source,
            "levels": self.counts.shape[2],
            **({"weights": self.weights} if self.weights else {}),
        }
        return {**head, **self.figures, "categories": rows}

    def save(self, path: str | Path) -> None:
        """Write ``thresholds.json``."""
        write_json(path, self.to_dict())

    @classmethod
    def load(cls, path: str | Path) -> Calibration:
        """Read what :meth:`save` wrote."""
        try:
            stored = read_json(path)
        except (OSError, ValueError) as error:
            raise _unreadable(path, error) from error
        return cls.from_dict(stored, path)

    @classmethod
    def from_dict(cls, content: Mapping[str, Any], path: str | Path) -> Calibration:
        """Read the content of :meth:`to_dict`; ``path`` is named in errors."""
        try:
            stored = dict(content)
            rows = stored.pop("categories")
            levels = int(stored.pop("levels"))
            if stored.pop("format") > FORMAT:
                raise SarbError(f"{path}: written by a newer sarb; please upgrade")
            slope, offset, thresholds = (
                np.array([row[name] for row in rows], np.float64) for name in ("slope", "offset", "threshold")
            )
            counts = np.array(
                [[_dense(row[kind], levels) for row in rows] for kind in ("present_at", "absent_at")],
                np.int64,
            ).reshape(2, len(rows), levels)
            knots = tuple(
                (np.array(row["knots"][0]), np.array(row["knots"][1])) for row in rows if "knots" in row
            )
            names = tuple(str(row["category"]) for row in rows)
            method = str(stored.pop("method"))
            source = str(stored.pop("source"))
            weights = str(stored.pop("weights", ""))
        except (ValueError, KeyError, TypeError, IndexError) as error:
            raise _unreadable(path, error) from error
        return cls(names, slope, offset, thresholds, method, source, counts, knots, stored, weights)


def _unreadable(path: str | Path, error: Exception) -> SarbError:
    return SarbError(
        f"{path}: cannot be read as a calibration ({error!r}); run 'sarb calibrate' to write a new one"
    )


def _sparse(counts: NDArray[np.int64]) -> dict[str, int]:
    return {str(level): int(counts[level]) for level in np.flatnonzero(counts)}


def _dense(counts: Mapping[str, int], levels: int) -> list[int]:
    return [int(counts.get(str(level), 0)) for level in range(levels)]


def calibrate(
    scores: Scores,
    labels: LabelMatrix,
    *,
    method: str = "platt",
    source: str = "held-out labels",
    seed: int = 0,
) -> Calibration:
    """Fit probabilities and thresholds to held-out known labels.

    Every figure, count and threshold is cross-validated: the images are divided into five parts, and each part
    is measured with the fit on the other four. The returned fit uses all of them.

    Args:
        scores: logits (N, C) by a model that was **not** trained on these labels: of validation images, or
            out-of-fold.
        labels: (N, C), the same images and categories; unknown entries are left out.
        method: ``platt``: slope and offset per category, shrunk to a shared fit, see
            :mod:`sarb.labelling.platt`. ``temperature``: one slope for all. ``isotonic``: a rising step
            curve per category with at least 30 known labels of each kind, on top of ``platt``; the others
            share one.
        source: description of where the labels come from.
        seed: of the five parts.
    """
    check_choice("calibration method", method, METHODS)
    check_fit(scores, labels)
    if not (labels.positives.sum() and labels.negatives.sum()):
        raise DataError(
            "calibration needs known labels of both kinds among the held-out ones, present and absent; "
            f"got {int(labels.positives.sum()):,} present and {int(labels.negatives.sum()):,} absent"
        )
    part = np.random.RandomState(seed).permutation(len(labels)) % PARTS
    after = np.zeros(labels.shape)
    base = np.zeros(labels.shape)
    for number in range(PARTS):
        rest = labels.take(part != number)
        inside = part == number
        if rest.positives.sum() and rest.negatives.sum():
            after[inside] = _fit(scores.take(part != number), rest, method)(scores.take(inside))
        else:  # too few to divide
            after[inside] = scores.take(inside).probabilities
        base[inside] = base_rates(rest)
    fitted = _fit(scores, labels, method)
    counts = level_counts(after, labels)
    return Calibration(
        fitted.categories,
        fitted.slope,
        fitted.offset,
        best_f1(counts),
        method,
        source,
        counts,
        fitted.knots,
        {
            **figures({"before": scores.probabilities, "after": after, "base_rate": base}, labels),
            **fitted.figures,
        },
    )


def figures(probabilities: Mapping[str, Floats], labels: LabelMatrix) -> dict[str, Any]:
    """Mean calibration error and Brier score over categories, and the reliability table, of each kind."""
    return {
        "calibration_error": {
            kind: float(np.nanmean(calibration_error(p, labels))) for kind, p in probabilities.items()
        },
        "brier_score": {kind: float(np.nanmean(brier_score(p, labels))) for kind, p in probabilities.items()},
        "reliability": {
            kind: reliability_table(p, labels) for kind, p in probabilities.items() if kind != "base_rate"
        },
    }


def check_fit(scores: Scores, labels: LabelMatrix) -> None:
    """Raise unless scores and labels are of the same images and categories."""
    if scores.categories != labels.categories:
        raise DataError("scores and labels must have the same categories in the same order")
    if scores.paths != labels.paths:
        raise DataError(
            "scores and labels must be for the same images in the same order; "
            f"got scores for {len(scores):,} images and labels for {len(labels):,}"
        )


def _fit(scores: Scores, labels: LabelMatrix, method: str) -> Calibration:
    """The fit alone; thresholds 0.5."""
    rows, columns = np.nonzero(labels.values)
    value = (labels.values[rows, columns] == PRESENT).astype(np.float64)
    known = Known(scores.logits[rows, columns].astype(np.float64), value, columns)
    size = len(scores.categories)
    if method == "temperature":
        slope = np.full(size, fit_temperature(known))
        offset = np.zeros(size)
        found = {}
    else:
        platt = fit_platt(known, size)
        slope, offset = platt.each.T
        found = {"shared": platt.shared.tolist(), "spread": np.sqrt(platt.spread).tolist()}
    knots = _curves(known._replace(logit=slope[columns] * known.logit + offset[columns]), size) * (
        method == "isotonic"
    )
    return Calibration(
        scores.categories, slope, offset, np.full(size, HALF), method, knots=knots, figures=found
    )


def _curves(known: Known, categories: int) -> tuple[Knots, ...]:
    """An isotonic curve per category; categories with few known labels share one curve."""
    shared = _isotonic(known.logit, known.value)
    curves = []
    for category in range(categories):
        own = known.category == category
        enough = min((known.value[own] == kind).sum() for kind in (0, 1)) >= ISOTONIC_LEAST
        curves.append(_isotonic(known.logit[own], known.value[own]) if enough else shared)
    return tuple(curves)


def _isotonic(x: Floats, y: Floats) -> Knots:
    """Isotonic regression of y on x, bounded away from 0 and 1, which n labels cannot prove."""
    from sklearn.isotonic import IsotonicRegression

    edge = 1 / (len(x) + 2)
    fitted = IsotonicRegression(y_min=edge, y_max=1 - edge, out_of_bounds="clip").fit(x, y)
    return fitted.X_thresholds_.astype(np.float64), fitted.y_thresholds_.astype(np.float64)
