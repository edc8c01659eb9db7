"""The run folder and its only owner: every file name in it, how each file is read, written and checked.

``RunFolder`` is what a training leaves behind; ``ModelFolder`` is the part of it that works on its own. A model
folder that was copied elsewhere or downloaded answers the same questions, see :mod:`sarb.runs.lookup`.
"""

from __future__ import annotations

import csv
import hashlib
import json
import shlex
import shutil
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar
from zipfile import BadZipFile

from sarb.errors import DataError, SarbError
from sarb.files import atomic_write, read_json, write_json, write_rows
from sarb.labelling.calibration import Calibration
from sarb.labels import LabelMatrix
from sarb.runs.log import Log, read_log
from sarb.scores import Scores
from sarb.settings import Settings, resolve

# a model folder
WEIGHTS = "model.safetensors"
CONFIG = "config.json"
CARD = "README.md"
THRESHOLDS = "thresholds.json"
MODEL_FILES = (WEIGHTS, CONFIG, CARD, THRESHOLDS)

# a run folder
LAST = "model"
BEST = "best"
CHECKPOINT = "checkpoint"
CHECKPOINT_STATE = "state.safetensors"
LABELS = "labels.npz"
LOG = "log.csv"
STEPS = "steps.csv"
ERRORS = "errors.csv"
SCORES = "scores.npz"
TEST_LABELS = "test_labels.npz"
METRICS = "metrics.json"
PER_CATEGORY = "per_category.csv"
OUT_OF_FOLD = "oof.npz"
FOLDS = "folds"
PLOTS = "plots"
REPORT = "report.html"
CELL = "cell.json"

#: settings that may differ when a run is resumed, because they do not change its numbers
HARMLESS = {"workers", "command"}

T = TypeVar("T")


