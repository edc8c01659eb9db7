"""The run folder and its only owner: every file name in it, how each file is read, written and checked.

``RunFolder`` is what a training leaves behind; ``ModelFolder`` is the part of it that works on its own. A model
folder that was copied elsewhere or downloaded answers the same questions, see :mod:`sarb.runs.lookup`.
"""

from __future__ import annotations

import csv
import json
import shlex
import shutil
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from sarb.errors import DataError, SarbError
from sarb.files import atomic_write, json_text, write_json, write_rows
from sarb.labelling.calibration import Calibration
from sarb.labels import LabelMatrix
from sarb.runs import schema
from sarb.runs.checks import Check, read_checked
from sarb.runs.log import Log, read_log
from sarb.runs.manifest import Manifest, digest
from sarb.scores import Scores
from sarb.settings import HARMLESS, Settings, resolve

# a model folder
WEIGHTS = "model.safetensors"
CONFIG = "config.json"
CARD = "README.md"
THRESHOLDS = "thresholds.json"
MANIFEST = "manifest.json"
MODEL_FILES = (WEIGHTS, CONFIG, CARD, THRESHOLDS, MANIFEST)

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

#: what may differ when a run is resumed, because they do not change its numbers
MAY_DIFFER = HARMLESS | {"command", "root"}

#: files of the run folder that the manifest covers: what results depend on, not what shows them
COVERED = (CONFIG, LABELS, SCORES, TEST_LABELS, OUT_OF_FOLD)

