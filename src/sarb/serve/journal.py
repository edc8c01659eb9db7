"""Every answer, durable before it is confirmed: one line of JSON each, appended and forced to the disk."""

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
    """An answer that could not be written; it may be sent again."""


def journal_of(out: Path) -> Path:
    """The journal beside the file of a review: ``reviewed.csv`` -> ``reviewed.answers.jsonl``."""
    return out.with_name(f"{out.stem}.answers.jsonl")


class Journal:
    """An append-only file of JSON lines, held by one process.

    A line counts when its line break is on the disk. What a crash left behind the last one was never
    confirmed to anybody and is cut off.
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
        """Refuse a second server on the same file: two would not see each other's answers."""
        if sys.platform == "win32":  # has no such lock
            return
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._file)
            raise SarbError(
                f"{self.path}: another 'sarb serve' is writing it; open that one's page, or choose another --out"
            ) from None

    def _cut_partial_line(self) -> int:
        content = self.path.read_bytes()
        end = content.rfind(b"\n") + 1
        if end != len(content):
            os.ftruncate(self._file, end)
        return end

    def read(self) -> Iterator[dict[str, Any]]:
        """Yield all lines, oldest first."""
        with self.path.open(encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                try:
                    record = json.loads(line)
                except ValueError:
                    record = None
                if not isinstance(record, dict):
                    raise SarbError(f"{self.path}:{number}: not a line of answers; mend or remove this line")
                yield record

    def append(self, records: Iterable[dict[str, Any]]) -> None:
        """Write lines; they are on the disk when this returns, and not in the file when it raises."""
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
        """Let go of the file; once more does nothing."""
        if self._file >= 0:
            os.close(self._file)
        self._file = -1


def _sync_folder(folder: Path) -> None:
    """Make a new file's name durable, where folders can be opened."""
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        os.fsync(handle)
        os.close(handle)
