"""``manifest.json``: SHA-256 and size of the files of a folder, to find damage (not malice).

One line per file, and ``format`` last, so that any line can be deleted by hand: the file is then read unchecked. While
a file is replaced, its line has the old and the new state, and both are accepted. So a process may be killed at any
moment, and the folder loads as old or as new.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from sarb.errors import DataNote, SarbError
from sarb.files import atomic_write
from sarb.runs.checks import read_checked
from sarb.runs.schema import MANIFEST, MOST_BYTES

if sys.platform != "win32":
    import fcntl

FORMAT = 1
#: a reader may meet a writer between manifest and file; then it looks again
LOOKS = 4

#: what a file must be: its SHA-256 and size, or None for a file that is not there
State = dict[str, str | int] | None

_noted: set[Path] = set()
_digests: dict[tuple[object, ...], str] = {}


class DamagedError(SarbError):
    """A file that is not what was written."""


def digest(file: Path) -> str:
    """SHA-256 of a file; asked again, a file that has not been touched is not read again."""
    with file.open("rb") as stream:
        about = os.fstat(stream.fileno())
        key = (about.st_dev, about.st_ino, about.st_size, about.st_mtime_ns, about.st_ctime_ns)
        if key not in _digests:
            _digests[key] = hashlib.file_digest(stream, "sha256").hexdigest()
        return _digests[key]


def state_of(file: Path) -> State:
    """The state of a file as it is."""
    if not file.is_file():  # a named pipe would wait for a writer
        return None
    return {"sha256": digest(file), "size": file.stat().st_size}


class Manifest:
    """The manifest of a folder.

    Args:
        file: ``manifest.json``; the files it lists are beside and below it.
        owner: the folder to name in the note that nothing is checked, which is printed once.
    """

    def __init__(self, file: Path, owner: Path | None = None) -> None:
        self.file = file
        self.owner = owner or file.parent

    def check(self, path: Path, hint: str = "") -> None:
        """Raise unless a file is as it was written; ``hint`` says what else helps.

        A file that is not listed passes, with a note.
        """
        name = self._name(path)
        for _ in range(LOOKS):
            listed = self._read()
            if name not in listed:
                if path.is_file():
                    self._note(name)
                return
            found = state_of(path)
            if found in listed[name]:
                return
        what = "is missing" if found is None else "is damaged: it is not what was written"
        helps = "copy it again or restore it from a backup" + (f", or {hint}" if hint else "")
        raise DamagedError(
            f"{path}: {what} ({self.file.name} has its checksum); {helps}. If you changed it yourself, "
            f"delete its line in {self.file}"
        )

    def write(self, path: Path, content: bytes) -> None:
        """Replace a file and its line."""
        state: State = {"sha256": hashlib.sha256(content).hexdigest(), "size": len(content)}
        with self._replacing(path, state), atomic_write(path, "wb") as stream:
            stream.write(content)

    def remove(self, path: Path) -> None:
        """Remove a file and its line; nothing happens if it is not there."""
        if path.exists() or self._name(path) in self._read():
            with self._replacing(path, None):
                path.unlink(missing_ok=True)

    def write_new(self, contents: Mapping[str, bytes]) -> None:
        """Write all files of a folder that nobody reads yet, and its manifest last."""
        for name, content in contents.items():
            with atomic_write(self.file.parent / name, "wb") as stream:
                stream.write(content)
        self._write(
            {
                name: [{"sha256": hashlib.sha256(content).hexdigest(), "size": len(content)}]
                for name, content in contents.items()
            }
        )

    @contextmanager
    def _replacing(self, path: Path, new: State) -> Iterator[None]:
        """Accept the old and the new state during the block, then the new one alone."""
        name = self._name(path)
        self.file.parent.mkdir(parents=True, exist_ok=True)
        with _alone(self.file.parent):
            listed = self._read()
            before = listed.get(name) or [state_of(path)]
            self._write({**listed, name: [*(state for state in before if state != new), new]})
            yield
            if new is None:
                listed.pop(name, None)
            self._write({**listed, **({name: [new]} if new is not None else {})})

    def _name(self, path: Path) -> str:
        return path.relative_to(self.file.parent).as_posix()

    def _read(self) -> dict[str, list[State]]:
        if not self.file.is_file():
            return {}
        try:
            found: dict[str, list[State]] = read_checked(self.file, MANIFEST, MOST_BYTES)
        except SarbError as error:
            raise DamagedError(
                f"{error}; copy the folder again, or delete this file to read it unchecked"
            ) from error
        found.pop("format")
        return found

    def _write(self, listed: Mapping[str, list[State]]) -> None:
        lines = [f"{json.dumps(name)}: {json.dumps(states)}," for name, states in sorted(listed.items())]
        with atomic_write(self.file) as stream:
            stream.write("\n".join(["{", *lines, f'"format": {FORMAT}', "}", ""]))

    def _note(self, name: str) -> None:
        if self.owner in _noted:
            return
        _noted.add(self.owner)
        reason = (
            f"{self.file.name} does not list {name}" if self.file.is_file() else f"has no {self.file.name}"
        )
        warnings.warn(f"{self.owner}: {reason}, so damage cannot be detected", DataNote, stacklevel=3)


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Let writers of the same folder wait for each other, where the system can: the last one wins."""
    if sys.platform == "win32":
        yield
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):  # some network file systems have no locks
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        with suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_UN)
        os.close(handle)
