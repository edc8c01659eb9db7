"""RunFolder: read whatever a run has left behind; a file that is missing is None."""

from __future__ import annotations

import json
import math
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar
from zipfile import BadZipFile

from sarb.errors import DataError
from sarb.files import read_json
from sarb.labels import LabelMatrix
from sarb.report.curves import Log, read_log
from sarb.report.report import Report
from sarb.scores import Scores

T = TypeVar("T")


@dataclass(frozen=True)
class RunFolder:
    """The files of a run folder that the page needs."""

    path: Path
    config: dict[str, Any] = field(default_factory=dict)
    metrics: dict[str, Any] = field(default_factory=dict)
    log: Log | None = None
    steps: Log | None = None
    train: LabelMatrix | None = None
    test: LabelMatrix | None = None
    scores: Scores | None = None

    @classmethod
    def read(cls, path: str | Path) -> RunFolder:
        """Read a folder; an error says which file is broken."""
        path = Path(path)
        if not path.is_dir():
            raise DataError(f"{path} is not a run folder: there is no such folder")
        run = cls(
            path,
            config=_optional(path / "config.json", read_json) or {},
            metrics=_optional(path / "metrics.json", read_json) or {},
            log=_optional(path / "log.csv", read_log),
            steps=_optional(path / "steps.csv", read_log),
            train=_optional(path / "labels.npz", LabelMatrix.load),
            test=_optional(path / "test_labels.npz", LabelMatrix.load),
            scores=_optional(path / "scores.npz", Scores.load),
        )
        if not (run.config or run.metrics or run.log or run.scores):
            raise DataError(
                f"{path} is not a run folder: it holds none of config.json, log.csv, metrics.json, scores.npz"
            )
        return run

    @property
    def name(self) -> str:
        """The folder's own name."""
        return self.path.resolve().name

    def report(self) -> Report | None:
        """The numbers: those of ``metrics.json`` if it is there, else measured from the stored scores.

        The rows per category come from the scores, which also give the curves, or from ``metrics.json``.
        """
        measured = None
        if self.scores is not None and self.test is not None:
            measured = Report.of(self.scores, self.test, self.name)
        if "mAP" not in self.metrics:
            return measured
        numbers = {key: _nan(value) for key, value in self.metrics.items() if _is_number(value)}
        rows = measured.per_category if measured else _rows(self.metrics.get("per_category"))
        return Report(
            numbers, rows, self.name, self.scores if measured else None, self.test if measured else None
        )

    def others(self) -> dict[str, dict[str, float]]:
        """Further measurements nested in ``metrics.json``, such as the epoch that was best on validation
        images.
        """
        nested = {
            key: value for key, value in self.metrics.items() if isinstance(value, Mapping) and "mAP" in value
        }
        return {
            key: {name: _nan(v) for name, v in value.items() if _is_number(v)}
            for key, value in nested.items()
        }

    def setting(self, *names: str) -> Any:
        """The first of these settings in ``config.json``, at any depth, outermost first; None if it has
        none.
        """
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


def _optional(path: Path, load: Callable[[Path], T]) -> T | None:
    """Load a file if it exists."""
    if not path.is_file():
        return None
    try:
        return load(path)
    except (OSError, ValueError, KeyError, EOFError, BadZipFile, json.JSONDecodeError) as error:
        raise DataError(f"{path}: cannot read this file of the run ({error})") from error


def _is_number(value: Any) -> bool:
    """True for numbers and for the null that stands for an undefined number."""
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool))


def _nan(value: float | None) -> float:
    return math.nan if value is None else value


def _rows(stored: Any) -> list[dict[str, Any]]:
    """Rows per category as stored in JSON, with nan again for null."""
    rows = [
        row
        for row in stored or []
        if isinstance(row, Mapping) and {"category", "AP", "positives"} <= set(row)
    ]
    return [{key: _nan(value) for key, value in row.items()} for row in rows]
