"""Records of features that are being computed: which rows of the array a worker has written, and their checksum."""

from __future__ import annotations

import json
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from sarb.bulk.storage import Storage

ARRAY = "array.npy"
PLAN = "_plan.json"
TRUNK = "trunk.safetensors"


def record_of(number: int) -> str:
    """Name of the record of a part."""
    return f"part-{number:06d}.json"


def read_record(storage: Storage, number: int, identity: str) -> dict[str, Any] | None:
    """Return the record of a part; None if there is none, or it belongs to other features."""
    content = storage.read(record_of(number))
    try:
        found: dict[str, Any] = json.loads(content or b"{}")
    except ValueError:
        return None
    return found if found.get("identity") == identity and found.get("number") == number else None


def rows_of(plan: dict[str, Any], number: int) -> range:
    """Rows of a part."""
    size = plan["part_size"]
    return range(number * size, min((number + 1) * size, plan["shape"][0]))


def place_of(array: Path, row: int) -> int:
    """Where a row begins in the file of an array."""
    whole = np.load(array, mmap_mode="r")
    assert isinstance(whole, np.memmap)
    return int(whole.offset) + row * (whole.nbytes // max(1, len(whole)))


def right(array: Path, plan: dict[str, Any], number: int, record: dict[str, Any]) -> bool:
    """Whether the array holds what the record says; every byte is read."""
    rows = rows_of(plan, number)
    crc = 0
    try:
        left = place_of(array, rows.stop) - place_of(array, rows.start)
        with array.open("rb") as file:
            file.seek(place_of(array, rows.start))
            while left and (block := file.read(min(left, 1 << 24))):
                crc = zlib.crc32(block, crc)
                left -= len(block)
    except (OSError, ValueError):
        return False
    return not left and crc == record.get("crc32")
