"""One image of very many: its name, and where its bytes are; they are read only when a thread decodes it."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, NamedTuple

from sarb.errors import ImageError, SarbError
from sarb.files import open_regular

#: larger files are not read into memory; no image that can be decoded needs more
MOST_BYTES = 1 << 30
#: seconds before a remote file is asked for again
PAUSES = (0.5, 2.0)
#: errors about one file; any other error of an object store is an outage
ITS_OWN = (FileNotFoundError, IsADirectoryError, PermissionError)


class Item(NamedTuple):
    """An image.

    ``place`` is a path or address; ``offset`` and ``size`` say which bytes of it (−1: all of them); ``given`` has a
    byte per category, its known labels, or is empty.
    """

    name: str
    place: str
    offset: int = -1
    size: int = -1
    given: bytes = b""


def is_remote(place: str) -> bool:
    """Whether a place is an address (``s3://…``) and not a path."""
    return "://" in place


def is_memory(place: str) -> bool:
    """Whether a place is in the memory of this process, which no worker process shares."""
    return place.startswith("memory:")


def own_fault(error: Exception) -> bool:
    """Whether an error of a store is about one file; an HTTP server says 4xx for that, but 408 and 429 for "later"."""
    status = getattr(error, "status", None)
    return isinstance(error, ITS_OWN) or (
        isinstance(status, int) and 400 <= status < 500 and status not in (408, 429)
    )


def why(error: Exception) -> str:
    """The error of a store in one line."""
    return " ".join(str(error).split())[:200] or type(error).__name__


def open_store(address: str) -> tuple[Any, str]:
    """Return the fsspec file system of an address, and the path inside it; SarbError if its package is missing."""
    from fsspec.core import url_to_fs

    try:
        return url_to_fs(address)  # type: ignore[no-any-return]
    except ImportError as error:
        raise SarbError(f"{address}: needs a package: {error} (sarb[remote] has the one for s3://)") from None
    except ValueError as error:
        raise SarbError(f"{address}: {error}") from None


class Picture:
    """An image file for :func:`sarb.data.decoding.decode`: bytes that are read once, when they are needed.

    ``outage`` is the error if the place could not be reached, which says nothing about the image.
    """

    def __init__(self, item: Item) -> None:
        self.item = item
        self.name = item.name
        self.outage: Exception | None = None

    def seekable(self) -> bool:
        """It is read in one piece."""
        return False

    def read(self) -> bytes:
        """Return the bytes of the image."""
        item = self.item
        if max(item.size, 0) > MOST_BYTES:
            raise ImageError(f"too large, {item.size:,} bytes (at most {MOST_BYTES:,} are read)")
        if item.size == 0:
            return b""
        return self._remote() if is_remote(item.place) else self._local()

    def _local(self) -> bytes:
        with open_regular(Path(self.item.place)) as file:
            if self.item.offset >= 0:
                file.seek(self.item.offset)
                return file.read(self.item.size)
            content = file.read(MOST_BYTES + 1)
        if len(content) > MOST_BYTES:
            raise ImageError(f"too large, more than {MOST_BYTES:,} bytes")
        return content

    def _remote(self) -> bytes:
        store, path = open_store(self.item.place)
        first = max(self.item.offset, 0)
        last = first + (self.item.size if self.item.offset >= 0 else MOST_BYTES)
        for pause in (*PAUSES, None):
            try:
                return bytes(store.cat_file(path, start=first, end=last))
            except Exception as error:  # each store has errors of its own
                if own_fault(error):
                    raise (error if isinstance(error, OSError) else ImageError(why(error))) from None
                if _is_empty(store, path):
                    return b""  # S3 has no range of an empty object
                if pause is None:
                    self.outage = error
                    raise
                time.sleep(pause)
        raise AssertionError("the last pause is None")


def _is_empty(store: Any, path: str) -> bool:
    """Whether a file has no byte; False if the store does not answer."""
    try:
        return bool(store.size(path) == 0)
    except Exception:  # each store has errors of its own
        return False
