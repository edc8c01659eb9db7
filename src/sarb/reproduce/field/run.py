"""A field in a folder: which trainings are finished, which are missing, and how they run."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path

from sarb.errors import ConfigError
from sarb.jobs.engines import Engine, Work
from sarb.jobs.local import CELLS as CELL_WORK
from sarb.jobs.pool import Answer, run_grid
from sarb.progress import Progress
from sarb.reproduce.cells import Plan, fingerprint
from sarb.reproduce.field.lines import CELLS, TRIALS, Lines
from sarb.reproduce.field.protocol import (
    FIELD_ROWS,
    SETTINGS,
    Job,
    assignments,
    cells_of,
    check,
    trials_of,
    tries,
)
from sarb.reproduce.field.work import folder_of, settings_of
from sarb.reproduce.loading import with_data
from sarb.runs.folder import RunFolder

#: known shares, seeds and trials of the field
SHARES, SEEDS, NUMBER = (0.1, 0.5), (0, 1, 2), 3


class Field:
    """A field in a folder: what is finished, what is missing, and how to run it.

    Args:
        plan: data, settings and folder.
        rows: row names.
        settings: ``partial``, ``single-positive`` or both.
        shares: known shares of ``partial``.
        seeds: of masks and trainings; the smallest share has all of them.
        number: trials of each row and setting. A single one chooses nothing, so it is not run, and rows have their
            published options.
        more: seeds of the other shares and of single positives.
    """

    def __init__(
        self,
        plan: Plan,
        rows: Sequence[str] = FIELD_ROWS,
        settings: Sequence[str] = SETTINGS,
        shares: Sequence[float] = SHARES,
        seeds: Sequence[int] = SEEDS,
        number: int = NUMBER,
        more: int = 1,
    ) -> None:
        # a name given twice would train twice in one folder
        rows, settings = list(dict.fromkeys(rows)), list(dict.fromkeys(settings))
        shares, seeds = list(dict.fromkeys(shares)), list(dict.fromkeys(seeds))
        check(rows, settings, shares, seeds)
        if number < 1 or more < 1 or plan.threads < 1:
            raise ConfigError(["trials, threads and the seeds of the other shares must be at least 1"])
        plan.check(rows)
        self.rows = rows
        self.plan, self.data = with_data(plan)
        self.mark = fingerprint(self.data)
        self.trials = trials_of(rows, settings, number) if number > 1 else []
        self.cells = cells_of(rows, settings, shares, seeds, more)
        out = Path(plan.out)
        self.tried = Lines(out / "trials.csv", TRIALS)
        self.done = Lines(out / "results.csv", CELLS)
        setups = {row: self.plan.setup(row) for row in rows}
        for lines in (self.tried, self.done):
            lines.check(self.mark, setups)
        self.failed: list[tuple[Job, str]] = []

    def options(self, job: Job) -> tuple[str, ...]:
        """Options of a trial; of a cell, the published ones of its row."""
        number = job.trial or 0
        lr = settings_of(self.plan, job, ()).lr
        return assignments(job.row, tries(job.row, number + 1)[number], lr)

    def chosen(self, job: Job) -> tuple[str, ...] | None:
        """Options of a cell: those of the best trial of its row and setting; None before all trials have run."""
        mine = [trial for trial in self.trials if (trial.row, trial.setting) == (job.row, job.setting)]
        if not mine:
            return self.options(job)
        if not all(self.tried.has(trial, self.options(trial)) for trial in mine):
            return None
        best = max(mine, key=lambda trial: float(self.tried.lines[trial]["valid_mAP"]))
        return self.options(best)

    def run(self, jobs: int, talk: Progress, engine: Engine | None = None) -> None:
        """Run what is missing, setting after setting: trials, then the cells with what they chose."""
        engine = engine or Engine()
        engine.check()
        for setting in SETTINGS:
            trials = [job for job in self.trials if job.setting == setting]
            self._run([(job, self.options(job)) for job in trials], self.tried, jobs, talk, engine)
            found = [(job, self.chosen(job)) for job in self.cells if job.setting == setting]
            ready = [(job, options) for job, options in found if options is not None]
            self.failed += [(job, "a trial of this row failed") for job, options in found if options is None]
            self._run(ready, self.done, jobs, talk, engine)

    def _run(
        self,
        work: list[tuple[Job, tuple[str, ...]]],
        lines: Lines,
        jobs: int,
        talk: Progress,
        engine: Engine,
    ) -> None:
        for job, options in work:
            if not lines.has(job, options) and (line := self._finished(job, options)) is not None:
                lines.add(line)  # it finished just as the grid was killed
        missing = [(job, options) for job, options in work if not lines.has(job, options)]
        if not missing:
            return
        what = "trials" if lines is self.tried else "cells"
        talk.say(f"{len(work)} {what}: {len(work) - len(missing)} already finished, {len(missing)} to run")

        def done(number: int, answer: Answer) -> str:
            if "line" not in answer:
                self.failed.append((missing[number][0], answer["error"]))
                return f"failed: {answer['error']}"
            line = {**answer["line"], "setup": self.plan.setup(missing[number][0].row)}
            lines.add(line)
            return f"mAP {line.get('mAP', line.get('valid_mAP')):.1f}, {line['cpu_seconds']:.0f} s"

        tasks = [(str(job), self._task(job, options)) for job, options in missing]
        out = Path(self.plan.out)
        with engine.open(
            Work(CELL_WORK, self.plan.threads, jobs, out, out / "runs" / "messages.txt")
        ) as start:
            run_grid(tasks, start, done, jobs=jobs, talk=talk)

    def _finished(self, job: Job, options: Sequence[str]) -> dict[str, str] | None:
        line = RunFolder(folder_of(self.plan, job, options)).finished_cell()
        return (
            {**line, "setup": self.plan.setup(job.row)}
            if line is not None and line["data"] == self.mark
            else None
        )

    def _task(self, job: Job, options: Sequence[str]) -> dict[str, object]:
        return {
            "field": True,
            "job": dataclasses.asdict(job),
            "options": list(options),
            "plan": self.plan.as_dict(),
            "data": self.mark,
        }