#: what helps against a damaged file, besides another copy of it
CALIBRATE = "run 'sarb calibrate' to write a new one"
START_OVER = "remove it to start over"

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
        # the parts of a run say only once that nothing is checked
        owner = self.path.parent if self.path.name in (LAST, BEST) else self.path
        self.manifest = Manifest(self.path / MANIFEST, owner)

    def __repr__(self) -> str:
        return f"ModelFolder({self.path})"

    def exists(self) -> bool:
        """Whether a model can be loaded from here."""
        return self.weights.is_file() and self.config_file.is_file()

    def check_whole(self) -> None:
        """Raise if the folder is there but a file of the model is missing: it was written whole."""
        missing = [file for file in (self.weights, self.config_file) if not file.is_file()]
        if missing and self.path.is_dir():
            raise SarbError(
                f"{missing[0]}: is missing; copy it again or restore it from a backup, or remove {self.path} to "
                "train it again"
            )

    def checksum(self) -> str:
        """SHA-256 of the weights file; empty without weights."""
        return digest(self.weights) if self.weights.is_file() else ""

    def check_weights(self) -> None:
        """Raise unless the weights are as they were written."""
        self.manifest.check(self.weights)

    def read_config(self) -> dict[str, Any]:
        """The configuration, checked."""
        self.manifest.check(self.config_file)
        config: dict[str, Any] = read_checked(self.config_file, schema.MODEL_CONFIG, schema.MOST_BYTES)
        return config

    def write(self, weights: bytes, config: Mapping[str, Any], card: str) -> None:
        """Fill a new folder."""
        self.manifest.write_new({WEIGHTS: weights, CONFIG: json_text(config).encode()})
        self.write_card(card)

    def calibration(self) -> Calibration | None:
        """The calibration that was fitted to these weights, or None.

        It lies in this folder, or in the run folder this folder belongs to. A calibration that was fitted to
        other weights never applies; a file from before checksums applies to the last model only.
        """
        files = {self.thresholds: self.manifest}
        if self.path.name in (LAST, BEST):
            run = self.path.parent
            files = {run / THRESHOLDS: Manifest(run / MANIFEST), **files}
        checksum = ""
        for file, manifest in files.items():
            manifest.check(file, CALIBRATE)
            if not file.is_file():
                continue
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
        self.manifest.write(self.thresholds, bound.to_bytes())
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
        self.checkpoints = self.path / CHECKPOINT
        self.checkpoint = self.checkpoints / CHECKPOINT_STATE
        self.manifest = Manifest(self.path / MANIFEST)

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
        return self._optional(self.path / CONFIG, lambda file: _json(file, schema.RUN_CONFIG)) or {}

    def write_config(self, config: Mapping[str, Any]) -> None:
        """Write the configuration of a new run."""
        self.manifest.write(self.path / CONFIG, json_text(config).encode())
        self.__dict__.pop("config", None)

    def check_same(self, config: Mapping[str, Any]) -> None:
        """Refuse to resume a run whose settings differ; name each difference."""
        file = self.path / CONFIG
        if not file.is_file():
            raise SarbError(f"{file}: cannot be read, so the run cannot be resumed (there is no such file)")
        before = self.config
        config = json.loads(json.dumps(config))  # JSON knows no tuples
        usual = Settings().as_dict()  # of settings that did not exist yet when the run began
        differences = [
            f"{key}: was {before.get(section, {}).get(key)!r}, now {config[section].get(key)!r}"
            for section in ("settings", "data")
            for key in sorted({*before.get(section, {}), *config[section]} - MAY_DIFFER)
            if before.get(section, {}).get(key, usual.get(key)) != config[section].get(key)
        ]
        if differences:
            raise SarbError(
                f"{self.path}: cannot resume, the settings differ:\n  " + "\n  ".join(differences)
            )

    def settings(self) -> Settings:
        """The settings of the run, to train the same way again."""
        settings = self.config.get("settings")
        if not settings:
            raise SarbError(f"{self.path / CONFIG}: has no settings, so the run cannot be trained again")
        return resolve({}, **settings)

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
        return self._optional(self.path / LOG, read_log)

    @cached_property
    def steps(self) -> Log | None:
        """The loss of every step, as columns."""
        return self._optional(self.path / STEPS, read_log)

    def log_rows(self) -> list[dict[str, str]]:
        """One row per epoch, as text."""
        return _rows(self.path / LOG)

    def step_losses(self) -> list[float]:
        """The loss of every step that could be made."""
        file = self.path / STEPS
        try:
            return [float(row["loss"]) for row in _rows(file, "loss") if row["loss"]]
        except ValueError as error:
            raise DataError(f"{file}: cannot read this file of the run ({error})") from error

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
        return _rows(self.path / ERRORS, "file_name", "reason", "split")

    def remove_checkpoints(self) -> None:
        """Delete what a resume needs, once the run needs none or starts again."""
        shutil.rmtree(self.checkpoints, ignore_errors=True)

    # the labels it learned from, and what came out

    @cached_property
    def train(self) -> LabelMatrix | None:
        """The labels it learned from."""
        return self._optional(self.path / LABELS, LabelMatrix.load)

    def write_train(self, labels: LabelMatrix) -> None:
        """Store the labels it learns from."""
        self.manifest.write(self.path / LABELS, labels.to_bytes())
        self.__dict__.pop("train", None)

    @cached_property
    def test(self) -> LabelMatrix | None:
        """Labels of the test images, with whole paths."""
        return self._optional(self.path / TEST_LABELS, LabelMatrix.load)

    @cached_property
    def scores(self) -> Scores | None:
        """Scores of the test images."""
        return self._optional(self.path / SCORES, Scores.load)

    @cached_property
    def metrics(self) -> dict[str, Any]:
        """What the test measured; empty before it."""
        return self._optional(self.path / METRICS, lambda file: _json(file, schema.METRICS)) or {}

    @property
    def per_category_file(self) -> Path:
        """The test's numbers of each category."""
        return self.path / PER_CATEGORY

    def write_test(self, scores: Scores, labels: LabelMatrix, metrics: Mapping[str, Any]) -> None:
        """Store the scores and labels of the test images and what was measured on them."""
        self.manifest.write(self.path / SCORES, scores.to_bytes())
        self.manifest.write(self.path / TEST_LABELS, labels.to_bytes())
        self.write_metrics(metrics)
        for name in ("scores", "test"):
            self.__dict__.pop(name, None)

    def write_metrics(self, metrics: Mapping[str, Any]) -> None:
        """Store what was measured on the test images."""
        write_json(self.path / METRICS, metrics)
        self.__dict__.pop("metrics", None)

    @cached_property
    def out_of_fold(self) -> Scores | None:
        """Scores of the training images by models that had not seen the label they score."""
        return self._optional(self.path / OUT_OF_FOLD, Scores.load)

    def write_out_of_fold(self, scores: Scores) -> None:
        """Store the out-of-fold scores."""
        self.manifest.write(self.path / OUT_OF_FOLD, scores.to_bytes())
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
        for file, manifest in self._calibrations():
            manifest.check(file, CALIBRATE)
            if file.is_file():
                return Calibration.load(file)
        return None

    def write_calibration(self, calibration: Calibration) -> Calibration:
        """Store a calibration of the last model, in the run folder and in the model folder.

        One that is stronger, of the same weights, is kept instead; return the one that is stored.
        """
        bound = replace(calibration, weights=self.model.checksum())
        stored = self._stored_calibration()
        if stored is not None and stored.weights == bound.weights and stored.stronger_than(bound):
            return stored
        for file, manifest in self._calibrations():
            if file.parent.is_dir():
                manifest.write(file, bound.to_bytes())
        return bound

    def _calibrations(self) -> list[tuple[Path, Manifest]]:
        """Where the calibration of the last model is stored: twice, so that the model folder works on its own."""
        places = {self.path / THRESHOLDS: self.manifest, self.model.thresholds: self.model.manifest}
        return list(places.items())

    def _stored_calibration(self) -> Calibration | None:
        """The calibration in this folder; a damaged one may be replaced by any."""
        try:
            self.manifest.check(self.path / THRESHOLDS)
            return Calibration.load(self.path / THRESHOLDS) if (self.path / THRESHOLDS).is_file() else None
        except SarbError:
            return None

    def remove_calibration(self) -> bool:
        """Delete the calibration of the last model; say whether there was one."""
        places = self._calibrations()
        found = any(file.is_file() for file, _ in places)
        for file, manifest in places:
            manifest.remove(file)
        return found

    # a cell of a grid

    def finished_cell(self) -> dict[str, Any] | None:
        """The line of ``results.csv`` that this run gave, or None."""
        return self._optional(self.path / CELL, lambda file: _json(file, schema.GRID_CELL))

    def finish_cell(self, line: Mapping[str, Any], keep_models: bool) -> None:
        """Store the line and remove what a finished cell no longer needs."""
        write_json(self.path / CELL, line)
        self.remove_weights(keep_models)

    def remove_weights(self, keep_models: bool) -> None:
        """Remove what a finished run no longer needs: its checkpoint and, unless they are kept, its models."""
        for name in (CHECKPOINT, *([] if keep_models else [LAST, BEST])):
            shutil.rmtree(self.path / name, ignore_errors=True)

    def _optional(self, file: Path, load: Callable[[Path], T]) -> T | None:
        """Load a file if it exists; it must be as it was written, if the manifest covers it."""
        if file.name in COVERED:
            self.manifest.check(file)
        if not file.is_file():
            return None
        try:
            return load(file)
        except OSError as error:
            raise DataError(f"{file}: cannot read this file of the run ({error.strerror})") from error


