"""One trial: a training like that of ``sarb train``, and its value on the known labels of the validation images.

The test images are not looked at: whoever chooses the best of many trials by them has no test set any more.
"""

from __future__ import annotations

import math
import traceback
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sarb.data import Data
from sarb.data.dataset import Dataset
from sarb.errors import ConfigError, SarbError
from sarb.metrics import evaluate
from sarb.runs.folder import RunFolder
from sarb.settings import read_recipe, resolve
from sarb.training.memory import keep_freed_memory
from sarb.training.run import start_run
from sarb.tuning.pruning import FOLLOWED, PrunedError, Pruning
from sarb.tuning.space import put
from sarb.workflows.training import Job, calibrate_on_validation, job_of, merge_options, validation_scores

#: what a trial can be judged on
METRICS = ("mAP", "mAP_interpolated", "OP", "OR", "OF1", "CP", "CR", "CF1")
#: share of the training images, if the data have no validation images of their own
VALID = 0.2


@dataclass(frozen=True)
class Base:
    """What all trials of a search share, as for ``sarb train``."""

    source: str
    recipe: str | None = None
    data_options: dict[str, Any] = field(default_factory=dict)
    row: str | None = None
    assignments: tuple[str, ...] = ()
    given: dict[str, Any] = field(default_factory=dict)
    known: float = 1.0
    single_positive: bool = False
    mask_seed: int | None = None
    valid: float | None = None
    metric: str = "mAP"
    threads: int = 1

    def job(self, values: dict[str, Any]) -> Job:
        """The training with these values of settings."""
        options, data_options, problems = merge_options(self.row, self.assignments, self.given)
        if self.single_positive and self.known < 1:
            problems.append("--known and --single-positive are two ways to hide labels: give one of them")
        return job_of(
            self.source,
            self.recipe,
            put(options, values),
            {**self.data_options, **data_options},
            self.known,
            self.mask_seed,
            self.valid,
            None,
            problems,
            self.single_positive,
        )

    def held(self, data: Data) -> float | Dataset:
        """What trials are judged on: what was asked for, the data's own validation images, or a share."""
        return self.valid or (data.valid if data.valid is not None and len(data.valid) else VALID)

    def options(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Content of the recipe, and all options beside it."""
        options, _, problems = merge_options(self.row, self.assignments, self.given)
        content = read_recipe(self.recipe, options)
        try:
            resolve(content, **options)
        except ConfigError as error:
            problems += error.problems
        if problems:
            raise ConfigError(problems)
        return content, options


def answer(task: dict[str, Any]) -> dict[str, Any]:
    """Run the trial of a task; an error is also returned as an answer."""
    folder = Path(task["folder"])
    try:
        return {"line": run_trial(Base(**task["base"]), task["values"], folder, task["limits"])}
    except Exception as error:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "error.txt").write_text(traceback.format_exc(), encoding="utf-8")
        own = isinstance(error, SarbError)
        said = str(error) if own else f"{type(error).__name__}: {error}"
        return {"error": said if own else f"{said} (see {folder / 'error.txt'})"}


def run_trial(base: Base, values: dict[str, Any], folder: Path, limits: list[float]) -> dict[str, Any]:
    """Train, or train the rest, and judge; return what the search writes down."""
    keep_freed_memory()
    job = base.job(values)
    data = job.load()
    state, value = "finished", None
    try:
        run = start_run(
            data.train,
            job.settings,
            out=folder,
            valid=base.held(data),
            resume=True,
            progress=False,
            record=job.record(data, folder),
            track=Pruning(base.metric, limits),
        )
        scores = validation_scores(run)
        value = evaluate(scores[0].logits, scores[1])[base.metric] if scores else math.nan
        if not math.isfinite(value):
            raise SarbError(
                f"no category has a known positive among the validation images, so {base.metric} is not defined; "
                "hold out more of them with --valid"
            )
        calibrate_on_validation(run)
    except PrunedError:
        state = "pruned"
    log = RunFolder(folder).log_rows()
    column = f"valid_{base.metric}"
    followed = base.metric in FOLLOWED and bool(log) and column in log[0]
    return {
        "state": state,
        "value": None if value is None else round(float(value), 4),
        "curve": [float(row[column]) for row in log] if followed else [],
        "seconds": round(sum(float(row["seconds"]) for row in log if row.get("seconds")), 1),
        "seed": job.settings.seed,
        "command": f"OMP_NUM_THREADS={base.threads} {job.command(folder)}",
    }
