"""Decode every image of a data source; report unreadable images and pictures that occur twice."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path

from sarb.data.assemble import missing_rows
from sarb.data.check.entries import Entry, both_lines
from sarb.data.check.problems import Problems
from sarb.data.dataset import Data
from sarb.data.images import MOST_UNREADABLE, decode
from sarb.errors import ImageError
from sarb.progress import Progress

#: how many images wait for a thread at a time
BLOCK = 1000


def check_images(data: Data, talk: Progress) -> int:
    """Decode all existing images, report problems, and return the number of images opened."""
    todo = list(_existing(data))
    first_entry: dict[bytes, Entry] = {}
    problems = Problems(data.train.source or data.name)
    unreadable = []
    with talk.bar("decoding images", len(todo)) as advance, ThreadPoolExecutor(os.cpu_count()) as pool:
        for entry, result in _in_order(pool, todo):
            if isinstance(result, str):
                unreadable.append((entry, result))
            else:
                first = first_entry.setdefault(result, entry)
                if first is not entry:
                    _note_same(problems, first, entry)
            advance(1)
    level = "error" if len(unreadable) > MOST_UNREADABLE * len(todo) else "warning"
    for entry, reason in unreadable:
        problems.add(reason, kind="unreadable-image", level=level, **entry.where)
    problems.raise_any()
    return len(todo)


def _existing(data: Data) -> Iterator[Entry]:
    for split, dataset in data.splits.items():
        missing = set(missing_rows(dataset))
        yield from (Entry(split, dataset, row) for row in range(len(dataset)) if row not in missing)


def _in_order(pool: ThreadPoolExecutor, todo: list[Entry]) -> Iterator[tuple[Entry, bytes | str]]:
    """Yield every image with its fingerprint, or with the reason why it cannot be read."""
    waiting = iter(todo)
    while block := list(islice(waiting, BLOCK)):
        yield from zip(block, pool.map(_fingerprint, (entry.path for entry in block)), strict=True)


def _fingerprint(path: Path) -> bytes | str:
    """Hash the pixels, so that copies with other metadata or compression settings are found too."""
    try:
        image = decode(path)
    except ImageError as error:
        return str(error)
    digest = hashlib.blake2b(f"{image.size}".encode(), digest_size=16)
    digest.update(image.tobytes())
    return digest.digest()


def _note_same(problems: Problems, first: Entry, second: Entry) -> None:
    pair = f"'{first.name}' and '{second.name}'{both_lines(first, second)} are the same picture"
    if first.split != second.split:
        problems.add(
            f"{pair}, in {first.split} and in {second.split}",
            kind="split-overlap-content",
            level="error",
            **second.where,
        )
        return
    values = [entry.dataset.labels.values[entry.row] for entry in (first, second)]
    conflicts = int((values[0] * values[1] < 0).sum())
    contradiction = f", with contradicting labels in {conflicts} categories" if conflicts else ""
    problems.add(
        f"{pair}, both in {first.split}{contradiction}",
        kind="same-picture-conflict" if conflicts else "same-picture",
        level="warning",
        **second.where,
    )
