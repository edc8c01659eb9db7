"""A folder to write to, local or in an object store; each file appears whole or not at all."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from sarb.bulk.items import is_remote, open_store
from sarb.files import atomic_write


class Storage:
    """A folder.

    Args:
        folder: path, or address such as ``s3://bucket/labels``.
    """

    def __init__(self, folder: str) -> None:
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
            return bytes(self._store.cat_file(f"{self._root}/{name}"))
        except FileNotFoundError:
            return None

    def write(self, name: str, content: bytes) -> None:
        """Replace a file: by a rename, or in an object store by one put."""
        if self._store is not None:
            self._store.pipe_file(f"{self._root}/{name}", content)
            return
        with atomic_write(Path(self.folder, name), "wb") as file:
            file.write(content)

    def remove(self, name: str) -> None:
        """Remove a file; nothing happens if it is not there."""
        if self._store is None:
            Path(self.folder, name).unlink(missing_ok=True)
        elif self._store.exists(f"{self._root}/{name}"):
            self._store.rm_file(f"{self._root}/{name}")

    def exists(self, name: str) -> bool:
        """Whether a file is there."""
        if self._store is None:
            return Path(self.folder, name).exists()
        return bool(self._store.exists(f"{self._root}/{name}"))

    @contextmanager
    def writing(self, name: str) -> Iterator[IO[bytes]]:
        """Open a file that is written piece by piece; an object store shows it when it is closed."""
        if self._store is None:
            with atomic_write(Path(self.folder, name), "wb") as file:
                yield file
            return
        with self._store.transaction, self._store.open(f"{self._root}/{name}", "wb") as file:
            yield file

    def opened(self, name: str) -> IO[bytes]:
        """Open a file for reading, here and there."""
        if self._store is None:
            return Path(self.folder, name).open("rb")
        found: IO[bytes] = self._store.open(f"{self._root}/{name}", "rb")
        return found
