"""Folders, files and addresses to images: one at a time, in an order that depends on their names only.

A folder gives its images and shards, by name, deeper ones included; so the order is that of
:func:`sarb.data.images.find_images`. Only the names of one folder are in memory at a time.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Protocol

from sarb.bulk import lists, shards
from sarb.bulk.items import Item, is_remote, open_store, why
from sarb.data.images import SUFFIXES
from sarb.errors import DataError, ImageError
from sarb.files import near_path, open_regular


class Store(Protocol):
    """Where names lead to files and folders."""

    def kind(self, place: str) -> str:
        """``folder``, ``file`` or ``""``."""

    def entries(self, folder: str) -> list[tuple[str, bool]]:
        """Place of each entry of a folder and whether it is a folder, by name."""

    def open(self, place: str) -> IO[bytes]:
        """Open a file for reading."""


class Local:
    """Files of this computer."""

    def kind(self, place: str) -> str:
        """See :class:`Store`."""
        path = Path(place)
        return "folder" if path.is_dir() else "file" if path.exists() else ""

    def entries(self, folder: str) -> list[tuple[str, bool]]:
        """See :class:`Store`."""
        with os.scandir(folder) as found:
            inside = sorted((entry.name, entry.is_dir(follow_symlinks=False)) for entry in found)
        return [(str(Path(folder, name)), deeper) for name, deeper in inside]

    def open(self, place: str) -> IO[bytes]:
        """See :class:`Store`."""
        return open_regular(place)

    def matching(self, pattern: str) -> list[str]:
        """Places that match a pattern with ``*``, ``?`` or ``[…]``, by name; ``**`` is any folder."""
        return sorted(glob.iglob(pattern, recursive=True))  # noqa: PTH207  (an absolute pattern, too)


class Remote:
    """Objects of a store that fsspec knows."""

    def __init__(self, address: str) -> None:
        self.files, _ = open_store(address)

    def kind(self, place: str) -> str:
        """See :class:`Store`."""
        path = self._path(place)
        if self.files.isdir(path):
            return "folder"
        return "file" if self.files.exists(path) else ""

    def entries(self, folder: str) -> list[tuple[str, bool]]:
        """See :class:`Store`."""
        path = self._path(folder)
        found = self.files.ls(path, detail=True)
        self.files.invalidate_cache(path)  # it would keep the names of every folder
        return sorted(
            (self.files.unstrip_protocol(entry["name"].rstrip("/")), entry["type"] == "directory")
            for entry in found
            if entry["name"].rstrip("/") != path.rstrip("/")  # some stores list the folder itself
        )

    def open(self, place: str) -> IO[bytes]:
        """See :class:`Store`."""
        opened: IO[bytes] = self.files.open(self._path(place), "rb")
        return opened

    def matching(self, pattern: str) -> list[str]:
        """Places that match a pattern with ``*``, ``?`` or ``[…]``, by name."""
        return sorted(self.files.unstrip_protocol(found) for found in self.files.glob(self._path(pattern)))

    def _path(self, place: str) -> str:
        return str(self.files._strip_protocol(place))


def find_items(sources: Sequence[str | Path]) -> Iterator[Item]:
    """Yield the images of all sources; an image that is named twice comes twice.

    Raises:
        DataError: a source is not there, or is a list or shard that cannot be read.
        ImageError: a folder has no images.
    """
    for source in map(str, sources):
        for item in _found(source):
            # workers may have another working folder
            here = is_remote(item.place) or Path(item.place).is_absolute()
            yield item if here else item._replace(place=str(Path(item.place).absolute()))


def _found(source: str) -> Iterator[Item]:
    store: Local | Remote = Remote(source) if is_remote(source) else Local()
    place = source if is_remote(source) else str(Path(source))
    if not any(mark in source for mark in "*?[") or (isinstance(store, Local) and store.kind(place)):
        yield from _items(store, place, source)
        return
    found = store.matching(place)
    if not found:
        raise DataError(f"{source}: nothing matches this pattern")
    for match in found:
        yield from _items(store, match, match)


def _items(store: Store, place: str, source: str) -> Iterator[Item]:
    kind = _asked(store, place)
    if not kind:
        near = None if is_remote(place) else near_path(Path(place))
        raise DataError(f"{source}: no such file or folder" + (f". Did you mean '{near}'?" if near else ""))
    if kind == "file":
        yield from _file(store, place)
        return
    empty = True
    for item in _walk(store, place):
        empty = False
        yield item
    if empty:
        raise ImageError(
            f"{source}: no images in this folder (looked for {', '.join((*SUFFIXES, shards.SHARD))})"
        )


def _asked(store: Store, place: str) -> str:
    """What a place is; the error of a store that cannot be reached becomes one line."""
    try:
        return store.kind(place)
    except Exception as error:  # each store has errors of its own
        raise DataError(f"{place}: cannot be reached ({why(error)})") from error


def _file(store: Store, place: str) -> Iterator[Item]:
    name = place.lower()
    if name.endswith(shards.PACKED):
        raise DataError(
            f"{place}: is compressed, so images inside it cannot be found; unpack it to a plain .tar"
        )
    if name.endswith(shards.SHARD):
        with store.open(place) as file:
            yield from shards.members(file, place)
    elif name.endswith(lists.SUFFIXES):
        with store.open(place) as file:
            yield from lists.listed(file, place)
    else:
        yield Item(place, place)


def _walk(store: Store, folder: str) -> Iterator[Item]:
    for place, deeper in store.entries(folder):
        name = place.rpartition("/")[2].lower()
        if deeper:
            yield from _walk(store, place)
        elif name.startswith("."):
            continue
        elif name.endswith(SUFFIXES):
            yield Item(place, place)
        elif name.endswith(shards.SHARD):
            yield from _file(store, place)
