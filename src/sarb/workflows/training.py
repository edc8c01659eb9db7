"""``sarb train``: from a source of labels to a tested run folder with its report."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sarb.auto.names import tie
from sarb.data import Data, Dataset, load, reader_name
from sarb.errors import ConfigError, check_share, unknown_name
from sarb.inference.prediction import match_categories, predict, readable
from sarb.labelling.calibration import Calibration, calibrate
from sarb.labels import LabelMatrix
from sarb.methods.together import connected, objects_of_all
from sarb.model import load_model
from sarb.progress import Progress
from sarb.report import Report, write_report
from sarb.report.card import model_card
from sarb.rows import ROWS, Row
from sarb.runs.folder import RunFolder
from sarb.scores import Scores
from sarb.settings import Settings, parse_assignment, read_recipe, resolve, section
from sarb.training.memory import keep_freed_memory
from sarb.training.run import Run, start_run
from sarb.training.track import Trackers, track_problems
from sarb.workflows.labelled import both, hidden
from sarb.workflows.on_top import put_on_top

#: how many category names without a concept are told
NAMED = 5
#: settings that have a flag of their own
FLAGS = (
    "method",
    "network",
    "backbone",
    "epochs",
    "batch_size",
    "lr",
    "image_size",
    "seed",
    "words",
    "patience",
    "checkpoint_every",
)
#: tables of options -> their prefix after ``--set``
PREFIXES = {
    "method_options": "method.",
    "network_options": "network.",
    "backbone_options": "backbone.",
    "lr_scale": "lr.",
}


@dataclass(frozen=True)
class Job:
    """A training as it was asked for, checked before any data are read."""

    recipe: str | None
    source: str
    data_options: dict[str, Any]
    options: dict[str, Any]
    settings: Settings
    known: float
    mask_seed: int
    valid: float | None
    init: Path | None
    single_positive: bool = False

    def load(self) -> Data:
        """The data with their labels hidden."""
        data = load(self.source, **self.data_options)
        return hidden(data, self.known, self.single_positive, self.mask_seed)

    def record(self, data: Data, folder: Path) -> dict[str, Any]:
        """What the run folder remembers about the data."""
        return {
            "source": self.source,
            "options": self.data_options,
            "notes": data.notes,
            "known": self.known,
            "mask_seed": self.mask_seed,
            **({"single_positive": True, "without_label": _empty(data)} if self.single_positive else {}),
            "command": self.command(folder),
        }

    def command(self, folder: Path) -> str:
        """The command line that repeats the run, however it was started."""
        words = ["sarb", "train", *([self.recipe] if self.recipe else []), "--data", self.source]
        words += [word for key, value in self.data_options.items() for word in ("-o", f"{key}={value}")]
        if self.known < 1 or self.single_positive:
            words += ["--single-positive"] if self.single_positive else ["--known", f"{self.known:g}"]
            words += ["--mask-seed", str(self.mask_seed)]
        words += ["--out", str(folder)]
        words += ["--valid", f"{self.valid:g}"] if self.valid else []
        words += ["--init", str(self.init)] if self.init else []
        for name, value in self.options.items():
            for key, entry in value.items() if name in PREFIXES else [(name, value)]:
                text = _toml(entry)
                flag = f"--{key.replace('_', '-')}"
                words += [flag, text] if name in FLAGS else ["--set", f"{PREFIXES.get(name, '')}{key}={text}"]
        return shlex.join(words)


def _toml(value: Any) -> str:
    """A value as ``--set`` reads it; a text at the top needs no quotes."""
    if isinstance(value, Mapping):
        pairs = ((json.dumps(part, ensure_ascii=False) for part in item) for item in value.items())
        return "{" + ", ".join(map(" = ".join, pairs)) + "}"
    return str(value).lower() if isinstance(value, bool) else str(value)


def train_session(
    *,
    source: str | None = None,
    recipe: str | None = None,
    data_options: Mapping[str, Any] | None = None,
    row: str | None = None,
    known: float = 1.0,
    single_positive: bool = False,
    mask_seed: int | None = None,
    seed: int | None = None,
    out: Path | None = None,
    valid: float | None = None,
    init: Path | None = None,
    resume: bool = False,
    assignments: Sequence[str] = (),
    given: Mapping[str, Any] | None = None,
    quiet: bool = False,
    verbose: bool = False,
    page: bool = True,
    track: Sequence[str] = (),
    on_top: bool = False,
) -> tuple[Path, Report]:
    """Everything behind ``sarb train``; return the run folder and the test report.

    ``page=False`` draws no report page, which for a small run takes longer than the training; ``verbose``
    prints a row per epoch.
    """
    keep_freed_memory()
    options, own_data_options, problems = merge_options(row, assignments, {**(given or {}), "seed": seed})
    if on_top:
        problems += put_on_top(options, given or {})
    problems += track_problems(track)
    if single_positive and known < 1:
        problems.append("--known and --single-positive are two ways to hide labels: give one of them")
    job = job_of(
        source,
        recipe,
        options,
        {**(data_options or {}), **own_data_options},
        known,
        mask_seed,
        valid,
        init,
        problems,
        single_positive,
    )
    talk = Progress(enabled=not quiet, verbose=verbose)
    data = job.load()
    if os.environ.get("RANK", "0") == "0":  # torchrun: the first process talks for all
        talk.say(_about(data))
        if untied := _untied(data, job.settings):
            talk.say(untied)
        if single_positive and _empty(data):
            talk.say(f"{_empty(data):,} training images have no known positive: nothing is known about them")
    kept = "single-positive" if single_positive else str(round(100 * known))
    folder = out or Path("runs") / f"{data.name}-{job.settings.method}-{kept}"
    held = data.valid if valid is None else valid
    with Trackers.of(track, folder) as trackers, connected():
        run = start_run(
            data.train,
            job.settings,
            out=folder,
            valid=held,
            init=init,
            resume=resume,
            progress=talk,
            record=job.record(data, folder),
            track=trackers,
        )
        tested = finished_report(folder, page) if run.finished and run.writes else None
        if not run.writes:  # torchrun: the first process tests and reports, the others help it to score
            if not objects_of_all(False)[0]:
                _help_to_score(run, data.test)
            raise SystemExit(0)
        objects_of_all(tested is not None)
        if tested is not None:
            talk.say(f"{folder}: this run is finished and tested already; nothing was changed")
            return folder, tested
        talk.say(_calibration(run))
        calibrate_on_validation(run)
        report = evaluate_run(run, data.test, page=page, talk=talk)
        trackers.test(report.metrics)
    return folder, report


def finished_report(path: Path, page: bool) -> Report | None:
    """The test of a run whose folder is complete, from what it stores; None if something is missing."""
    run = RunFolder(path)
    if run.scores is None or run.test is None or not run.metrics or not run.per_category_file.is_file():
        return None
    if page and not run.report_page.is_file():
        return None
    return Report.of(run.scores, run.test, _title(run), run.calibration())


def _title(run: RunFolder) -> str:
    return f"{run.path.name}, test images"


def _about(data: Data) -> str:
    """What was read, in one line."""
    return (
        f"data: {len(data.train):,} training images, {len(data.test):,} test images, "
        f"{len(data.categories):,} categories, {100 * data.train.labels.known_share:.3g} % of the training labels known"
    )


def _untied(data: Data, settings: Settings) -> str:
    """Which category names say nothing to ``auto``, if others do; empty for other methods."""
    options = settings.method_options
    if settings.method != "auto" or options.get("claims", "names") != "names" or options.get("finetune"):
        return ""
    tied = tie(data.categories, options.get("ties") or {}).tied
    without = [name for name, is_tied in zip(data.categories, tied, strict=True) if not is_tied]
    if not without or not tied.any():
        return ""
    more = f" and {len(without) - NAMED:,} more" if len(without) > NAMED else ""
    return f"no concept for {', '.join(without[:NAMED])}{more}: their names add nothing; --set method.ties ties them"


def _empty(data: Data) -> int:
    """How many training images have no known label."""
    return len(data.train) - int(data.train.labels.known.any(axis=1).sum())


def _calibration(run: Run) -> str:
    """What happens to the probabilities."""
    if len(run.split.valid):
        return f"calibrate: on the known labels of {len(run.split.valid):,} validation images"
    run_name = "RUN" if run.folder is None else shlex.quote(str(run.folder.path))
    return f"calibrate: not yet, there are no validation images; 'sarb calibrate {run_name}' does it"


def job_of(
    source: str | None,
    recipe: str | None,
    options: dict[str, Any],
    data_options: Mapping[str, Any],
    known: float,
    mask_seed: int | None,
    valid: float | None,
    init: Path | None,
    problems: list[str],
    single_positive: bool = False,
) -> Job:
    """Check all settings, and raise everything that is wrong in one message."""
    content = read_recipe(recipe, options)
    try:
        check_share("known", known)
        settings = resolve(recipe, **options)
    except ConfigError as error:
        problems += error.problems
    if source is None and "source" not in content.get("data", {}):
        problems.append("no data: add --data SRC, e.g. --data demo or --data labels.csv")
    if problems:
        raise ConfigError(problems)
    source = source or str(content["data"]["source"])
    described = section(content, "data", reader_name(source))
    described.pop("source", None)
    mask = settings.seed if mask_seed is None else mask_seed
    described |= data_options
    return Job(recipe, source, described, options, settings, known, mask, valid, init, single_positive)


def merge_options(
    row: str | None, assignments: Sequence[str], given: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, Any], list[str]]:
    """Options of the training, options of the data, and problems; flags win over ``--set``, and that over the row."""
    problems = [unknown_name("row", row, ROWS)] if row is not None and row not in ROWS else []
    chosen = ROWS.get(row or "", Row("", ""))
    options: dict[str, Any] = {
        name: getattr(chosen, name) for name in ("network", "method") if getattr(chosen, name)
    }
    tables: dict[str, dict[str, Any]] = {
        "method": dict(chosen.method_options),
        "network": dict(chosen.network_options),
        "backbone": {},
        "lr": {},
        "data": {},
        "train": options,
    }
    for text in assignments:
        try:
            table, key, value = parse_assignment(text)
            tables[table][key] = value
        except ConfigError as error:
            problems += error.problems
    options |= {f"{name}_options": tables[name] for name in ("method", "network", "backbone")}
    options |= {"lr_scale": tables["lr"], **{key: value for key, value in given.items() if value is not None}}
    return options, tables["data"], problems


def calibrate_on_validation(run: Run) -> bool:
    """Calibrate a fresh run on the known labels of its validation images; say whether there were enough.

    A stronger calibration of the same weights stays.
    """
    seen = validation_scores(run)
    if run.folder is None or seen is None:
        return False
    _, labels, skipped = seen
    if not (labels.positives.sum() and labels.negatives.sum()):
        return False
    found = calibrate(*seen[:2], source="known labels of the validation images", kind="validation")
    run.folder.write_calibration(found)
    _list_unreadable(run.folder, run.split.valid, skipped)
    return True


def validation_scores(run: Run) -> tuple[Scores, LabelMatrix, Scores] | None:
    """Scores of the readable validation images by the last model, their labels, and the scores as predicted."""
    if not len(run.split.valid):
        return None
    held = match_categories(run.model, run.split.valid)
    # cached features belong to a whole data set, of which the images split off are a part
    whole = run.split.whole if len(run.split.held) and run.sources.cached else held
    scores = predict(run.model, whole, cache=run.sources.cached, unreadable="skip", shared=True)
    return *both(scores, held.labels), scores


def _help_to_score(run: Run, test: Dataset) -> None:
    """What the other processes of ``torchrun`` do while the first calibrates and tests: their share of the images."""
    validation_scores(run)
    whole = match_categories(run.model, test)
    predict(run.model, whole, cache=run.sources.cached, unreadable="skip", shared=True)


def _list_unreadable(folder: RunFolder, held: Dataset, scores: Scores) -> None:
    """Add validation images to the skipped ones; a fitted method has not looked at them before."""
    errors = folder.errors()
    listed = {row["file_name"] for row in errors}
    validated = set(held.labels.paths)
    errors += [
        {"file_name": name, "reason": reason, "split": "valid"}
        for name, reason in scores.skipped
        if name in validated and name not in listed
    ]
    folder.write_errors(errors)


def evaluate_run(run: Run, test: Dataset, page: bool = True, talk: Progress | None = None) -> Report:
    """Test the last model (and the best on validation, if there is one); write scores, metrics and report."""
    assert run.folder is not None
    folder = run.folder
    talk = talk or Progress(enabled=False)
    whole = match_categories(run.model, test)
    talk.say(f"test: {len(whole):,} images that were not trained on")
    scores = predict(
        run.model, whole, cache=run.sources.cached, unreadable="skip", progress=talk, shared=True
    )
    test = readable(whole, scores)
    calibration = folder.calibration() or Calibration.identity(run.model.categories)
    report = Report.of(scores, test.labels, _title(folder), calibration)
    errors = [row for row in folder.errors() if row["split"] != "test"]
    errors += [{"file_name": name, "reason": reason, "split": "test"} for name, reason in scores.skipped]
    folder.write_errors(errors)
    metrics: dict[str, Any] = json.loads(report.to_json())
    if folder.best.exists():
        metrics["best"] = _best(folder, whole, test.labels, run.sources.cached)
    splits = [row["split"] for row in errors]
    metrics["skipped"] = {split: splits.count(split) for split in ("train", "valid", "test")}
    # with whole paths, so that a later report finds the pictures from anywhere
    labels = LabelMatrix(test.labels.values, test.categories, [str(path) for path in test.paths])
    folder.write_test(scores, labels, metrics)
    card = model_card(run.model, run.config["settings"], run.labels, data=run.config["data"], metrics=metrics)
    folder.model.write_card(card)
    report.to_csv(folder.per_category_file)
    if page:
        talk.say("report: plots and page")
        write_report(folder.path)
    return report


def _best(folder: RunFolder, whole: Dataset, labels: LabelMatrix, cache: bool) -> dict[str, Any]:
    """The numbers of the epoch that was best on the validation images."""
    scores = predict(load_model(folder.best.path), whole, cache=cache, unreadable="skip")
    numbers = json.loads(Report.of(scores, labels, resamples=0).to_json())
    return {key: value for key, value in numbers.items() if key != "per_category"}