class ModelFolder:
    """Weights, configuration, model card and, after ``sarb calibrate``, a calibration.

    Args:
        path: the folder.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.weights = self.path / WEIGHTS
        self.config_file = self.path / CONFIG
        self.card = self.path / CARD
        self.thresholds = self.path / THRESHOLDS

    def __repr__(self) -> str:
        return f"ModelFolder({self.path})"

    def exists(self) -> bool:
        """Whether a model can be loaded from here."""
        return self.weights.is_file() and self.config_file.is_file()

    def checksum(self) -> str:
        """SHA-256 of the weights file; empty without weights."""
        if not self.weights.is_file():
            return ""
        with self.weights.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()

    def calibration(self) -> Calibration | None:
        """The calibration that was fitted to these weights, or None.

        It lies in this folder, or in the run folder this folder belongs to. A calibration that was fitted to
        other weights never applies; a file from before checksums applies to the last model only.
        """
        files = [self.thresholds]
        if self.path.name in (LAST, BEST):
            files.insert(0, self.path.parent / THRESHOLDS)
        checksum = ""
        for file in filter(Path.is_file, files):
            found = Calibration.load(file)
            checksum = checksum or self.checksum()
            of_this_folder = file == self.thresholds or self.path.name == LAST
            if found.weights in ("", checksum) if of_this_folder else found.weights == checksum:
                return found
            if of_this_folder and checksum:
                warnings.warn(
                    f"{file}: not used, because it was fitted to other weights than {self.weights}; "
                    "run 'sarb calibrate' again",
                    stacklevel=2,
                )
        return None

    def write_calibration(self, calibration: Calibration) -> Calibration:
        """Store a calibration of these weights and return it with their checksum."""
        bound = replace(calibration, weights=self.checksum())
        bound.save(self.thresholds)
        return bound

    def read_card(self) -> str | None:
        """The model card, or None."""
        return self.card.read_text(encoding="utf-8") if self.card.is_file() else None

    def write_card(self, text: str) -> None:
        """Replace the model card."""
        with atomic_write(self.card) as file:
            file.write(text)


class RunFolder:
    """The files of a run. A property whose file is missing is None, or empty.

    Args:
        path: the folder; a model folder is a run folder that holds nothing but the model.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        itself = ModelFolder(self.path)
        self.model = itself if itself.weights.is_file() else ModelFolder(self.path / LAST)
        self.best = ModelFolder(self.path / BEST)
        self.report_page = self.path / REPORT
        self.folds = self.path / FOLDS
        self.checkpoint = self.path / CHECKPOINT / CHECKPOINT_STATE

    def __repr__(self) -> str:
        return f"RunFolder({self.path})"

    @classmethod
    def read(cls, path: str | Path) -> RunFolder:
        """A folder that holds at least one file of a run; an error says which file is broken."""
        run = cls(path)
        if not run.path.is_dir():
            raise DataError(f"{path} is not a run folder: there is no such folder")
        if not (run.config or run.metrics or run.log or run.scores):
            raise DataError(
                f"{path} is not a run folder: it holds none of {CONFIG}, {LOG}, {METRICS}, {SCORES}"
            )
        return run

    @property
    def name(self) -> str:
        """The folder's own name."""
        return self.path.resolve().name

    # what was trained

    @cached_property
    def config(self) -> dict[str, Any]:
        """Everything needed to repeat the run; empty without the file."""
        return _optional(self.path / CONFIG, read_json) or {}

    def write_config(self, config: Mapping[str, Any]) -> None:
        """Write the configuration of a new run."""
        write_json(self.path / CONFIG, config)
        self.__dict__.pop("config", None)

    def check_same(self, config: Mapping[str, Any]) -> None:
        """Refuse to resume a run whose settings differ; name each difference."""
        file = self.path / CONFIG
        try:
            before = read_json(file)
        except (OSError, ValueError) as error:
            raise SarbError(f"{file}: cannot be read, so the run cannot be resumed ({error})") from error
        config = json.loads(json.dumps(config))  # JSON knows no tuples
        differences = [
            f"{key}: was {before.get(section, {}).get(key)!r}, now {config[section].get(key)!r}"
            for section in ("settings", "data")
            for key in sorted({*before.get(section, {}), *config[section]} - HARMLESS)
            if before.get(section, {}).get(key) != config[section].get(key)
        ]
        if differences:
            raise SarbError(
                f"{self.path}: cannot resume, the settings differ:\n  " + "\n  ".join(differences)
            )

    def settings(self) -> Settings:
        """The settings of the run, to train the same way again."""
        return resolve({}, **self.config["settings"])

    @property
    def data_record(self) -> Mapping[str, Any]:
        """Source, options and hiding of the data it was trained on; empty if it does not say."""
        record: Mapping[str, Any] = self.config.get("data", {})
        return record

    @property
    def cached(self) -> bool:
        """Whether the training images are in the feature cache."""
        return bool(self.config.get("cached"))

    def setting(self, *names: str) -> Any:
        """The first of these settings in the configuration, at any depth, outermost first; else None."""
        level: list[Mapping[str, Any]] = [self.config]
        while level:
            for name in names:
                for table in level:
                    value = table.get(name)
                    value = value.get("name") if isinstance(value, Mapping) else value
                    if value is not None:
                        return value
            level = [value for table in level for value in table.values() if isinstance(value, Mapping)]
        return None

    @property
    def command(self) -> str | None:
        """The command that repeats the run."""
        value = self.setting("command")
        return shlex.join(map(str, value)) if isinstance(value, list) else value

    # how it went

    @cached_property
    def log(self) -> Log | None:
        """One row per epoch, as columns."""
        return _optional(self.path / LOG, read_log)

    @cached_property
    def steps(self) -> Log | None:
        """The loss of every step, as columns."""
        return _optional(self.path / STEPS, read_log)

    def log_rows(self) -> list[dict[str, str]]:
        """One row per epoch, as text."""
        return _rows(self.path / LOG)

    def step_losses(self) -> list[float]:
        """The loss of every step that could be made."""
        return [float(row["loss"]) for row in _rows(self.path / STEPS) if row["loss"]]

    def write_tables(
        self,
        log: Sequence[Mapping[str, Any]],
        steps: Sequence[Mapping[str, Any]],
        skipped: Sequence[Mapping[str, str]],
    ) -> None:
        """Write the log, the losses of the steps and the list of unreadable images."""
        write_rows(self.path / LOG, log)
        write_rows(self.path / STEPS, steps)
        self.write_errors(skipped)

    def write_errors(self, rows: Sequence[Mapping[str, str]]) -> None:
        """List the skipped images (file_name, reason, split); no file if there are none."""
        if rows:
            write_rows(self.path / ERRORS, rows)
        else:
            (self.path / ERRORS).unlink(missing_ok=True)

    def errors(self) -> list[dict[str, str]]:
        """The skipped images."""
        return _rows(self.path / ERRORS)

    # the labels it learned from, and what came out

    @cached_property
    def train(self) -> LabelMatrix | None:
        """The labels it learned from."""
        return _optional(self.path / LABELS, LabelMatrix.load)

    def write_train(self, labels: LabelMatrix) -> None:
        """Store the labels it learns from."""
        labels.save(self.path / LABELS)
        self.__dict__.pop("train", None)

    @cached_property
    def test(self) -> LabelMatrix | None:
        """Labels of the test images, with whole paths."""
        return _optional(self.path / TEST_LABELS, LabelMatrix.load)

    @cached_property
    def scores(self) -> Scores | None:
        """Scores of the test images."""
        return _optional(self.path / SCORES, Scores.load)

    @cached_property
    def metrics(self) -> dict[str, Any]:
        """What the test measured; empty before it."""
        return _optional(self.path / METRICS, read_json) or {}

    @property
    def per_category_file(self) -> Path:
        """The test's numbers of each category."""
        return self.path / PER_CATEGORY

    def write_test(self, scores: Scores, labels: LabelMatrix, metrics: Mapping[str, Any]) -> None:
        """Store the scores and labels of the test images and what was measured on them."""
        scores.save(self.path / SCORES)
        labels.save(self.path / TEST_LABELS)
        write_json(self.path / METRICS, metrics)
        for name in ("scores", "test", "metrics"):
            self.__dict__.pop(name, None)

    @cached_property
    def out_of_fold(self) -> Scores | None:
        """Scores of the training images by models that had not seen the label they score."""
        return _optional(self.path / OUT_OF_FOLD, Scores.load)

    def write_out_of_fold(self, scores: Scores) -> None:
        """Store the out-of-fold scores."""
        scores.save(self.path / OUT_OF_FOLD)
        self.__dict__.pop("out_of_fold", None)

    def plot(self, name: str) -> Path:
        """The file of a plot."""
        return self.path / PLOTS / f"{name}.png"

    # how to read its scores

    def calibration(self) -> Calibration | None:
        """The calibration of the last model, or None.

        A run whose model was removed to save space still shows the calibration it had.
        """
        if self.model.exists():
            return self.model.calibration()
        files = filter(Path.is_file, (self.path / THRESHOLDS, self.model.thresholds))
        return next(map(Calibration.load, files), None)

    def write_calibration(self, calibration: Calibration) -> Calibration:
        """Store a calibration of the last model, in the run folder and in the model folder."""
        bound = replace(calibration, weights=self.model.checksum())
        bound.save(self.path / THRESHOLDS)
        if self.model.path.is_dir():
            bound.save(self.model.thresholds)
        return bound

    # a cell of a grid

    def finished_cell(self) -> dict[str, Any] | None:
        """The line of ``results.csv`` that this run gave, or None."""
        return _optional(self.path / CELL, read_json)

    def finish_cell(self, line: Mapping[str, Any], keep_models: bool) -> None:
        """Store the line and remove what a finished cell no longer needs."""
        write_json(self.path / CELL, line)
        for name in (CHECKPOINT, *([] if keep_models else [LAST, BEST])):
            shutil.rmtree(self.path / name, ignore_errors=True)


def _optional(file: Path, load: Callable[[Path], T]) -> T | None:
    """Load a file if it exists."""
    if not file.is_file():
        return None
    try:
        return load(file)
    except (OSError, ValueError, KeyError, EOFError, BadZipFile) as error:
        raise DataError(f"{file}: cannot read this file of the run ({error})") from error


def _rows(file: Path) -> list[dict[str, str]]:
    """Rows of a CSV file; none without the file."""
    if not file.is_file():
        return []
    with file.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))