def checkpoint_manifest(file: Path) -> Manifest:
    """The manifest of the folder with the checkpoints of a run, which comes and goes as a whole."""
    return Manifest(file.parent / MANIFEST, file.parent.parent)


def kept_scores(file: Path, say: Callable[[str], None]) -> Scores | None:
    """Scores of a finished part of a calibration; None, with a message, if they are damaged."""
    if not file.is_file():
        return None
    try:
        Manifest(file.parent / MANIFEST).check(file)
        return Scores.load(file)
    except SarbError as error:
        say(f"{error}; it is computed again")
        return None


def write_kept_scores(file: Path, scores: Scores) -> None:
    """Keep the scores of a finished part of a calibration."""
    Manifest(file.parent / MANIFEST).write(file, scores.to_bytes())


def _json(file: Path, table: Check) -> dict[str, Any]:
    content: dict[str, Any] = read_checked(file, table, schema.MOST_BYTES)
    return content


def _rows(file: Path, *needed: str) -> list[dict[str, str]]:
    """Rows of a CSV file with these columns; none without the file."""
    if not file.is_file():
        return []
    try:
        with file.open(encoding="utf-8", newline="") as stream:
            table = csv.DictReader(stream, restval="")
            missing = [name for name in needed if name not in (table.fieldnames or ())]
            if missing:
                raise DataError(f"{file}: has no column '{missing[0]}'")
            return [{name: row[name] for name in table.fieldnames or ()} for row in table]
    except (OSError, ValueError, csv.Error) as error:
        raise DataError(f"{file}: cannot read this file of the run ({error})") from error
