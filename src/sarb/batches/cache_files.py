"""Files of the feature cache: an fp16 array and, beside it, a record with its checksum and the unreadable
images.

``KEY.npy`` holds the activations (N, c, h, w). ``KEY.json`` holds ``crc32`` of the whole file and
``unreadable``, pairs of row and reason. A file is checked whenever it is opened, and one that is damaged is
not used. While it is computed it is ``.KEY.npy.partial``, held by one process, and moved into place when it
is whole.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from filelock import FileLock, Timeout
from numpy.typing import NDArray

from sarb.files import read_json, write_json

Say = Callable[[str], None]

#: bytes that are summed up at once; in between, Ctrl-C is heard
BLOCK = 1 << 24


class Features(NamedTuple):
    """Activations (N, c, h, w), a read-only memory map, and row -> reason of the images that could not be
    read.
    """

    activations: NDArray[np.float16]
    unreadable: dict[int, str]


def cache_note(views: int, size: int) -> str:
    """Say for console and report what a run learns from: 0 views are the plain one; ``size`` of all files in
    bytes.
    """
    what = (
        "one cached plain view" if not views else f"{views} cached augmented view{'s' if views > 1 else ''}"
    )
    return f"{what} per image" + (f"; the cache takes {size / 1e6:,.0f} MB" if size else "")


def checksum(file: Path) -> int:
    """CRC-32 of a file: 0.25 s for 588 MB in memory, a sixth of blake2b's time; it finds damage, not
    malice.
    """
    content = np.memmap(file, np.uint8, "r")
    total = 0
    for start in range(0, len(content), BLOCK):
        total = zlib.crc32(content[start : start + BLOCK].data, total)
    return total


def open_features(file: Path, images: int, say: Say) -> Features | None:
    """Open a file and compare it with its record; None where there is no such file, or a damaged one (it is
    said).

    A file of the time before checksums has no record, or a list only. It is taken as it is and gets one.
    """
    if not file.exists():
        return None
    try:
        array = np.load(file, mmap_mode="r")
        if array.dtype != np.float16 or len(array) != images:
            raise ValueError(f"expected {images} maps in fp16, found {len(array)} in {array.dtype}")
        return Features(array, _checked(file))
    except Exception as error:  # numpy raises anything for a damaged header, even an error of the tokenizer
        say(f"{file}: the cached features are damaged and will be computed again ({error})")
        return None


def _checked(file: Path) -> dict[int, str]:
    """Row -> reason of unreadable images, from the record; ValueError where the checksum is another."""
    record_file = file.with_suffix(".json")
    actual = checksum(file)
    record: Any = read_json(record_file) if record_file.exists() else []
    if isinstance(record, list):
        record = {"crc32": actual, "unreadable": record}
        with suppress(OSError):  # a disk that may only be read
            write_json(record_file, record)
    if record["crc32"] != actual:
        raise ValueError(f"checksum {actual:08x}, expected {record['crc32']:08x}")
    return {int(row): str(reason) for row, reason in record["unreadable"]}


def put_in_place(partial: Path, file: Path, unreadable: Mapping[int, str]) -> None:
    """Give a finished file its record and its name."""
    # The record first: an interruption between the two leaves a file that does not fit its record, and is
    # not used.
    write_json(
        file.with_suffix(".json"), {"crc32": checksum(partial), "unreadable": list(unreadable.items())}
    )
    partial.replace(file)


@contextmanager
def only_builder(file: Path, say: Say) -> Iterator[Path]:
    """Yield the path of the unfinished file, held by this process alone, and remove it unless it was moved.

    Who comes second waits, and finds the file finished. A killed process releases the lock, and what it has
    left is overwritten by the next.
    """
    partial = file.with_name(f".{file.name}.partial")
    with _locked(file, say):
        try:
            yield partial
        finally:
            partial.unlink(missing_ok=True)


@contextmanager
def _locked(file: Path, say: Say) -> Iterator[None]:
    """Hold the lock of a file; say so once if another process has it, and wait."""
    # Lock files stay: removing one would let two processes lock two files of the same name. So they have a
    # folder of their own, beside that of the features.
    folder = file.parent.with_name("locks")
    folder.mkdir(parents=True, exist_ok=True)
    lock = FileLock(folder / f"{file.name}.lock")
    try:
        lock.acquire(timeout=0)
    except Timeout:
        say(f"another process computes {file.name}; waiting for it")
        lock.acquire()
    try:
        yield
    finally:
        lock.release()
