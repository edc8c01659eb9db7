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
    """Yield the images of an open shard in its order; their names are ``SHARD/MEMBER``."""
    try:
        with tarfile.open(fileobj=file, mode="r:") as shard:
            for member in shard:
                # it would remember every member; the next header is found without them
                shard.members = []  # type: ignore[attr-defined]
                base = member.name.rpartition("/")[2]
                if member.isreg() and base.lower().endswith(SUFFIXES) and not base.startswith("."):
                    yield Item(f"{place}/{member.name}", place, member.offset_data, member.size)
    except tarfile.TarError as error:
        raise DataError(f"{place}: not a whole tar file ({error}); copy it again") from None
