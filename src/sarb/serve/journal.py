"""Every answer, durable before it is confirmed: one line of JSON each, appended and forced to the disk."""

from __future__ import annotations

import importlib.util
import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from sarb.errors import SarbError


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
        self._hold()
        if new:
            _force(path.parent)
        self._end = self._cut()

    def _hold(self) -> None:
        """Refuse a second server on the same file: two would not see each other's answers."""
        # By hand, not by filelock: that locks a second file and leaves it behind; here the journal is the lock.
        if importlib.util.find_spec("fcntl") is None:  # Windows has no such lock
            return
        import fcntl

        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._file)
            raise SarbError(
                f"{self.path}: another 'sarb serve' is writing it; open that one's page, or choose another --out"
            ) from None

    def _cut(self) -> int:
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
                    entry = json.loads(line)
                except ValueError:
                    entry = None
                if not isinstance(entry, dict):
                    raise SarbError(f"{self.path}:{number}: not a line of answers; mend or remove this line")
                yield entry

    def append(self, entries: Iterable[dict[str, Any]]) -> None:
        """Write lines; they are on the disk when this returns, and not in the file when it raises."""
        text = "".join(json.dumps(entry, ensure_ascii=False) + "\n" for entry in entries).encode()
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


def _force(folder: Path) -> None:
    """Make a new file's name durable, where folders can be opened."""
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        os.fsync(handle)
        os.close(handle)
