"""The capacity model: sizes, terms, a fit with no negative coefficient, and the check on points held out.

    quantity(sizes) = Σ_t coefficient_t · t(sizes),   t one of TERMS

A peak of memory that is reached at another stage for other sizes is the largest of the products, not their sum.

Sizes: N images (or numbers that are sent), C categories, S side of an image in pixels, B images per batch.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.fits import read_csv

#: more numbers than this are sent more slowly: 16 MB, and the processor's cache has 32
MANY = 4_000_000
#: more pixels than this leave that cache while batch norms are passes of their own
PIXELS = 800_000
#: a term that adds a smaller share than this is rounding
ROUNDING = 1e-9
#: side of an image -> side of a cell of the backbone's grid
STRIDE = 32
#: a larger grid is pooled 2×2 before the head of SSGRL
LARGEST = 7


class Sizes(NamedTuple):
    """Sizes of one point; what a part does not use is 0."""

    N: int = 0
    C: int = 0
    S: int = 0
    B: int = 0

    @property
    def side(self) -> int:
        """Side of the grid that SSGRL's head gets: 7 at 224 and at 448 pixels."""
        side = math.ceil(self.S / STRIDE)
        return side // 2 if side > LARGEST else side


Floats = NDArray[np.float64]
Term = Callable[[Sizes], float]
#: name of a term -> its value
TERMS: Mapping[str, Term] = {
    "1": lambda at: 1.0,
    "N": lambda at: float(at.N),
    "N above 4 million": lambda at: float(at.N * (at.N > MANY)),
    "N from 4 million": lambda at: float(at.N * (at.N >= MANY)),
    "C": lambda at: float(at.C),
    "C²": lambda at: float(at.C**2),
    "N C": lambda at: float(at.N * at.C),
    "N C log N": lambda at: at.N * at.C * math.log(max(at.N, 2)),
    "N S²": lambda at: float(at.N * at.S**2),
    "B S²": lambda at: float(at.B * at.S**2),
    "B S² above 0.8 million": lambda at: max(0.0, at.B * at.S**2 - PIXELS),
    "B S³": lambda at: float(at.B * at.S**3),
    "B C": lambda at: float(at.B * at.C),
    # an image alone has no partner to be blended with
    "blended C": lambda at: float(at.B * at.C * (at.B > 1)),
    "B C²": lambda at: float(at.B * at.C**2),
    "B cells": lambda at: float(at.B * at.side**2),
    "B C cells": lambda at: float(at.B * at.C * at.side**2),
}

Found = Mapping[str, float]
#: (part, quantity) -> term -> coefficient
Model = Mapping[tuple[str, str], Mapping[str, float]]
#: (part, quantity, sizes) -> prediction
Predict = Callable[[str, str, Sizes], float]


@dataclass(frozen=True)
class Part:
    """What one model describes.

    Attributes:
        what: one line for the table.
        measure: sizes -> quantity -> value; runs in a process of its own.
        terms: quantity -> names of its terms; empty if it is put together from other parts.
        largest: quantities that are the largest product instead of the sum.
        fitted: sizes that the coefficients are fitted to.
        held: sizes that only check them; fixed before anything is measured.
        together: prediction from other parts, for a part without terms.
    """

    what: str
    measure: Callable[[Sizes], Found]
    terms: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    fitted: tuple[Sizes, ...] = ()
    held: tuple[Sizes, ...] = ()
    together: Callable[[Predict, Sizes], float] | None = None
    largest: frozenset[str] = frozenset()


def sizes_of(row: Mapping[str, str]) -> Sizes:
    """Sizes of a row of a CSV."""
    return Sizes(*(int(row[name]) for name in Sizes._fields))


def fit(parts: Mapping[str, Part], points: Sequence[Mapping[str, str]]) -> Model:
    """Coefficients with the least relative error at the fitted points."""
    model: dict[tuple[str, str], dict[str, float]] = {}
    for name, part in parts.items():
        rows = [row for row in points if row["part"] == name and row["held"] == "no"]
        for quantity, terms in part.terms.items() if rows else ():
            values = np.array([float(row[quantity]) for row in rows])
            design = np.array([[TERMS[term](sizes_of(row)) for term in terms] for row in rows])
            found = (_envelope if quantity in part.largest else _sum)(design, values)
            model[name, quantity] = dict(zip(terms, found.tolist(), strict=True))
    return model


def _sum(design: Floats, values: Floats) -> Floats:
    """No coefficient is negative."""
    from scipy.optimize import nnls

    scale = np.abs(design).max(0)  # the terms differ by many orders of magnitude
    found, _ = nnls(design / scale / values[:, None], np.ones(len(values)))
    found[found < ROUNDING * found.max()] = 0.0
    return np.asarray(found / scale)


def _envelope(design: Floats, values: Floats) -> Floats:
    """The largest coefficients with which no term alone exceeds a value: exact without noise, as memory nearly is."""
    return np.asarray((values[:, None] / design).min(0))


def predictor(parts: Mapping[str, Part], model: Model) -> Predict:
    """The model as a function; a part that is put together calls it for the others."""

    def predict(part: str, quantity: str, at: Sizes) -> float:
        together = parts[part].together
        if together is not None:
            return together(predict, at)
        products = [coefficient * TERMS[term](at) for term, coefficient in model[part, quantity].items()]
        return max(products) if quantity in parts[part].largest else sum(products)

    return predict


def check(
    parts: Mapping[str, Part], model: Model, points: Sequence[Mapping[str, str]]
) -> list[dict[str, str]]:
    """Prediction against measurement at the points that were held out."""
    predict = predictor(parts, model)
    rows = []
    for row in points:
        quantities = parts[row["part"]].terms or ("seconds",)
        for quantity in quantities if row["held"] == "yes" else ():
            measured = float(row[quantity])
            predicted = predict(row["part"], quantity, sizes_of(row))
            rows.append(
                {
                    **{name: row[name] for name in ("part", *Sizes._fields)},
                    "quantity": quantity,
                    "measured": f"{measured:.4g}",
                    "predicted": f"{predicted:.4g}",
                    "error": f"{predicted / measured - 1:+.3f}",
                }
            )
    return rows


def read_model(path: Path) -> Model:
    """Read ``model.csv``."""
    model: dict[tuple[str, str], dict[str, float]] = {}
    for row in read_csv(path):
        model.setdefault((row["part"], row["quantity"]), {})[row["term"]] = float(row["coefficient"])
    return model
