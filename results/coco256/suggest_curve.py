"""What are questions chosen by ``suggest`` worth? mAP on the test images against questions chosen at random.

    python results/coco256/suggest_curve.py COCO256_DIR OUT_DIR --csv results/coco256/suggest.csv

Starts at 5 % known. In rounds, 500, 1,000 and 2,000 labels have been asked; the truth answers; the network
is trained from the start on all that is known then, and its scores choose the next round. The calibration is
fitted once, on out-of-fold scores of the first labels: later ones were chosen by their scores and would bend
it. The last model of each training is tested; nothing is chosen on the test images. A picture of the curve
is drawn beside the table.

A finished row is not computed again; start the same command to go on.
"""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import study

COLUMNS = (
    "row",
    "known",
    "seed",
    "strategy",
    "asked",
    "present",
    "positives",
    "fewest_positives",
    "mAP",
    "mAP_interpolated",
    "OF1",
    "CF1",
    "seconds",
)
STRATEGIES = ("suggest", "random")
#: the defaults of ``suggest`` when the study ran; benchmarks/suggest.py measures those of today
WEIGHTS = {"finds": 1.0, "uncertainty": 0.5, "cooccurrence": 0.25}


def ask(strategy: str, scores: Any, labels: Any, count: int, calibration: Any, seed: int) -> tuple[Any, Any]:
    """Rows and columns of the next questions."""
    import numpy as np

    import sarb

    if strategy == "suggest":
        found = sarb.suggest(scores, labels, count, calibration=calibration, **WEIGHTS)
        return found.row, found.column
    row, column = np.nonzero(~labels.known)
    chosen = np.random.default_rng(seed).choice(len(row), count, replace=False)
    return row[chosen], column[chosen]


def curve(given: Any, data: Any, seed: int, strategy: str) -> None:
    """All rounds of one strategy."""
    import sarb
    from sarb.labelling.folds import on_scale, out_of_fold

    truth, settings = data.train.labels, study.options(given, seed)
    labels, calibration, scores, asked = truth.hide(given.known, seed), None, None, 0
    for budget in [0, *given.budgets]:
        started = time.perf_counter()
        if budget:
            row, column = ask(strategy, scores, labels, budget - asked, calibration, 1000 * seed + budget)
            values = labels.values.copy()
            values[row, column] = truth.values[row, column]
            labels, asked = sarb.LabelMatrix(values, labels.categories, labels.paths), budget
        train, name = replace(data.train, labels=labels), f"{strategy if budget else 'start'}-{given.known:g}"
        place = given.out / f"{name}-{seed}-{budget}"
        model = sarb.fit(train, out=place, resume=True, progress=False, **settings)
        scores = sarb.predict(model, train, cache=True)
        if not budget and strategy == "suggest":
            folds = out_of_fold(train, given.folds, out=place / "folds", progress=False, **settings)
            calibration = sarb.calibrate(on_scale(folds, scores, labels), labels)
        if not any(same(given, line, seed, strategy, budget) for line in study.rows(given.csv)):
            report = sarb.evaluate(model, data.test, cache=True)
            start = truth.hide(given.known, seed)
            found = {"present": int(labels.positives.sum() - start.positives.sum()), "asked": budget}
            found |= {
                "positives": int(labels.positives.sum()),
                "fewest_positives": int(labels.positives.min()),
            }
            numbers = {name: float(report[name]) for name in ("mAP", "mAP_interpolated", "OF1", "CF1")}
            about = {"row": given.row, "known": given.known, "seed": seed, "strategy": strategy}
            seconds = {"seconds": round(time.perf_counter() - started, 1)}
            study.add(given.csv, COLUMNS, {**about, **found, **numbers, **seconds})


def same(given: Any, line: dict[str, str], seed: int, strategy: str, asked: int) -> bool:
    """Whether a line of the table is this one."""
    wanted = {"row": given.row, "known": given.known, "seed": seed, "strategy": strategy, "asked": asked}
    return all(line[key] == str(value) for key, value in wanted.items())


def draw(lines: list[dict[str, str]], path: Path) -> None:
    """Mean mAP against labels asked, each seed a thin line; print the means and differences."""
    import numpy as np

    from sarb.report.style import new_figure, png, style, write_png

    found = {(line["strategy"], int(line["seed"]), int(line["asked"])): float(line["mAP"]) for line in lines}
    budgets, seeds = sorted({key[2] for key in found}), sorted({key[1] for key in found})
    with style() as colours:
        figure = new_figure(3.8, width=6.4)
        axes = figure.subplots()
        means = {}
        for number, strategy in enumerate(STRATEGIES):
            every = np.array([[found.get((strategy, seed, b), np.nan) for b in budgets] for seed in seeds])
            means[strategy] = every
            for one in every:
                axes.plot(budgets, one, color=colours.series[number], linewidth=0.8, alpha=0.4)
            axes.plot(budgets, every.mean(0), color=colours.series[number], marker="o", label=strategy)
        axes.set(xlabel="labels asked", ylabel="mAP on the test images (%)")
        axes.legend(loc="upper left")
        write_png(path, png(figure))
    for place, budget in enumerate(budgets):
        better = means["suggest"][:, place] - means["random"][:, place]
        said = ", ".join(f"{strategy} {every[:, place].mean():.2f}" for strategy, every in means.items())
        each = ", ".join(f"{difference:+.2f}" for difference in better)
        print(f"{budget:5d} asked: {said}; suggest − random {better.mean():+.2f} ({each})")


def main() -> None:
    """Run what is missing, then draw."""
    given = study.arguments(__doc__ or "", known=0.05)
    import sarb

    data = sarb.load(Path(given.data) / "labels.csv", encoding="binary")
    for seed in given.seeds:
        for strategy in STRATEGIES:
            curve(given, data, seed, strategy)
    mine = [
        line
        for line in study.rows(given.csv)
        if (line["row"], line["known"]) == (given.row, str(given.known))
    ]
    draw(mine, given.csv.with_suffix(".png"))


if __name__ == "__main__":
    main()
