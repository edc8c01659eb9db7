"""A folder to write to, local or in an object store; each file appears whole or not at all."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any
from urllib.request import url2pathname

from sarb.bulk.items import is_remote, open_store, why
from sarb.errors import SarbError
from sarb.files import atomic_write

FILES = "file://"


class Storage:
    """A folder.

    Args:
        folder: path, or address such as ``s3://bucket/labels``.

    Raises:
        SarbError: an object store refuses something, or cannot be reached.
        OSError: this computer does.
    """

    def __init__(self, folder: str) -> None:
        if folder.startswith(FILES):
            folder = url2pathname(folder.removeprefix(FILES))
        self.folder = folder.rstrip("/") if is_remote(folder) else str(Path(folder))
        self._store: Any = None
        if is_remote(folder):
            self._store, self._root = open_store(self.folder)

    def place(self, name: str) -> str:
        """Where a file of this folder is."""
        return f"{self.folder}/{name}"

    def read(self, name: str) -> bytes | None:
        """Return the content of a file, None if it is not there."""
        try:
            if self._store is None:
                return Path(self.folder, name).read_bytes()
            with self._asked(name):
                return bytes(self._store.cat_file(f"{self._root}/{name}"))
        except FileNotFoundError:
            return None

    def write(self, name: str, content: bytes) -> None:
        """Replace a file: by a rename, or in an object store by one put."""
        if self._store is not None:
            with self._asked(name, wanted=True):
                self._store.pipe_file(f"{self._root}/{name}", content)
            return
        with atomic_write(Path(self.folder, name), "wb") as file:
            file.write(content)

    def remove(self, name: str) -> None:
        """Remove a file; nothing happens if it is not there."""
        if self._store is None:
            Path(self.folder, name).unlink(missing_ok=True)
        elif self.exists(name):
            with self._asked(name):
                self._store.rm_file(f"{self._root}/{name}")

    def exists(self, name: str) -> bool:
        """Whether a file is there."""
        if self._store is None:
            return Path(self.folder, name).exists()
        with self._asked(name):
            return bool(self._store.exists(f"{self._root}/{name}"))

    @contextmanager
    def writing(self, name: str) -> Iterator[IO[bytes]]:
        """Open a file that is written piece by piece; an object store shows it when it is closed."""
        if self._store is None:
            with atomic_write(Path(self.folder, name), "wb") as file:
                yield file
            return
        with (
            self._asked(name, wanted=True),
            self._store.transaction,
            self._store.open(f"{self._root}/{name}", "wb") as file,
        ):
            yield file

    def opened(self, name: str) -> IO[bytes]:
        """Open a file for reading, here and there."""
        if self._store is None:
            return Path(self.folder, name).open("rb")
        with self._asked(name):
            found: IO[bytes] = self._store.open(f"{self._root}/{name}", "rb")
        return found

    @contextmanager
    def _asked(self, name: str, wanted: bool = False) -> Iterator[None]:
        """Say in one line what a store did not do; a file that is not there is an error if it is ``wanted``."""
        try:
            yield
        except SarbError:
            raise
        except Exception as error:  # each store has errors of its own
            if isinstance(error, FileNotFoundError) and not wanted:
                raise
            raise SarbError(
                f"{self.place(name)}: {why(error)}; the same command goes on where it stopped"
            ) from error
