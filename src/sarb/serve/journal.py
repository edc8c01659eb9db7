"""Every answer, on disk before it is confirmed: one line of JSON each, appended and synced."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from sarb.errors import SarbError

if sys.platform != "win32":
    import fcntl


class SaveError(SarbError):
    """An answer that could not be saved; it can be sent again."""


def journal_of(out: Path) -> Path:
    """Return the journal next to a review's file: ``reviewed.csv`` -> ``reviewed.answers.jsonl``."""
    return out.with_name(f"{out.stem}.answers.jsonl")


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
            _sync_folder(path.parent)
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
        with self.path.open(encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                try:
                    record = json.loads(line)
                except ValueError:
                    record = None
                if not isinstance(record, dict):
                    raise SarbError(f"{self.path}:{number}: not an answer; repair or remove this line")
                yield record

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


def _sync_folder(folder: Path) -> None:
    """Make the name of a new file durable, on systems that can sync a folder."""
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        os.fsync(handle)
        os.close(handle)
