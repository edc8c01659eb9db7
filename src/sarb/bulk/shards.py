"""Images inside WebDataset shards: uncompressed tar files, so that each image is a range of bytes."""

from __future__ import annotations

import tarfile
from collections.abc import Iterator
from typing import IO

from sarb.bulk.items import Item
from sarb.data.images import SUFFIXES
from sarb.errors import DataError

SHARD = ".tar"
#: tar files that cannot be read from the middle
PACKED = (".tar.gz", ".tgz", ".tar.bz2", ".tar.xz", ".tar.zst")


def members(file: IO[bytes], place: str) -> Iterator[Item]:
    """Yield the images of an open shard in its order, hard links last; their names are ``SHARD/MEMBER``.

    A symbolic link has no bytes in the shard. It is yielded as a place that does not exist, so it counts as unreadable.
    """
    links = dict[str, list[str]]()
    for member in _headers(file, place):
        if not _is_image(member.name):
            continue
        if member.isreg():
            yield Item(f"{place}/{member.name}", place, member.offset_data, member.size)
        elif member.islnk():
            links.setdefault(member.linkname, []).append(member.name)
        elif member.issym():
            yield Item(*2 * (f"{place}/{member.name}",))
    if not links:
        return
    file.seek(0)
    for member in _headers(file, place):
        if member.isreg():
            for name in links.pop(member.name, ()):
                yield Item(f"{place}/{name}", place, member.offset_data, member.size)
    for name in (name for names in links.values() for name in names):
        yield Item(*2 * (f"{place}/{name}",))


def _is_image(name: str) -> bool:
    base = name.rpartition("/")[2]
    return base.lower().endswith(SUFFIXES) and not base.startswith(".")


def _headers(file: IO[bytes], place: str) -> Iterator[tarfile.TarInfo]:
    try:
        with tarfile.open(fileobj=file, mode="r:") as shard:
            for member in shard:
                # it would remember every member; the next header is found without them
                shard.members = []  # type: ignore[attr-defined]
                yield member
    except tarfile.TarError as error:
        raise DataError(f"{place}: not a whole tar file ({error}); copy it again") from None
