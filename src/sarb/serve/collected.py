"""Answers that Label Studio reports: in a journal first, then in a copy of the user's table."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sarb.data.writers.rewrite import Reading
from sarb.errors import SarbError
from sarb.label_studio.answers import answers_of, combined, row_of
from sarb.label_studio.config import said
from sarb.label_studio.tasks import known_labels
from sarb.labels import UNKNOWN
from sarb.serve.journal import Journal, journal_of
from sarb.serve.saver import Saver
from sarb.serve.table import Table

SAVED = "annotation"
DELETED = "deleted"


class Collected:
    """The annotations so far. All public methods may be called from any thread.

    A known label of the table is never changed, and where people disagree a label stays unknown.

    Args:
        table: the labels.
        out: the CSV to write; the journal is next to it.

    Attributes:
        source: the labels as the user named them, for messages.
        tasks: how many images have an answer.
    """

    def __init__(self, table: Table, out: Path, source: str) -> None:
        self.table = table
        self.out = out
        self.source = source
        self._rows = {name: row for row, name in enumerate(table.labels.paths)}
        self._columns = {name: column for column, name in enumerate(table.labels.categories)}
        self._annotations: dict[tuple[Any, Any], tuple[int, dict[str, int]]] = {}
        self._lock = threading.Lock()
        self._journal = self._open()
        try:
            self._replay()
            self._write()  # now, so that a failure shows up before the first answer
        except BaseException:
            self._journal.close()
            raise
        self.saver = Saver(self._write)

    def _open(self) -> Journal:
        path = journal_of(self.out)
        if self.out.exists() and not path.exists():
            raise SarbError(
                f"{self.out}: exists already and holds no answers from Label Studio (there is no {path.name}); "
                "choose another --out"
            )
        return Journal(path)

    def _replay(self) -> None:
        """Resume from the journal, unless the CSV holds labels that the journal does not explain."""
        values = self.table.labels.values
        explained = np.zeros((*values.shape, 3), bool)
        np.put_along_axis(explained, values[:, :, None].astype(np.int64) + 1, True, axis=2)
        for record in self._journal.read():
            self._apply(record)
            row = self._rows.get(str(record.get("file_name")))
            for category, label in known_labels({"labels": record.get("answers")}).items():
                if row is not None and category in self._columns:
                    explained[row, self._columns[category], label + 1] = True
        if self.out.exists():
            self.table.check_out(self.out, explained)

    def save(self, project: Any, annotation: Mapping[str, Any], task: Mapping[str, Any], time: str) -> bool:
        """Record an annotation; return False if its image is not in the table.

        It is in the journal in any case.
        """
        data = task.get("data")
        data = data if isinstance(data, Mapping) else {}
        row = row_of(data, self._rows)
        answers = {category: said(label) for category, label in answers_of(annotation).items()}
        record = {
            "kind": SAVED,
            "project": _id(project),
            "annotation": _id(annotation.get("id")),
            "task": _id(task.get("id")),
            "file_name": str(data.get("image")) if row is None else self.table.labels.paths[row],
            "answers": answers,
            "time": time,
        }
        self._record([record])
        return row is not None

    def delete(self, project: Any, annotations: Sequence[Any], time: str) -> None:
        """Take annotations back."""
        self._record(
            [
                {"kind": DELETED, "project": _id(project), "annotation": _id(number), "time": time}
                for number in annotations
            ]
        )

    def _record(self, records: Sequence[dict[str, Any]]) -> None:
        with self._lock:
            self._journal.append(records)
            for record in records:
                self._apply(record)
        self.saver.touch()

    def _apply(self, record: Mapping[str, Any]) -> None:
        key = (_id(record.get("project")), _id(record.get("annotation")))
        self._annotations.pop(key, None)
        row = self._rows.get(str(record.get("file_name")))
        if record.get("kind") == SAVED and row is not None:
            self._annotations[key] = row, known_labels({"labels": record.get("answers")})

    @property
    def tasks(self) -> int:
        """How many images have an answer."""
        with self._lock:
            return len({row for row, answers in self._annotations.values() if answers})

    def values(self) -> NDArray[np.int8]:
        """Return the labels (N, C) with the answers filled in where the table knows nothing."""
        values = self.table.labels.values.copy()
        answers: dict[int, list[dict[str, int]]] = {}
        with self._lock:
            for row, given in self._annotations.values():
                answers.setdefault(row, []).append(given)
        for row, several in answers.items():
            for category, label in combined(several)[0].items():
                column = self._columns.get(category)
                if column is not None and values[row, column] == UNKNOWN:
                    values[row, column] = label
        return values

    def snapshot(self, out: Path) -> Reading:
        """Write the labels as they are now to another file; return how to read it."""
        return self.table.write(self.values(), out)

    def _write(self) -> None:
        self.table.write(self.values(), self.out)

    def close(self) -> None:
        """Write the CSV and close the journal."""
        try:
            self.saver.close()
        finally:
            self._journal.close()


def _id(value: Any) -> int | str | None:
    """Return the id of something, a number or text; None if it is anything else."""
    return value if isinstance(value, int | str) else None
