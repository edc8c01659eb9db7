"""Are calibrated probabilities right, are filled labels as precise as asked, are wrong labels found? On
withheld truth.

    python results/coco256/calibration.py COCO256_DIR OUT_DIR --csv results/coco256/calibration.csv

10 % of the training labels are known. Everything is judged on the other 90 %, whose truth is withheld until
then. Two experiments per seed, each with out-of-fold scores of three trainings:

- ``fill``: calibration error (class-wise, 15 bins of equal mass) and Brier score of the network's own
probabilities, of
  the calibrated ones, and of the known base rate of each category (as one constant, whose entries fall into
  15 random bins of the same size; and, since they are all equal, in one bin); then ``complete`` with
  min_precision 0.9: true precision and recall of what is filled as present, beside the recall of as many
  random entries of the same categories.
- ``flip``: 2 % of the known present labels are made absent and 2 % of the absent present; how many of them
are among
  the first 5 % of the ranking of all known labels.

A finished row is not computed again; start the same command to go on. A training takes about a minute on one
core.
"""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import study

COLUMNS = (
    "experiment",
    "row",
    "known",
    "seed",
    "folds",
    "scores",
    "method",
    "ECE_before",
    "ECE_after",
    "ECE_base_rate",
    "ECE_base_rate_one_bin",
    "Brier_before",
    "Brier_after",
    "Brier_base_rate",
    "filled_present",
    "expected_precision",
    "precision",
    "recall",
    "recall_random",
    "categories_filled",
    "flipped",
    "found_first_5_percent",
    "found_made_absent",
    "found_made_present",
    "found_plain_ranking",
    "seconds",
)
PRECISION, FLIPPED, FIRST = 0.9, 0.02, 0.05


def fill(given: Any, train: Any, seed: int, done: set[tuple[str, ...]]) -> None:
    """Calibration and completion at one seed."""
    import sarb
    from sarb.labelling.calibration import METHODS
    from sarb.labelling.folds import on_scale, out_of_fold, without

    started, hidden, settings = time.perf_counter(), train.hide(given.known, seed), study.options(given, seed)
    place = given.out / f"fill-{given.row}-{given.known:g}-{seed}"
    model = sarb.fit(hidden, out=place / "run", resume=True, progress=False, **settings)
    model_scores = sarb.predict(model, hidden, cache=True)
    fold_scores = out_of_fold(hidden, given.folds, out=place, progress=False, **settings)
    fold_scores = on_scale(fold_scores, model_scores, hidden.labels)
    truth = without(train.labels, hidden.labels.known)
    for method in METHODS:
        calibration = sarb.calibrate(fold_scores, hidden.labels, method=method)
        for name, scores in (("model", model_scores), ("oof", fold_scores)):
            if ("fill", str(seed), name, method) not in done:
                found = judge(scores, hidden.labels, truth, calibration)
                found |= {
                    "seconds": round(time.perf_counter() - started, 1),
                    "method": method,
                    "scores": name,
                }
                study.add(given.csv, COLUMNS, {"experiment": "fill", **about(given, seed), **found})


def judge(scores: Any, known: Any, truth: Any, calibration: Any) -> dict[str, Any]:
    """Compare with the withheld truth, which the fit has not seen."""
    import numpy as np

    import sarb
    from sarb.labelling.reliability import base_rates, brier_score, calibration_error

    base = np.tile(base_rates(known), (len(known), 1))
    kinds = {"before": scores.probabilities, "after": calibration(scores), "base_rate": base}
    found: dict[str, Any] = {
        f"ECE_{k}": float(np.nanmean(calibration_error(p, truth))) for k, p in kinds.items()
    }
    found["ECE_base_rate_one_bin"] = float(np.nanmean(calibration_error(base, truth, together=True)))
    found |= {f"Brier_{k}": float(np.nanmean(brier_score(p, truth))) for k, p in kinds.items()}
    filled = sarb.complete(scores, known, calibration, min_precision=PRECISION)
    chosen, right = filled.present, truth.values > 0
    rate = right.sum(0) / np.maximum(1, truth.known.sum(0))
    return found | {
        "filled_present": int(chosen.sum()),
        "expected_precision": filled.summary()["expected_precision_present"],
        "precision": float(right[chosen].mean()) if chosen.any() else float("nan"),
        "recall": float((right & chosen).sum() / right.sum()),
        "recall_random": float((chosen.sum(0) * rate).sum() / right.sum()),
        "categories_filled": int(chosen.any(0).sum()),
    }


def flip(given: Any, train: Any, seed: int) -> None:
    """Wrong labels made on purpose, and whether they are found."""
    import numpy as np

    import sarb
    from sarb.labelling.conflicts import rank_labels
    from sarb.labelling.folds import out_of_fold

    started, labels, settings = (
        time.perf_counter(),
        train.labels.hide(given.known, seed),
        study.options(given, seed),
    )
    random, wrong = np.random.default_rng(seed), np.zeros(labels.shape, bool)
    for code in (1, -1):
        places = np.argwhere(labels.values == code)
        wrong[tuple(places[random.choice(len(places), round(FLIPPED * len(places)), replace=False)].T)] = True
    spoiled = sarb.LabelMatrix(
        np.where(wrong, -labels.values, labels.values), labels.categories, labels.paths
    )
    place = given.out / f"flip-{given.row}-{given.known:g}-{seed}"
    scores = out_of_fold(replace(train, labels=spoiled), given.folds, out=place, progress=False, **settings)
    p = sarb.calibrate(scores, spoiled)(scores)
    ranking = rank_labels(p, spoiled)
    first = slice(0, round(FIRST * len(ranking.row)))
    top = np.zeros(labels.shape, bool)
    top[ranking.row[first], ranking.column[first]] = True
    belief = np.where(spoiled.values > 0, p, 1 - p)[spoiled.known]
    plain = np.zeros(labels.shape, bool)
    plain[spoiled.known] = belief <= np.sort(belief)[first.stop - 1]
    found = {
        "flipped": int(wrong.sum()),
        "found_first_5_percent": float(top[wrong].mean()),
        "found_made_absent": float(top[wrong & (labels.values > 0)].mean())
        if (wrong & (labels.values > 0)).any()
        else "",
        "found_made_present": float(top[wrong & (labels.values < 0)].mean()),
        "found_plain_ranking": float(plain[wrong].mean()),
        "seconds": round(time.perf_counter() - started, 1),
    }
    found |= {"scores": "oof", "method": "platt"}
    study.add(given.csv, COLUMNS, {"experiment": "flip", **about(given, seed), **found})


def about(given: Any, seed: int) -> dict[str, Any]:
    """Columns that say what was run."""
    return {"row": given.row, "known": given.known, "seed": seed, "folds": given.folds}


def main() -> None:
    """Run what is missing."""
    given = study.arguments(__doc__ or "", known=0.1)
    import sarb

    train = sarb.load(Path(given.data) / "labels.csv", encoding="binary").train
    for seed in given.seeds:
        found = [
            row
            for row in study.rows(given.csv)
            if all(row[k] == str(v) for k, v in about(given, seed).items())
        ]
        done = {(row["experiment"], row["seed"], row["scores"], row["method"]) for row in found}
        if len([row for row in found if row["experiment"] == "fill"]) < 6:
            fill(given, train, seed, done)
        if not any(row["experiment"] == "flip" for row in found):
            flip(given, train, seed)


if __name__ == "__main__":
    main()
