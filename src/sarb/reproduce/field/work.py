"""What the process of a grid does for one training of the field."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sarb.data import load
from sarb.losses.positive_count import expected_positives
from sarb.reproduce.cells import Cell, Plan, read_run
from sarb.reproduce.field.cost import measured
from sarb.reproduce.field.protocol import COUNTS, TRIAL_VALID, Job, trial_data
from sarb.runs.folder import RunFolder
from sarb.settings import Settings, resolve
from sarb.training.run import start_run
from sarb.workflows.training import merge_options, train_session


def settings_of(plan: Plan, job: Job, chosen: Sequence[str]) -> Settings:
    """Settings of a training; raises with everything that is wrong with them."""
    options, _, _ = merge_options(job.row, [*plan.assignments_of(job.row), *chosen], plan.given)
    return resolve(plan.recipe, **options)


def folder_of(plan: Plan, job: Job, chosen: Sequence[str]) -> Path:
    """The run folder; other options never meet in the same one."""
    name = re.sub(r"[^a-z0-9.]+", "-", str(job).lower()).strip("-")
    mark = hashlib.sha256(" ".join([plan.setup(job.row), *chosen]).encode()).hexdigest()[:6]
    return Path(plan.out) / "runs" / f"{name}-{mark}"


def run_job(plan: Plan, job: Job, chosen: Sequence[str], data: str) -> dict[str, Any]:
    """Train, or finish the rest of a training; return its line."""
    with measured() as cost:
        line = _trial(plan, job, chosen) if job.trial is not None else _cell(plan, job, chosen)
    first = {"setting": job.setting, "row": job.row, "options": " ".join(chosen)}
    line = {**line, **first, **cost, "known": job.known, "seed": job.seed, "data": data}
    RunFolder(folder_of(plan, job, chosen)).finish_cell(line, keep_models=False)
    return line


def _trial(plan: Plan, job: Job, chosen: Sequence[str]) -> dict[str, Any]:
    """Train on three quarters of the training photos; known labels of the others judge. Test photos stay out."""
    data = load(plan.source, **plan.data_options)
    train, valid = trial_data(data.train, job)
    extra = _count(job, valid.labels)
    options, _, _ = merge_options(
        job.row, [*plan.assignments_of(job.row), *chosen, *extra], {**plan.given, "seed": job.seed}
    )
    folder = folder_of(plan, job, chosen)
    settings = resolve(plan.recipe, **options)
    start_run(train, settings, out=folder, valid=TRIAL_VALID, resume=True, progress=False)
    log = RunFolder(folder).log_rows()
    seconds = round(sum(float(row["seconds"]) for row in log), 1)
    return {"trial": job.trial, "valid_mAP": round(float(log[-1]["valid_mAP"]), 4), "seconds": seconds}


def _cell(plan: Plan, job: Job, chosen: Sequence[str]) -> dict[str, Any]:
    """Train on all training photos, and test."""
    extra: tuple[str, ...] = ()
    if job.single and job.row in COUNTS:
        extra = _count(job, trial_data(load(plan.source, **plan.data_options).train, job)[1].labels)
    folder = folder_of(plan, job, chosen)
    train_session(
        source=plan.source,
        recipe=plan.recipe,
        data_options=plan.data_options,
        row=job.row,
        known=job.known,
        single_positive=job.single,
        mask_seed=job.seed,
        seed=job.seed,
        out=folder,
        resume=True,
        assignments=[*plan.assignments_of(job.row), *chosen, *extra],
        given=plan.given,
        quiet=True,
        page=False,
    )
    return read_run(folder, Cell(job.row, job.known, job.seed))


def _count(job: Job, judged: Any) -> tuple[str, ...]:
    """Present labels per photo, estimated from known labels of validation photos, for the rows that need it."""
    if not (job.single and job.row in COUNTS):
        return ()
    return (f"method.positives={expected_positives(judged):.4g}",)
