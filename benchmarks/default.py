"""Where is the default beaten? ``auto`` against ten lines of scikit-learn and ``pooled``, cell by cell.

    python -m benchmarks.default --coco256 DIR --scenes5 DIR --develop --out results/auto/default-develop.csv
    python -m benchmarks.default … --cells 'scenes5/*,coco256-80/10' --masks 1,2 --pooled

Cells: coco256 with its 80, 20 and 5 most frequent training categories, scenes5 and demo, each with 5, 10 and
30 % of the labels known (three masks) and with all of them (once); and 60 training photos of scenes5 and
coco256-5 with 30 % and all. The test photos are scored, or with ``--develop`` a fifth of the training photos,
which are then not trained on. Without ``--pooled`` the slow network ``pooled`` is left out.

Each fit is one row of the CSV, written when it ends; what is there already is not run again. Scores are kept
beside it in ``NAME.scores/``. At the end each cell gets a paired bootstrap over photos, its masks pooled, of
(auto − better of the others), in ``NAME-cells.csv`` and as a table. Masks 11, 12 and 13 were used once on
held-out training photos, so a second run on the test with ``--masks 21,22,23`` checks the result of the first.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Iterator, Sequence
from fnmatch import fnmatch

import numpy as np
from numpy.typing import NDArray

import sarb
from benchmarks.baseline import baseline
from benchmarks.fits import Fit, Key, Results, markdown, run_cell, write_table
from benchmarks.paired import difference
from benchmarks.source import Cell, Fitted, Source, add_folders, add_options, chosen_masks, fit_auto, sources
from sarb.metrics import evaluate

SHARES = (0.05, 0.1, 0.3, 1.0)
FEW_PHOTOS = 60
#: nothing is chosen on the masks of the test
MASKS = {"test": "11,12,13", "develop": "1,2,3"}
#: largest difference of a logit between the fit on shared features and ``sarb.fit``
TOLERANCE = 1e-4
CLAIMS = ("strict", "names")


def grid() -> list[Cell]:
    """All cells of acceptance 2 of issue 13, the quick ones first."""
    data = [("scenes5", 0), ("demo", 0), ("coco256", 5), ("coco256", 20), ("coco256", 80)]
    few = [Cell(*each, FEW_PHOTOS, known) for each in (data[0], data[2]) for known in (0.3, 1.0)]
    return [*few, *(Cell(*each, 0, known) for each in data for known in SHARES)]


def fit_baseline(source: Source, cell: Cell, mask: int) -> Fitted:
    """Ten lines of scikit-learn on the same averaged maps."""
    problem = source.problem(cell, mask)
    vectors = source.train.vectors[problem.rows]
    scores, c = baseline(vectors, problem.labels.values, source.scored.vectors)
    return Fitted(scores, f"C {c:g}")


def fit_pooled(source: Source, cell: Cell, mask: int) -> Fitted:
    """A linear layer on the averaged map, trained step by step."""
    problem = source.problem(cell, mask)
    model = sarb.fit(
        problem.photos,
        valid=problem.valid,
        network="pooled",
        method="partial_bce",
        recipe="small",
        progress=False,
        **source.how.settings,
    )
    return Fitted(source.predict(model, cell))


def check_same(source: Source, cell: Cell, mask: int) -> float:
    """Largest difference between ``fit_auto`` and the model of ``sarb.fit``, over all logits."""
    problem = source.problem(cell, mask)
    model = sarb.fit(
        problem.photos, valid=problem.valid, method="auto", progress=False, **source.how.settings
    )
    ours = fit_auto(source, cell, mask, "names").scores
    return float(np.abs(ours - source.predict(model, cell)).max())


def models(pooled: bool) -> dict[str, Fit]:
    """Name in the CSV -> how it is fitted."""
    found: dict[str, Fit] = {
        "auto strict": lambda source, cell, mask: fit_auto(source, cell, mask, "strict"),
        "auto names": lambda source, cell, mask: fit_auto(source, cell, mask, "names"),
        "ten lines": fit_baseline,
    }
    return {**found, "pooled": fit_pooled} if pooled else found


CELL_KEY = ("split", "cell", "masks", "claims")
CELL_COLUMNS = (*CELL_KEY, "auto", "ten lines", "pooled", "against", "gain", "low", "high")


def judge_cell(
    source: Source, cell: Cell, masks: Sequence[int], results: Results
) -> Iterator[dict[str, str]]:
    """One row per kind of claims: auto against the better of the others, masks pooled."""
    answers = source.answers(cell)
    masks = cell.masks(masks)

    def stored(model: str) -> list[NDArray[np.floating]]:
        return [results.scores(Key.of(source, cell, mask, model)) for mask in masks]

    others = [
        model
        for model in ("ten lines", "pooled")
        if all(results.has(Key.of(source, cell, mask, model)) for mask in masks)
    ]
    quality = {
        model: float(np.mean([evaluate(scores, answers)["mAP"] for scores in stored(model)]))
        for model in (*(f"auto {claims}" for claims in CLAIMS), *others)
    }
    better = max(others, key=quality.__getitem__)
    for claims in CLAIMS:
        gain = difference(stored(f"auto {claims}"), stored(better), answers.values)
        yield {
            "split": source.how.split,
            "cell": cell.name,
            "masks": " ".join(map(str, masks)),
            "claims": claims,
            "auto": f"{quality[f'auto {claims}']:.2f}",
            **{
                model: f"{quality[model]:.2f}" if model in quality else ""
                for model in ("ten lines", "pooled")
            },
            "against": better,
            **gain,
        }


def summary(rows: Sequence[dict[str, str]]) -> str:
    """The table, where the default is beaten, and the mean gains."""
    shown = []
    for row in rows:
        verdict = "beaten" if float(row["high"]) < 0 else "behind" if float(row["gain"]) < 0 else "ahead"
        texts = [row[name] for name in ("cell", "claims", "auto", "ten lines", "pooled", "gain")]
        shown.append([*texts, f"{row['low']} to {row['high']}", verdict])
    columns = ("cell", "claims", "auto", "ten lines", "pooled", "gain", "95 % interval", "default is")
    lines = [markdown(columns, shown), ""]
    for claims in CLAIMS:
        gains = [float(row["gain"]) for row in rows if row["claims"] == claims]
        if gains:
            lines.append(f"{claims}: mean gain over {len(gains)} cells {np.mean(gains):+.2f} mAP")
    beaten = [row for row in rows if float(row["high"]) < 0]
    for row in beaten:
        lines.append(f"beaten: {row['cell']} ({row['claims']}) by {row['against']}, {row['gain']} mAP")
    return "\n".join([*lines, *([] if beaten else ["the default is beaten in no cell"])])


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    add_folders(parser)
    add_options(parser, MASKS)
    parser.add_argument("--cells", default="*", help="names or patterns, such as 'scenes5/*,coco256-80/10'")
    parser.add_argument("--pooled", action="store_true", help="also train the network pooled, which is slow")
    parser.add_argument("--list", action="store_true", help="print the cells and stop")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the cells, print the table; return 1 if the default is beaten somewhere."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    options = _parser().parse_args(given)
    patterns = options.cells.split(",")
    cells = [cell for cell in grid() if any(fnmatch(cell.name, pattern) for pattern in patterns)]
    if options.list or not cells:
        print("\n".join(cell.name for cell in cells or grid()))
        return 0 if cells else 2
    loaders = sources(options)
    masks = chosen_masks(options, MASKS)
    results = Results(options.out)
    command = "python -m benchmarks.default " + shlex.join(given)
    judged: list[dict[str, str]] = []
    unchecked = True
    for cell in cells:
        if cell.source not in loaders:
            print(f"{cell.name}: left out, give its folder with --{cell.source} DIR")
            continue
        source = loaders[cell.source]()
        if unchecked:
            difference = check_same(source, cell, masks[0])
            print(f"{cell.name}: at most {difference:.1e} from sarb.fit", flush=True)
            assert difference < TOLERANCE
            unchecked = False
        run_cell(source, cell, masks, models(options.pooled), results, command)
        found = list(judge_cell(source, cell, masks, results))
        write_table(options.out.with_name(f"{options.out.stem}-cells.csv"), CELL_COLUMNS, CELL_KEY, found)
        judged += found
    print("\n" + summary(judged))
    return int(any(float(row["high"]) < 0 for row in judged))


if __name__ == "__main__":
    raise SystemExit(main())
