"""Calibration: logits to calibrated probabilities, and a threshold per category. Needs no torch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sarb.errors import DataError, SarbError, check_choice, check_type, did_you_mean
from sarb.files import atomic_write, json_text
from sarb.labelling.decisions import decide, extreme
from sarb.labelling.platt import Known, fit_platt, fit_temperature, sigmoid
from sarb.labelling.reliability import base_rates, brier_score, calibration_error, reliability_table
from sarb.labelling.thresholds import HALF, LEVELS, level_counts
from sarb.labels import LabelMatrix
from sarb.runs.checks import WrongValueError, read_checked
from sarb.runs.schema import CALIBRATION, MOST_BYTES
from sarb.scores import Scores

Floats = NDArray[np.float64]
Knots = tuple[Floats, Floats]

METHODS = ("platt", "temperature", "isotonic")
#: the method of a calibration that changes nothing
UNCALIBRATED = "none"
FORMAT = 1
AGAIN = "run 'sarb calibrate' to write a new one"
#: kind -> strength; a weaker calibration does not replace a stronger one of the same weights
KINDS = {"held-out": 1, "validation": 1, "out-of-fold": 2}
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
        thresholds: (C,) a label is present at or above this calibrated probability, see ``decisions.py``.
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
        kind: which labels it was fitted on, one of ``KINDS``: those of validation images, out-of-fold scores of all
            known labels, or any others that were held out.
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
    kind: str = "held-out"

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

    def stronger_than(self, other: Calibration) -> bool:
        """Whether its labels say more than those of another one."""
        return KINDS[self.kind] > KINDS[other.kind]

    @property
    def probabilities_are(self) -> str:
        """Which probabilities these are, in words."""
        return f"calibrated ({self.method}) on {self.source}" if self.fitted else "not calibrated"

    @property
    def thresholds_are(self) -> str:
        """Where the thresholds come from, in words."""
        if not self.fitted:
            return f"{HALF:g} for all categories"
        if (self.thresholds == HALF).all():
            return f"{HALF:g} for all categories, because others were no better on the same labels"
        return "one per category, best F1 on the same labels"

    def __str__(self) -> str:
        return f"probabilities: {self.probabilities_are}; thresholds: {self.thresholds_are}"

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

    def present(self, scores: Scores) -> NDArray[np.bool_]:
        """(N, C) whether the probability reaches the threshold of its category."""
        return np.asarray(self(scores) >= self.ordered(scores.categories).thresholds)

    def decided(self, scores: Scores) -> list[list[tuple[str, float]]]:
        """Per image the (name, probability) of categories that reach their threshold, most probable first."""
        p = self(scores)
        order = np.argsort(-p, axis=1, kind="stable")
        return [
            [(scores.categories[place], float(row[place])) for place in places if present[place]]
            for row, places, present in zip(p, order, self.present(scores), strict=True)
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
            "kind": self.kind,
            "source": self.source,
            "levels": self.counts.shape[2],
            **({"weights": self.weights} if self.weights else {}),
        }
        return {**head, **self.figures, "categories": rows}

    def to_bytes(self) -> bytes:
        """Content of ``thresholds.json`` as text."""
        return json_text(self.to_dict()).encode()

    def save(self, path: str | Path) -> None:
        """Write ``thresholds.json``."""
        with atomic_write(path, "wb") as file:
            file.write(self.to_bytes())

    @classmethod
    def load(cls, path: str | Path) -> Calibration:
        """Read what :meth:`save` wrote."""
        try:
            stored = read_checked(Path(path), CALIBRATION, MOST_BYTES)
        except DataError as error:
            raise SarbError(f"{error}; {AGAIN}") from error
        return cls._of(stored, path)

    @classmethod
    def from_dict(cls, content: Mapping[str, Any], path: str | Path) -> Calibration:
        """Read the content of :meth:`to_dict`; ``path`` is named in errors."""
        try:
            CALIBRATION(content, "")
        except WrongValueError as error:
            raise SarbError(f"{path}: cannot be read as a calibration: {error}") from error
        return cls._of(content, path)

    @classmethod
    def _of(cls, content: Mapping[str, Any], path: str | Path) -> Calibration:
        """Take apart what has passed the schema."""
        stored = dict(content)
        rows = stored.pop("categories")
        levels = stored.pop("levels")
        if stored.pop("format") > FORMAT:
            raise SarbError(f"{path}: written by a newer sarb; please upgrade")
        names = tuple(row["category"] for row in rows)
        if len(set(names)) < len(names):
            raise SarbError(f"{path}: 'categories' must have different names; {AGAIN}")
        slope, offset, thresholds = (
            np.array([row[name] for row in rows], np.float64) for name in ("slope", "offset", "threshold")
        )
        counts = np.zeros((2, len(rows), levels), np.int64)
        for place, row in enumerate(rows):
            for which, field_name in enumerate(("present_at", "absent_at")):
                for level, count in row[field_name].items():
                    counts[
                        which, place, _level(level, levels, f"{path}: 'categories[{place}].{field_name}'")
                    ] = count
        source = stored.pop("source")
        return cls(
            names,
            slope,
            offset,
            thresholds,
            stored.pop("method"),
            source,
            counts,
            _knots(rows, path),
            {name: value for name, value in stored.items() if name not in ("weights", "kind")},
            stored.get("weights", ""),
            stored.get("kind", _older_kind(source)),
        )


def _level(text: str, levels: int, where: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 4 or int(text) >= levels:
        raise SarbError(f"{where} has the level '{text[:20]}', expected 0 to {levels - 1}; {AGAIN}")
    return int(text)


def _knots(rows: Sequence[Mapping[str, Any]], path: str | Path) -> tuple[Knots, ...]:
    """The curves of all categories, or none."""
    curves = [
        tuple(np.array(values, np.float64) for values in row["knots"]) for row in rows if "knots" in row
    ]
    rising = all(
        0 < len(x) == len(y) and (np.diff(x) >= 0).all() and ((y >= 0) & (y <= 1)).all() for x, y in curves
    )
    if not rising or len(curves) not in (0, len(rows)):
        raise SarbError(
            f"{path}: 'knots' must be a rising curve of probabilities, in every category or in none; {AGAIN}"
        )
    return tuple((x, y) for x, y in curves)


def _older_kind(source: str) -> str:
    """The kind of a file from before kinds, from its description."""
    return next((kind for kind in ("out-of-fold", "validation") if kind in source), "held-out")


def _sparse(counts: NDArray[np.int64]) -> dict[str, int]:
    return {str(level): int(counts[level]) for level in np.flatnonzero(counts)}


def calibrate(
    scores: Scores,
    labels: LabelMatrix,
    *,
    method: str = "platt",
    source: str = "held-out labels",
    kind: str = "held-out",
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
        kind: ``held-out``, ``validation`` or ``out-of-fold``, see :class:`Calibration`.
        seed: of the five parts.
    """
    check_choice("calibration method", method, METHODS)
    check_choice("kind of calibration", kind, KINDS)
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
    decided = decide(after, labels, part)
    return Calibration(
        fitted.categories,
        fitted.slope,
        fitted.offset,
        decided.thresholds,
        method,
        source,
        level_counts(after, labels),
        fitted.knots,
        {
            **figures({"before": scores.probabilities, "after": after, "base_rate": base}, labels),
            "OF1": {"half": decided.half, "chosen": decided.chosen},
            "extreme": extreme(decided.thresholds, fitted(scores), labels),
            **fitted.figures,
        },
        kind=kind,
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
    check_type("scores", scores, Scores, "Scores, which sarb.predict(model, images) returns")
    check_type("labels", labels, LabelMatrix, "a LabelMatrix, such as train.labels")
    if scores.categories != labels.categories:
        raise DataError("scores and labels must have the same categories in the same order")
    if scores.paths != labels.paths:
        raise DataError(
            "scores and labels must be for the same images in the same order; "
            f"got scores for {len(scores):,} images and labels for {len(labels):,}"
        )


def _fit(scores: Scores, labels: LabelMatrix, method: str) -> Calibration:
    """The fit alone; thresholds 0.5."""
    known = Known.of(scores.logits, labels.values)
    size = len(scores.categories)
    if method == "temperature":
        slope = np.full(size, fit_temperature(known))
        offset = np.zeros(size)
        found = {}
    else:
        platt = fit_platt(known, size)
        slope, offset = platt.each.T
        found = {"shared": platt.shared.tolist(), "spread": np.sqrt(platt.spread).tolist()}
    knots: tuple[Knots, ...] = ()
    if method == "isotonic":
        scaled = slope[known.category] * known.logit + offset[known.category]
        knots = _curves(known._replace(logit=scaled), size)
    return Calibration(
        scores.categories, slope, offset, np.full(size, HALF), method, knots=knots, figures=found
    )


def _curves(known: Known, categories: int) -> tuple[Knots, ...]:
    """An isotonic curve per category; categories with few known labels share one curve."""
    shared = _isotonic(known.logit, known.value)
    curves = []
    for start, stop in pairwise(known.bounds(categories)):
        logit, value = known.logit[start:stop], known.value[start:stop]
        enough = min(np.count_nonzero(value == kind) for kind in (0, 1)) >= ISOTONIC_LEAST
        curves.append(_isotonic(logit, value) if enough else shared)
    return tuple(curves)


def _isotonic(x: Floats, y: Floats) -> Knots:
    """Isotonic regression of y on x, bounded away from 0 and 1, which n labels cannot prove."""
    from sklearn.isotonic import IsotonicRegression

    edge = 1 / (len(x) + 2)
    fitted = IsotonicRegression(y_min=edge, y_max=1 - edge, out_of_bounds="clip").fit(x, y)
    return fitted.X_thresholds_.astype(np.float64), fitted.y_thresholds_.astype(np.float64)
