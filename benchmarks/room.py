"""How much of the room between few labels and all labels does the default close?

    python -m benchmarks.room --data DIR --out results/auto/room.csv --permute 3
    python -m benchmarks.room --data DIR --develop --shares 10,100 --sizes 224 --masks 1 --out x.csv

DIR has a table ``labels.csv``; ``demo`` is the demo set. The tuned probe alone and the default under each kind of
claims are fitted with each share of the labels known (with all of them once) at each input size. The test photos
are scored, or with ``--develop`` a fifth of the training photos, which are then not trained on. Each fit is one
row of the CSV, written when it ends; what is there already is not run again.

The table, also in ``NAME-table.csv``, has the mean over masks of the mAP with its standard deviation and

    room closed = (mAP − P(share)) / (P(all) − P(share)),   P = mAP of the probe at the smallest size
    ratio       = mAP / mAP of the same model at the same size with all labels

``--permute N`` also fits ``names`` with the category names permuted at random, N times, with 10 % of the labels
known at the smallest size: what wrong names cost, against ``no-names``.

``--ten-lines 10,100`` also fits the baseline of ``benchmarks.default`` with these shares of the labels.

The ladder is fitted without the residual, which is slow; ``benchmarks.rungs`` measures what that adds.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.default import fit_baseline
from benchmarks.fits import Fit, Key, Results, markdown, run_cell, write_table
from benchmarks.source import Cell, Fitted, How, Source, add_options, chosen_masks, fit_auto, fit_rungs, load

MASKS = {"test": "21,22,23", "develop": "1,2,3"}
CLAIMS = ("strict", "no-names", "names")
PROBE = "probe"
#: percent of the labels known when names are permuted
PERMUTED_SHARE = 10.0
#: how far ``names`` with permuted names may be below ``no-names``, in mAP
PERMUTED_LOSS = 0.5


def fit_claims(source: Source, cell: Cell, mask: int, *, claims: str) -> Fitted:
    """The default under one kind of claims."""
    return fit_auto(source, cell, mask, claims, residual="none")


def fit_probe(source: Source, cell: Cell, mask: int) -> Fitted:
    """The tuned probe: the first rung of the ladder and no other."""
    return fit_rungs(source, cell, mask, "strict", ())


def fit_permuted(source: Source, cell: Cell, mask: int, *, permutation: int) -> Fitted:
    """The default with every name at a category drawn at random."""
    return fit_auto(source, cell, mask, "names", permutation, residual="none")


def permuted(number: int) -> dict[str, Fit]:
    """Name in the CSV -> the fit with one of the permutations."""
    seeds = range(1, number + 1)
    return {f"names permuted {seed}": partial(fit_permuted, permutation=seed) for seed in seeds}


BASELINE = "ten lines"
FITS: dict[str, Fit] = {PROBE: fit_probe, **{name: partial(fit_claims, claims=name) for name in CLAIMS}}


class Score(NamedTuple):
    """mAP of one model over its masks."""

    mean: float
    sd: float
    masks: tuple[int, ...]

    @property
    def text(self) -> str:
        """For a table: ``52.41 ± 0.30``, or only the mean of a single mask."""
        return f"{self.mean:.2f} ± {self.sd:.2f}" if len(self.masks) > 1 else f"{self.mean:.2f}"


class Point(NamedTuple):
    """Which fits a score is of; ``known`` in percent."""

    known: float
    image_size: int
    model: str


def scores(results: Results, split: str, data: str, masks: Sequence[int]) -> dict[Point, Score]:
    """Mean and standard deviation over the masks that are done; nan for a single mask."""
    wanted: dict[Point, dict[int, float]] = {}
    for row in results.rows:
        key = Key.read(row)
        name, known = key.cell.rsplit("/", 1)
        if (key.split, name) == (split, data) and int(key.mask) in masks:
            point = Point(float(known), int(key.image_size), key.model)
            wanted.setdefault(point, {})[int(key.mask)] = float(row["mAP"])
    return {point: _score(found) for point, found in wanted.items()}


def _score(found: Mapping[int, float]) -> Score:
    values = list(found.values())
    sd = float(np.std(values, ddof=1)) if len(values) > 1 else float("nan")
    return Score(float(np.mean(values)), sd, tuple(sorted(found)))


def room_closed(found: Mapping[Point, Score], point: Point) -> float | None:
    """Share of the room, in percent; None where the probe is missing or there is no room."""
    size = min(each.image_size for each in found)
    low = found.get(Point(point.known, size, PROBE))
    high = found.get(Point(100.0, size, PROBE))
    if low is None or high is None or high.mean <= low.mean:
        return None
    return 100 * (found[point].mean - low.mean) / (high.mean - low.mean)


def ratio(found: Mapping[Point, Score], point: Point) -> float | None:
    """Percent of the same model with all labels; None where that is missing."""
    whole = found.get(point._replace(known=100.0))
    return None if whole is None else 100 * found[point].mean / whole.mean


TABLE_KEY = ("split", "data", "known", "image_size", "model")
TABLE_COLUMNS = (*TABLE_KEY, "masks", "mAP", "sd", "room_closed", "ratio")


def _percent(value: float | None, digits: int) -> str:
    return "" if value is None else f"{round(value, digits) + 0.0:.{digits}f}"  # + 0.0: no "-0"


def table_rows(found: Mapping[Point, Score], split: str, data: str) -> list[dict[str, str]]:
    """Rows of ``NAME-table.csv``, shares and ratios in percent."""
    return [
        {
            "split": split,
            "data": data,
            "known": f"{point.known:g}",
            "image_size": str(point.image_size),
            "model": point.model,
            "masks": " ".join(map(str, score.masks)),
            "mAP": f"{score.mean:.2f}",
            "sd": f"{score.sd:.2f}" if len(score.masks) > 1 else "",
            "room_closed": _percent(room_closed(found, point), 0),
            "ratio": _percent(ratio(found, point), 1),
        }
        for point, score in sorted(found.items())
    ]


def summary(found: Mapping[Point, Score]) -> str:
    """Three tables, each with a column per share: mAP, room closed, ratio to all labels."""
    shares = sorted({point.known for point in found})
    sizes = sorted({point.image_size for point in found})
    shown: dict[str, Callable[[Point], str]] = {
        "mAP, mean ± standard deviation over masks": lambda point: found[point].text,
        "room closed, %": lambda point: _percent(room_closed(found, point), 0),
        "ratio to the same model with all labels, %": lambda point: _percent(ratio(found, point), 1),
    }
    tables = []
    for title, text in shown.items():
        lines = []
        for size, model in product(sizes, (BASELINE, *FITS)):
            points = [Point(known, size, model) for known in shares]
            lines.append(
                [f"{model}, {size} px", *(text(point) if point in found else "" for point in points)]
            )
        tables.append(markdown([title, *(f"{known:g} % known" for known in shares)], lines))
    return "\n\n".join(tables)


def permutations(found: Mapping[Point, Score]) -> str:
    """What wrong names cost; empty if they were not fitted or there is nothing to compare them with."""
    size = min(point.image_size for point in found)
    here = {point.model: score for point, score in found.items() if point[:2] == (PERMUTED_SHARE, size)}
    wrong = {model: score for model, score in here.items() if model.startswith("names permuted")}
    if not wrong or "no-names" not in here:
        return ""
    against = here["no-names"].mean
    shown = {"no-names": here["no-names"], **wrong}
    lines = [[model, score.text, f"{score.mean - against:+.2f}"] for model, score in shown.items()]
    worst = min(score.mean for score in wrong.values()) - against
    kept = "at most" if worst >= -PERMUTED_LOSS else "MORE THAN"
    verdict = f"permuted names: worst {worst:+.2f} mAP, {kept} {PERMUTED_LOSS} below no-names"
    columns = (f"{PERMUTED_SHARE:g} % known, {size} px", "mAP", "against no-names")
    return f"{markdown(columns, lines)}\n\n{verdict}"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--data", required=True, metavar="DIR", help="folder with labels.csv, or demo")
    add_options(parser, MASKS)
    parser.add_argument("--shares", default="5,10,30,50,90,100", help="percent of the labels known")
    parser.add_argument("--sizes", default="224,320", help="input sizes in pixels")
    parser.add_argument(
        "--ten-lines",
        default="",
        metavar="SHARES",
        help="also fit the ten-line baseline, which is slow, at these",
    )
    parser.add_argument("--permute", type=int, default=0, metavar="N", help="permutations of the names")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what is missing, print the tables."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    options = _parser().parse_args(given)
    name = Path(options.data).resolve().name
    cells = [Cell(name, 0, 0, float(share) / 100) for share in options.shares.split(",")]
    sizes = sorted(int(size) for size in options.sizes.split(","))
    masks = chosen_masks(options, MASKS)
    baseline = [float(share) for share in options.ten_lines.split(",") if share]
    results = Results(options.out)
    command = "python -m benchmarks.room " + shlex.join(given)
    data = load(options.data, options.option)
    for size in sizes:
        source = Source(data, How(options.develop, options.seed, options.backbone, size))
        for cell in cells:
            slow = {BASELINE: fit_baseline} if 100 * cell.known in baseline else {}
            run_cell(source, cell, masks, {**FITS, **slow}, results, command)
        if size == sizes[0]:
            cell = Cell(name, 0, 0, PERMUTED_SHARE / 100)
            run_cell(source, cell, masks, permuted(options.permute), results, command)
    split = "develop" if options.develop else "test"
    found = scores(results, split, name, masks)
    rows = table_rows(found, split, name)
    write_table(options.out.with_name(f"{options.out.stem}-table.csv"), TABLE_COLUMNS, TABLE_KEY, rows)
    print(f"\n{summary(found)}\n\n{permutations(found)}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
