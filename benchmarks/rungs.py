"""What does each rung of the ladder add? coco256 with 10 % of the labels known and scenes5 with 30 %.

    python -m benchmarks.rungs --coco256 DIR --scenes5 DIR --out results/auto/rungs.csv
    python -m benchmarks.rungs --scenes5 DIR --develop --masks 1 --out x.csv
    python -m benchmarks.rungs --coco256 DIR --scenes5 DIR --on-top names --masks 21 --out results/field/on-top.csv

The probe alone; the probe with one rung; with all of them; the ladder's own choice of rungs, which is what
``auto`` uses; and, with ``--residuals``, a residual network on top of that. Rungs are forced on: they are used even
if they do not help on held-out known labels, but their weights are chosen there. Rows with the evidence ``names``
or ``bayes`` may choose λ again (the rung ``ridge``). The same probe, student and neighbours serve both kinds of
claims. ``--on-top CLAIMS`` fits nothing but the ladder's own choice, alone and with each of the five best methods of
the field as its residual.

Each fit is one row of the CSV, as in ``benchmarks.default``; the table, also in ``NAME-table.csv``, has the mean
mAP over masks and a paired bootstrap over photos of the difference from the model in ``against``.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from benchmarks.fits import Fit, Key, Results, markdown, run_cell, write_table
from benchmarks.paired import difference
from benchmarks.source import (
    Cell,
    Fitted,
    Source,
    add_folders,
    add_options,
    chosen_masks,
    fit_auto,
    fit_rungs,
    sources,
)
from sarb.auto.ladder import RUNGS
from sarb.metrics import evaluate

MASKS = {"test": "21,22,23", "develop": "1,2,3"}
CELLS = {
    "coco256": Cell("coco256", 0, 0, 0.1),
    "scenes5": Cell("scenes5", 0, 0, 0.3),
    "demo": Cell("demo", 0, 0, 0.3),
}
#: what trains on top of the ladder -> method
RESIDUALS = {"SSGRL": "partial_bce", "SARB": "sarb"}
#: the same for ``--on-top``: the five best rows of results/field at 10 % known
BEST = {**RESIDUALS, "SST": "sst", "HST": "hst", "DSRB": "dsrb"}


class Row(NamedTuple):
    """One row of the ablation: its name in the CSV, how it is fitted, what it is compared with."""

    model: str
    claims: str
    fit: Fit
    against: str


def fit_forced(source: Source, cell: Cell, mask: int, *, claims: str, rungs: Sequence[str]) -> Fitted:
    """The probe with these rungs, used in any case."""
    return fit_rungs(source, cell, mask, claims, rungs, force=True)


def fit_chosen(source: Source, cell: Cell, mask: int, *, claims: str, residual: str) -> Fitted:
    """The ladder as it chooses itself: each rung is kept only if held-out known labels gain."""
    return fit_auto(source, cell, mask, claims, residual=residual)


def rows(residuals: bool = True) -> list[Row]:
    """The ablation, in the order of the table; the residuals take most of the time."""

    def forced(name: str, claims: str, *rungs: str) -> Row:
        return Row(name, claims, partial(fit_forced, claims=claims, rungs=rungs), "probe")

    def on_top(claims: str) -> Iterator[Row]:
        chosen = f"chosen, {claims}"
        yield forced(f"all, {claims}", claims, *RUNGS)
        yield Row(chosen, claims, partial(fit_chosen, claims=claims, residual="none"), "probe")
        for name, method in RESIDUALS.items() if residuals else ():
            fit = partial(fit_chosen, claims=claims, residual=method)
            yield Row(f"{chosen} + residual {name}", claims, fit, chosen)

    return [
        forced("probe", "strict"),
        forced("+ student", "strict", "student"),
        forced("+ neighbours", "strict", "neighbours"),
        *on_top("strict"),
        forced("+ bayes", "no-names", "bayes", "ridge"),
        forced("+ names", "names", "names", "ridge"),
        *on_top("names"),
    ]


def best_on_top(claims: str) -> list[Row]:
    """The ladder alone, and with each of the best methods of the field on top."""
    chosen = f"chosen, {claims}"
    alone = Row(chosen, claims, partial(fit_chosen, claims=claims, residual="none"), chosen)
    return [
        alone,
        *(
            Row(
                f"{chosen} + residual {name}",
                claims,
                partial(fit_chosen, claims=claims, residual=method),
                chosen,
            )
            for name, method in BEST.items()
        ),
    ]


TABLE_KEY = ("split", "cell", "model", "image_size", "masks")
TABLE_COLUMNS = (*TABLE_KEY, "claims", "mAP", "sd", "against", "gain", "low", "high")


def judge(
    source: Source, cell: Cell, masks: Sequence[int], results: Results, wanted: Sequence[Row]
) -> Iterator[dict[str, str]]:
    """Rows of the table, for the models that are fitted with all masks."""
    answers = source.answers(cell)
    for row in wanted:
        ours = [Key.of(source, cell, mask, row.model) for mask in masks]
        theirs = [Key.of(source, cell, mask, row.against) for mask in masks]
        if not all(map(results.has, [*ours, *theirs])):
            continue
        scores = [results.scores(key) for key in ours]
        quality = [evaluate(each, answers)["mAP"] for each in scores]
        gain = difference(scores, [results.scores(key) for key in theirs], answers.values)
        yield {
            "split": source.how.split,
            "cell": cell.name,
            "model": row.model,
            "image_size": str(source.image_size),
            "masks": " ".join(map(str, masks)),
            "claims": row.claims,
            "mAP": f"{np.mean(quality):.2f}",
            "sd": f"{np.std(quality, ddof=1):.2f}" if len(quality) > 1 else "",
            **({"against": row.against, **gain} if row.against != row.model else {}),
        }


def summary(cell: str, judged: Sequence[dict[str, str]]) -> str:
    """The table of one cell."""
    lines = []
    for row in judged:
        quality = f"{row['mAP']} ± {row['sd']}" if row["sd"] else row["mAP"]
        gain = (
            [row["gain"], f"{row['low']} to {row['high']}", row["against"]]
            if "against" in row
            else ["", "", ""]
        )
        lines.append([row["model"], quality, *gain])
    return markdown((cell, "mAP ± sd over masks", "difference", "95 % interval", "from"), lines)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    add_folders(parser)
    add_options(parser, MASKS)
    parser.add_argument("--residuals", action="store_true", help="also train the residuals, which is slow")
    told = "only the ladder, alone and with each of the best methods on top"
    parser.add_argument("--on-top", choices=("strict", "no-names", "names"), metavar="CLAIMS", help=told)
    parser.add_argument("--cells", default="coco256,scenes5", help="of coco256, scenes5 and demo")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what is missing, print one table per data set."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    options = _parser().parse_args(given)
    loaders = sources(options)
    masks = chosen_masks(options, MASKS)
    results = Results(options.out)
    command = "python -m benchmarks.rungs " + shlex.join(given)
    for name in options.cells.split(","):
        cell = CELLS[name]
        if name not in loaders:
            print(f"{cell.name}: left out, give its folder with --{name} DIR")
            continue
        source = loaders[name]()
        fitted = best_on_top(options.on_top) if options.on_top else rows(options.residuals)
        run_cell(source, cell, masks, {row.model: row.fit for row in fitted}, results, command)
        judged = list(judge(source, cell, masks, results, fitted if options.on_top else rows()))
        write_table(options.out.with_name(f"{options.out.stem}-table.csv"), TABLE_COLUMNS, TABLE_KEY, judged)
        print(f"\n{summary(cell.name, judged)}\n", flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
