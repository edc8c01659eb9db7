"""``sarb tune``: search settings by training many times, and keep the recipe of the best trial."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from sarb.data import load
from sarb.errors import ConfigError, SarbError, named, unknown_name
from sarb.files import atomic_write
from sarb.jobs.engines import Engine, Work
from sarb.jobs.pool import Answer, Pool
from sarb.networks.backbones.base import create_backbone
from sarb.progress import Progress
from sarb.registry import METHODS, find
from sarb.report.style import png, style, write_png
from sarb.reproduce.cells import fingerprint
from sarb.runs.folder import RunFolder
from sarb.settings import HARMLESS, Settings, parse_assignment
from sarb.tuning.pruning import FIRST, FOLLOWED, medians
from sarb.tuning.recipe import recipe_text
from sarb.tuning.results import (
    BEST_RECIPE,
    HISTORY,
    PAGE,
    Trial,
    Tuned,
    best_of,
    draw_history,
    folder_of,
    page_text,
    trial_of,
    write_trials,
)
from sarb.tuning.results import TRIALS as TRIALS_FILE
from sarb.tuning.space import Dimension, default_space, grid_of, read_space
from sarb.tuning.study import SAMPLERS, Study
from sarb.tuning.trial import METRICS, Base

#: trials, if none are asked for; a grid has as many as it has points
TRIALS = 20
#: the function that answers the tasks of a search
CALL = "sarb.tuning.trial:answer"
LOCK = ".lock"
MESSAGES = "messages.txt"


@dataclass(frozen=True)
class Search:
    """How to search."""

    trials: int | None = None
    search: Sequence[str] = ()
    sampler: str = "tpe"
    prune: bool = False
    jobs: int = 1
    threads: int = 1
    keep_models: bool = False

    def problems(self, metric: str) -> list[str]:
        """Everything that is wrong without looking at the settings."""
        found = []
        if find_spec("optuna") is None:
            found.append('tune needs optuna: pip install "sarb[tune]"')
        for name in ("trials", "jobs", "threads"):
            value = getattr(self, name)
            if value is not None and value < 1:
                found.append(f"{named(name)} must be at least 1, got {value}")
        if self.sampler not in SAMPLERS:
            found.append(unknown_name("sampler", self.sampler, SAMPLERS))
        if metric not in METRICS:
            found.append(unknown_name("metric", metric, METRICS))
        elif self.prune and metric not in FOLLOWED:
            found.append(f"{named('prune')} follows one of {', '.join(FOLLOWED)}, not {metric}")
        return found


def tune(
    source: str,
    *,
    out: str | Path,
    search: Mapping[str, str] | Sequence[str] = (),
    trials: int | None = None,
    recipe: str | None = None,
    data_options: Mapping[str, Any] | None = None,
    row: str | None = None,
    known: float = 1.0,
    single_positive: bool = False,
    mask_seed: int | None = None,
    valid: float | None = None,
    metric: str = "mAP",
    sampler: str = "tpe",
    prune: bool = False,
    jobs: int = 1,
    threads: int = 1,
    engine: str | Engine = "local",
    keep_models: bool = False,
    assignments: Sequence[str] = (),
    command: str = "",
    progress: bool | Progress = True,
    **settings: Any,
) -> Tuned:
    """Search settings: train many times, and keep the one that is best on known labels of validation images.

    The test images are never looked at. Started again on the same folder, it continues: finished trials are kept, and
    those that were interrupted go on from their checkpoints.

    Args:
        source: data source, as for :func:`sarb.load`; the trials read it in processes of their own.
        out: folder for the trials and the result.
        search: what to search, ``{"lr": "1e-4..1e-1:log", "method.start": "0.2,0.5"}`` or a list of
            ``NAME=low..high[:log]`` and ``NAME=a,b,c``; the learning rate and what the method declares by default.
        trials: how many in all (20, or all points of a grid).
        recipe: name or file of a recipe, as for :func:`sarb.fit`.
        data_options: options of the data source.
        row: a row of the paper or of a later method.
        known: share of the training labels to keep.
        single_positive: keep one known positive of each image and nothing else.
        mask_seed: seed for choosing the labels to hide.
        valid: share of the training images to judge on; by default the validation images of the data, or else 0.2.
        metric: what to judge by: mAP, OF1, CF1 …
        sampler: ``tpe``, ``random`` or ``grid``.
        prune: end a trial whose validation metric is below the median of the earlier ones.
        jobs: trials at once. A trial is chosen from the results of the ones before it, except the last ``jobs - 1``.
        threads: of each trial.
        engine: ``local``, ``ray``, ``slurm``, or an :class:`sarb.jobs.engines.Engine` with its options.
        keep_models: keep the weights of all trials, not only those of the best.
        assignments: settings as for ``sarb train --set``.
        command: the command shown on the page.
        progress: report progress on stderr.
        settings: any setting of a training: method, network, backbone, epochs, lr, seed, …
    """
    texts = (
        [f"{name}={values}" for name, values in search.items()] if isinstance(search, Mapping) else [*search]
    )
    how = Search(trials, texts, sampler, prune, jobs, threads, keep_models)
    where = engine if isinstance(engine, Engine) else Engine(engine)
    base = Base(
        source,
        recipe,
        dict(data_options or {}),
        row,
        tuple(assignments),
        {name: value for name, value in settings.items() if value is not None},
        known,
        single_positive,
        mask_seed,
        valid,
        metric,
    )
    space = _checked(base, how, where)
    talk = Progress.of(progress)
    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    lock = FileLock(folder / LOCK, timeout=0)
    try:
        with lock:
            return _Tuning(base, how, where, space, folder, talk, command).run()
    except Timeout as error:
        raise SarbError(
            f"{folder}: another search is at work in this folder; wait for it or choose another"
        ) from error


def _checked(base: Base, how: Search, engine: Engine) -> list[Dimension]:
    """The space; raises with everything that is wrong, before any data are read."""
    problems = how.problems(base.metric)
    space: list[Dimension] = []
    try:
        engine.check()
    except ConfigError as error:
        problems += error.problems
    if base.valid is not None and not 0 < base.valid < 1:
        problems.append(f"{named('valid')} must be between 0 and 1, got {base.valid:g}")
    try:
        content, options = base.options()
        settings = base.job({}).settings
        space = _space(base, how, content, options, settings)
        if how.sampler == "grid":
            grid_of(space)
        if how.prune and find("method", METHODS, settings.method).fitted:
            problems.append(
                f"{named('prune')}: method {settings.method} is fitted, it has no epochs to end early"
            )
    except ConfigError as error:
        problems += error.problems
    if problems:
        raise ConfigError(problems)
    return space


def _space(
    base: Base, how: Search, content: Mapping[str, Any], options: Mapping[str, Any], settings: Settings
) -> list[Dimension]:
    parsed = [parse_assignment(text)[:2] for text in base.assignments]
    taken = [*base.given, *(key if table == "train" else f"{table}.{key}" for table, key in parsed)]
    texts = how.search or [text for text in default_space(settings) if text.partition("=")[0] not in taken]
    if not texts:
        raise ConfigError([f"nothing to search: give {named('search')} NAME=low..high"])
    return read_space(texts, content, options, taken)


class _Tuning:
    """A search at work."""

    def __init__(
        self,
        base: Base,
        how: Search,
        engine: Engine,
        space: list[Dimension],
        out: Path,
        talk: Progress,
        command: str,
    ) -> None:
        self.how = how
        self.engine = engine
        self.space = space
        self.out = out
        self.talk = talk
        self.command = command
        job = base.job({})
        # read once before the trials do, so that generated data is there for all of them
        data = load(job.source, **job.data_options)
        self.title = data.name
        held = base.held(data)
        self.base = replace(
            base,
            source=job.source,
            data_options=job.data_options,
            mask_seed=job.mask_seed,
            valid=held if isinstance(held, float) else None,
            threads=how.threads,
        )
        self.settings = job.settings
        self.study = Study(out, space, how.sampler, job.settings.seed, self._setup(fingerprint(data)))
        self.total = how.trials or (len(grid_of(space)) if how.sampler == "grid" else TRIALS)
        if how.sampler == "grid":
            self.total = min(self.total, len(grid_of(space)))
        self.lost: dict[int, str] = {}

    def _setup(self, data: str) -> dict[str, Any]:
        """What makes trials comparable, as JSON gives it back."""
        settings = {key: value for key, value in self.settings.as_dict().items() if key not in HARMLESS}
        base = self.base
        return {
            "data": data,
            "search": [str(dimension) for dimension in self.space],
            "sampler": self.how.sampler,
            "prune": self.how.prune,
            "threads": self.how.threads,
            "metric": base.metric,
            "known": base.known,
            "single_positive": base.single_positive,
            "mask_seed": base.mask_seed,
            "valid": base.valid,
            **settings,
        }

    def run(self) -> Tuned:
        """Run what is missing, and write the result."""
        ended = {entry["number"] for entry in self.study.trials() if entry["state"] != "running"}
        missing = [number for number in range(self.total) if number not in ended]
        self.talk.say(
            f"{self.total} trials: {self.total - len(missing)} already ended, {len(missing)} to run, "
            f"{self.how.jobs} at a time; searched: {', '.join(map(str, self.space))}"
        )
        if missing:
            self._check_backbone()
            jobs = min(self.how.jobs, len(missing))
            work = Work(CALL, self.how.threads, jobs, self.out, self.out / MESSAGES)
            with (
                self.engine.open(work) as start,
                Pool(start, jobs, self._tried_again) as pool,
                self.talk.bar("trials", len(missing)) as advance,
            ):
                for count, (number, answer) in enumerate(self._answers(pool, ended), 1):
                    said = self._end(number, answer)
                    # after each trial, so that a killed search has them, too
                    self._write_trials()
                    self.talk.say(f"[{count}/{len(missing)}] trial {number}: {said}")
                    advance(1)
        return self._finish()

    def _check_backbone(self) -> None:
        """Make it once before any trial: without its weights or its package, all of them would fail, and count."""
        searched = {dimension.name.partition(".")[0] for dimension in self.space}
        if "backbone" in searched:
            return
        backbone = create_backbone(self.settings.backbone, **self.settings.backbone_options)
        if "image_size" not in searched:
            backbone.check_size(self.settings.image_size)

    def _answers(self, pool: Pool, ended: set[int]) -> Any:
        """Yield (number, answer), with a trial begun as soon as those that it may know have ended."""
        number, running = 0, 0
        while number < self.total or running:
            while number < self.total and running < self.how.jobs:
                if not ended.issuperset(range(number - self.how.jobs + 1)):
                    break
                if number not in ended:
                    pool.submit(number, self._task(number))
                    running += 1
                number += 1
            if running:
                found, answer = pool.next()
                yield found, answer
                ended.add(found)
                running -= 1

    def _task(self, number: int) -> dict[str, Any]:
        values = self.study.values_of(number, self.how.jobs)
        known = self.study.trials()[: max(0, number - self.how.jobs + 1)]
        curves = [entry["curve"] for entry in known if entry["state"] == "finished"]
        return {
            "base": asdict(self.base),
            "values": values,
            "folder": str(folder_of(self.out, number)),
            "limits": medians(curves) if self.how.prune else [],
        }

    def _tried_again(self, number: int, reason: str) -> None:
        self.talk.say(f"trial {number}: {reason}")

    def _end(self, number: int, answer: Answer) -> str:
        """Write down how a trial ended, and say it in a few words."""
        if answer.get("lost"):  # a failure of the computer, not of the values: the next command tries again
            self.lost[number] = answer["error"]
            return f"lost: {answer['error']}"
        if "line" not in answer:
            self.study.tell(number, "failed", None, notes={"error": answer["error"]})
            return f"failed: {answer['error']}"
        line = answer["line"]
        notes = {name: line[name] for name in ("seconds", "seed", "command")}
        self.study.tell(number, line["state"], line["value"], line["curve"], notes)
        self._remove_models()
        if line["state"] == "pruned":
            return f"ended early after {len(line['curve'])} epochs, {line['seconds']:.0f} s"
        return f"{self.base.metric} {line['value']:.2f}, {line['seconds']:.0f} s"

    def _trials(self) -> list[Trial]:
        return [trial_of(self.out, entry) for entry in self.study.trials()[: self.total]]

    def _remove_models(self) -> None:
        """Remove checkpoints, and all weights but those of the best trial."""
        trials = self._trials()
        best = best_of(trials)
        for trial in trials:
            if trial.state != "running":
                RunFolder(trial.folder).remove_weights(
                    keep_models=self.how.keep_models or (best is not None and trial.number == best.number)
                )

    def _write_trials(self) -> None:
        write_trials(self.out, self._trials(), self.base.metric)

    def _finish(self) -> Tuned:
        trials = self._trials()
        self._write_trials()
        self._remove_models()
        best = best_of(trials)
        again = None
        if best is not None:
            again = self._write_best(best)
            with style() as colours:
                picture = png(draw_history(trials, self.base.metric, self.title, colours))
            write_png(self.out / HISTORY, picture)
        about = self._about()
        with atomic_write(self.out / PAGE) as file:
            file.write(page_text(trials, self.base.metric, self.title, self.command, about, again))
        return Tuned(tuple(trials), self.base.metric, self.out, self.lost)

    def _write_best(self, best: Trial) -> str:
        """Write the recipe of the best trial; return the command that trains it."""
        job = self.base.job(dict(best.values))
        words = ["sarb", "train", str(self.out / BEST_RECIPE), "--data", job.source]
        words += [word for key, value in job.data_options.items() for word in ("-o", f"{key}={value}")]
        if job.single_positive:
            words += ["--single-positive", "--mask-seed", str(job.mask_seed)]
        elif job.known < 1:
            words += ["--known", f"{job.known:g}", "--mask-seed", str(job.mask_seed)]
        words += ["--valid", f"{job.valid:g}"] if job.valid else []
        command = (
            f"OMP_NUM_THREADS={self.how.threads} {shlex.join([*words, '--out', str(self.out / 'best')])}"
        )
        head = (
            f"The best of {self.total} trials: {self.base.metric} {best.value:.2f} on the known labels of the "
            f"validation images (trial {best.number}).\n\n  {command}"
        )
        with atomic_write(self.out / BEST_RECIPE) as file:
            file.write(recipe_text(job.settings, {}, head))
        return command

    def _about(self) -> str:
        how = {"tpe": "Optuna's TPE", "random": "random values", "grid": "all combinations"}[self.how.sampler]
        ended = (
            f" A trial below the median of at least {FIRST} earlier ones was ended early."
            if self.how.prune
            else ""
        )
        lost = f" {len(self.lost)} were lost and are tried again by the same command." if self.lost else ""
        searched = ", ".join(f"`{dimension}`" for dimension in self.space)
        held = f"{self.base.valid:g} of the training images" if self.base.valid else "those of the data"
        return (
            f"Searched: {searched}, by {how}, {self.how.jobs} at a time. Judged by {self.base.metric} on the known "
            f"labels of the validation images ({held}); [{TRIALS_FILE}]({TRIALS_FILE}) has the command of each."
            f"{ended}{lost}"
        )
