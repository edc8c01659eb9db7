"""The protocol of the field: which rows, which settings, and which options each row may try.

Every row gets the same number of trials, at a known share under a mask that no cell uses, judged by the known labels of
validation photos. The first trial has the published options, the others are drawn from the row's space.
"""

from __future__ import annotations

import itertools
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sarb.data.dataset import Dataset
from sarb.errors import ConfigError, check_share, unknown_name
from sarb.labels import LabelMatrix
from sarb.rows import FIELD, ROWS

PARTIAL = "partial"
SINGLE = "single-positive"
SETTINGS = (PARTIAL, SINGLE)
#: rows of the field: the paper's method and its baselines, then what came after
FIELD_ROWS = ("partial-BCE", "Curriculum labeling", "SSGRL", "FM-Mixup", "Ours", *FIELD, "IP-Mixup")
#: mask and training seed of all trials, and the share of the training photos that judges them
TRIAL_SEED, TRIAL_VALID = 100, 0.25
#: share of the labels of validation photos that is known with single positives: a ranking needs absent labels too
SINGLE_VALID_KNOWN = 0.1
#: known share at which the trials of ``partial`` run; its other shares take over what they choose
TRIAL_KNOWN = 0.1
#: rows that need the number of present labels per photo, which single positives do not tell
COUNTS = ("EPR", "ROLE")

#: factors of the recipe's learning rate
RATES = (1.0, 3.0, 1 / 3)
#: row -> option -> values, the published one first
SPACES: dict[str, dict[str, tuple[float, ...]]] = {
    "ROLE": {"method.rate": (10.0, 1000.0, 3000.0)},
    "AN-LS": {"method.smoothing": (0.1, 0.05, 0.2)},
    "LL-R": {"method.rate": (0.5, 0.2, 1.0)},
    "LL-Ct": {"method.rate": (0.2, 0.1, 0.5)},
    "LL-Cp": {"method.rate": (0.1, 0.05, 0.2)},
    "BoostLU": {"method.rate": (0.5, 0.2, 1.0)},
    "Hill": {"method.margin": (1.0, 0.5, 0.0)},
    "SPLC": {"method.threshold": (0.6, 0.75, 0.9)},
    "CSL": {"method.highest": (5, 2, 10)},
    "SST": {"method.pair": (10.0, 1.0)},
    "HST": {"method.pair": (10.0, 1.0)},
    "DSRB": {"method.prototype_weight": (1.0, 0.1)},
    "SR-ST": {"method.threshold": (0.6, 0.75, 0.9)},
    "Ours": {"method.plrb_weight": (0.1, 1.0)},
}


@dataclass(frozen=True)
class Job:
    """One training of the field: a trial if ``trial`` is a number, else a cell with the options that won."""

    row: str
    setting: str
    known: float
    seed: int
    trial: int | None = None

    def __str__(self) -> str:
        shown = self.setting if self.setting == SINGLE else f"{100 * self.known:g} % known"
        return f"{self.row}, {shown}, " + (
            f"seed {self.seed}" if self.trial is None else f"trial {self.trial}"
        )

    @property
    def single(self) -> bool:
        """Whether one known positive per photo is kept, and nothing else."""
        return self.setting == SINGLE


def tries(row: str, number: int) -> list[dict[str, float]]:
    """Options of the first trials of a row, the published ones first; fewer if its space is smaller.

    The next ones change all options at once, so that few trials see each value (a Latin square); then come the other
    combinations, in an order drawn by the row's name.
    """
    space = {"lr": RATES, **SPACES.get(row, {})}
    square = [
        {name: values[place % len(values)] for name, values in space.items()} for place in range(len(RATES))
    ]
    every = [dict(zip(space, values, strict=True)) for values in itertools.product(*space.values())]
    rest = [options for options in every if options not in square]
    order = np.random.RandomState(zlib.crc32(row.encode())).permutation(len(rest))
    return [*square, *(rest[place] for place in order)][:number]


def assignments(row: str, options: Mapping[str, float], lr: float) -> tuple[str, ...]:
    """Options as for ``sarb train --set``; ``lr`` is the recipe's learning rate."""
    own = SPACES.get(row, {})
    found = [f"{name}={value:g}" for name, value in options.items() if name in own]
    return (f"lr={lr * options['lr']:.6g}", *found)


def trials_of(rows: Sequence[str], settings: Sequence[str], number: int) -> list[Job]:
    """All trials, those of the first setting first."""
    return [
        Job(row, setting, TRIAL_KNOWN if setting == PARTIAL else 1.0, TRIAL_SEED, trial)
        for setting in settings
        for row in rows
        for trial in range(len(tries(row, number)))
    ]


def cells_of(
    rows: Sequence[str], settings: Sequence[str], shares: Sequence[float], seeds: Sequence[int], more: int
) -> list[Job]:
    """All cells; the smallest share has every seed, the others and single positives the first ``more``."""
    low = min(shares)
    cells = []
    for setting in settings:
        for known in sorted(shares) if setting == PARTIAL else (1.0,):
            count = len(seeds) if setting == PARTIAL and known == low else more
            cells += [Job(row, setting, known, seed) for seed in seeds[:count] for row in rows]
    return cells


def check(
    rows: Sequence[str], settings: Sequence[str], shares: Sequence[float], seeds: Sequence[int]
) -> None:
    """Raise everything that is wrong with a field that was asked for."""
    problems = [unknown_name("row", row, ROWS) for row in rows if row not in ROWS]
    problems += [unknown_name("setting", name, SETTINGS) for name in settings if name not in SETTINGS]
    given: dict[str, Sequence[Any]] = {"row": rows, "setting": settings, "share": shares, "seed": seeds}
    problems += [f"no {name}: give at least one" for name, values in given.items() if not values]
    if TRIAL_SEED in seeds:
        problems.append(f"seed {TRIAL_SEED} hides the labels of the trials: choose others for the cells")
    for share in shares:
        check_share("known", share)
        if not 0 < share < 1:
            problems.append(f"known must be above 0 and below 1, got {share:g}")
    if problems:
        raise ConfigError(problems)


def trial_data(train: Dataset, job: Job) -> tuple[Dataset, Dataset]:
    """Hide the labels of a trial: (all training photos, the validation photos among them).

    With single positives the validation photos keep a tenth of all labels instead, because a photo of which only
    one present label is known ranks nothing.
    """
    rest = np.arange(len(train))
    order = np.random.RandomState(TRIAL_SEED).permutation(len(train))
    held = np.sort(order[: max(1, round(TRIAL_VALID * len(train)))])
    if not job.single:
        hidden = train.hide(job.known, TRIAL_SEED)
        return hidden, hidden.take(held)
    values = train.labels.hide(single_positive=True, seed=TRIAL_SEED).values.copy()
    judged = np.isin(rest, held)
    values[judged] = train.labels.hide(SINGLE_VALID_KNOWN, TRIAL_SEED).values[judged]
    labels = LabelMatrix(values, train.categories, train.labels.paths)
    hidden = Dataset(labels, train.root, train.name, train.lines, train.source)
    return hidden, hidden.take(held)
