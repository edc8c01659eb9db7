"""Every answer, on disk before it is confirmed: one line of JSON each, appended and synced."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from sarb.errors import SarbError
from sarb.files import sync_folder
from sarb.runs.checks import any_of, choice, flag, nothing, parse, table, text

if sys.platform != "win32":
    import fcntl


#: a line of a review's journal, or of the answers from Label Studio
RECORD = table(
    {
        **dict.fromkeys(("kind", "who", "time", "ask", "run", "page", "file_name", "label"), text()),
        "order": any_of("text or null", text(), nothing),
        "assisted": flag,
        "answer": choice("yes", "no", "skip", "open"),
        "answers": table({}, rest=any_of("text or null", text(), nothing)),
    }
)


class SaveError(SarbError):
    """An answer that could not be saved; it can be sent again."""


def journal_of(out: Path) -> Path:
    """Return the journal next to a review's file: ``reviewed.csv`` -> ``reviewed.answers.jsonl``."""
    return out.with_name(f"{out.stem}.answers.jsonl")


def read_journal(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the records of a journal, oldest first, without an unfinished last line."""
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            if not line.endswith(b"\n"):
                return
            try:
                record = parse(line)
                RECORD(record, "")
            except ValueError as error:
                raise SarbError(
                    f"{path}:{number}: not an answer ({error}); repair or remove this line"
                ) from None
            yield record


class Journal:
    """An append-only file of JSON lines, held by one process.

    A line counts once its line break is on disk. Anything a crash left after the last line break was never
    confirmed to anyone, and is cut off. Plain text rather than a database: people can read and repair it
    without tools.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        new = not path.exists()
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o666)
        except OSError as error:
            raise SarbError(f"{path}: cannot be written ({error.strerror})") from None
        self._lock()
        if new:
            sync_folder(path.parent)
        self._end = self._cut_partial_line()

    def _lock(self) -> None:
        """Refuse a second server on the same file: the two would not see each other's answers.

        The lock is on the journal itself, so there is no lock file next to the user's labels.
        """
        if sys.platform == "win32":  # it has no flock
            return
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._file)
            raise SarbError(
                f"{self.path}: another 'sarb serve' is using it; "
                "open that server's page, or choose another --out"
            ) from None

    def _cut_partial_line(self) -> int:
        content = self.path.read_bytes()
        end = content.rfind(b"\n") + 1
        if end != len(content):
            os.ftruncate(self._file, end)
        return end

    def read(self) -> Iterator[dict[str, Any]]:
        """Yield all records, oldest first."""
        return read_journal(self.path)

    @property
    def empty(self) -> bool:
        """Whether it holds no record."""
        return self._end == 0

    def append(self, records: Iterable[dict[str, Any]]) -> None:
        """Append records; they are on disk when this returns, and not in the file if it raises."""
        text = "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records).encode()
        try:
            written = 0
            while written < len(text):
                written += os.write(self._file, text[written:])
            os.fsync(self._file)
        except OSError as error:
            os.ftruncate(self._file, self._end)
            raise SaveError(f"{self.path}: the answer could not be saved ({error.strerror})") from None
        self._end += len(text)

    def close(self) -> None:
        """Close the file; calling it again does nothing."""
        if self._file >= 0:
            os.close(self._file)
        self._file = -1
