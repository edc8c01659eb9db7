"""Decode every image of a data source: unreadable ones, and the same picture in two splits."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path

from sarb.data.assemble import missing_rows
from sarb.data.check.problems import Problems
from sarb.data.dataset import Data, Dataset
from sarb.data.images import MOST_UNREADABLE, decode
from sarb.errors import ImageError
from sarb.progress import Progress

Place = tuple[str, int]


def check_images(data: Data, talk: Progress) -> int:
    """Decode all images that exist, note what is wrong with them, and return how many were opened."""
    todo = [(split, row) for split, dataset in data.splits.items() for row in _existing(dataset)]
    first: dict[bytes, Place] = {}
    problems = Problems(data.train.source or data.name)
    bad = []
    with talk.bar("decoding images", len(todo)) as advance, ThreadPoolExecutor(os.cpu_count()) as pool:
        for place, result in _in_order(pool, data, todo):
            if isinstance(result, str):
                bad.append((place, result))
            elif first.setdefault(result, place) != place:
                _note_same(problems, data, first[result], place)
            advance(1)
    level = "error" if len(bad) > MOST_UNREADABLE * len(todo) else "warning"
    for (split, row), reason in bad:
        dataset = data.splits[split]
        problems.add(
            reason,
            kind="unreadable-image",
            level=level,
            file=dataset.source,
            line=dataset.line(row),
            value=dataset.labels.paths[row],
        )
    problems.raise_any()
    return len(todo)


def _existing(dataset: Dataset) -> list[int]:
    missing = set(missing_rows(dataset))
    return [row for row in range(len(dataset)) if row not in missing]


def _in_order(pool: ThreadPoolExecutor, data: Data, todo: list[Place]) -> Iterator[tuple[Place, bytes | str]]:
    """Yield every place with its fingerprint or the reason it has none; never more than 1,000 wait at
    once.
    """
    places = iter(todo)
    while block := list(islice(places, 1000)):
        files = (data.splits[split].root / data.splits[split].labels.paths[row] for split, row in block)
        yield from zip(block, pool.map(_fingerprint, files), strict=True)


def _fingerprint(path: Path) -> bytes | str:
    """Return a hash of the pixels, so that a copy with other metadata or compression level is found too."""
    try:
        image = decode(path)
    except ImageError as error:
        return str(error)
    digest = hashlib.blake2b(f"{image.size}".encode(), digest_size=16)
    digest.update(image.tobytes())
    return digest.digest()


def _note_same(problems: Problems, data: Data, first: Place, second: Place) -> None:
    names = [data.splits[split].labels.paths[row] for split, row in (first, second)]
    lines = [data.splits[split].line(row) for split, row in (first, second)]
    places = f" (lines {lines[0]} and {lines[1]})" if all(lines) else ""
    pair = f"'{names[0]}' and '{names[1]}'{places} are the same picture"
    dataset = data.splits[second[0]]
    if first[0] == second[0]:
        rows = [data.splits[first[0]].labels.values[row] for row in (first[1], second[1])]
        differ = int(((rows[0] != rows[1]) & (rows[0] != 0) & (rows[1] != 0)).sum())
        said = f", with contradicting labels in {differ} categories" if differ else ""
        kind = "same-picture-conflict" if differ else "same-picture"
        level = "warning"
        text = f"{pair}, both in {first[0]}{said}"
    else:
        kind = "split-overlap-content"
        level = "error"
        text = f"{pair}, in {first[0]} and in {second[0]}"
    problems.add(text, kind=kind, level=level, file=dataset.source, line=lines[1], value=names[1])
