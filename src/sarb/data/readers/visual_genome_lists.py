"""The published files of VG-500 and VG-200: two lists of images and the numbers of their categories."""

from __future__ import annotations

import os
import reprlib
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from sarb.data.assemble import assemble
from sarb.data.check.official import VISUAL_GENOME, compare
from sarb.data.check.problems import Problems, fault
from sarb.data.dataset import Data, Dataset
from sarb.data.parse.stream import members
from sarb.data.parse.text import text_lines
from sarb.errors import ConfigError
from sarb.labels import ABSENT, PRESENT, UNKNOWN

#: where images of Visual Genome are
FOLDERS = ("VG_100K", "VG_100K_2", "images/VG_100K", "images/VG_100K_2", "images")
#: the published names; both sets have the same images
TRAIN_LIST = "train_list_500.txt"
TEST_LIST = "test_list_500.txt"
LABELS = "vg_category_{}_labels_index.json"


def published(place: Path, given: Mapping[str, Path | None], categories: int) -> list[Path]:
    """Return the training list, the test list and the label file: as given, else under their published
    names, if there.

    Args:
        place: the folder.
        given: option -> path, for train_list, test_list and label_file.
        categories: which label file is meant when there are several.
    """
    named = [place / path for path in given.values() if path is not None]
    if named:
        missing = [option for option, path in given.items() if path is None]
        if missing:
            raise ConfigError([f"published lists need option {option} too" for option in missing])
        return named
    label_file = next(
        (
            place / LABELS.format(number)
            for number in (categories, 200, 500)
            if (place / LABELS.format(number)).is_file()
        ),
        None,
    )
    if label_file is None or not (place / TRAIN_LIST).is_file() or not (place / TEST_LIST).is_file():
        return []
    return [place / TRAIN_LIST, place / TEST_LIST, label_file]


def read_lists(
    place: Path, lists: Sequence[Path], names: Path | None, categories: int, beyond: str, folder: Path
) -> Data:
    """Read two lists of images and a label file.

    Args:
        place: the folder.
        lists: training list, test list and label file.
        names: file of category names in the folder; numbered when left out.
        categories: how many there are, when ``names`` is left out.
        beyond: ``refuse`` or ``drop`` category numbers from there on.
        folder: that holds the image folders.
    """
    spelled = (
        [f"category {number}" for number in range(categories)]
        if names is None
        else _read_names(place / names)
    )
    label_file = lists[2]
    parts = list[Dataset]()
    numbers = _read_numbers(label_file, len(spelled), beyond)
    for path, split in zip(lists[:2], ("train", "test"), strict=True):
        problems = Problems(path)
        listed = [(line, text.strip()) for line, text in text_lines(path)]
        values = np.full((len(listed), len(spelled)), UNKNOWN, np.int8)
        for row, (line, name) in enumerate(listed):
            if name in numbers:
                shown = numbers[name]
                values[row] = UNKNOWN if shown is None else ABSENT
                values[row, shown or []] = PRESENT
            else:
                text = f"image '{name[:80]}' has no labels in {label_file.name}"
                problems.add(text, kind="unknown-image", line=line, value=name[:80])
        if not listed:
            problems.add("names no image", kind="empty")
        files = locate(folder, [name for _, name in listed])
        lines = [line for line, _ in listed]
        parts.append(assemble(problems, files, values, spelled, root=folder, lines=lines, name=split).train)
        compare(path, VISUAL_GENOME.get(path.name), len(listed))
    notes = {"lists": [path.name for path in lists[:2]], "label_file": label_file.name, "beyond": beyond}
    return Data(parts[0], parts[1], name="vg", notes=notes)


def _read_names(path: Path) -> list[str]:
    lines: dict[str, int] = {}
    for line, text in text_lines(path):
        if lines.setdefault(text.strip(), line) != line:
            twice = f"category '{text.strip()[:60]}' occurs twice, on lines {lines[text.strip()]} and {line}"
            raise fault(path, twice, line=line, kind="duplicate-name")
    return list(lines)


def _read_numbers(path: Path, categories: int, beyond: str) -> dict[str, list[int] | None]:
    """Return image name -> numbers of its categories, None where they cannot be read."""
    problems = Problems(path)
    numbers = dict[str, list[int] | None]()
    dropped = 0
    largest = 0
    first = None
    for element in members(path):
        found = element.value
        if not isinstance(found, list) or not all(map(_is_number, found)):
            text = f"image '{element.key[:80]}': {reprlib.repr(found)}; expected a list of category numbers from 0"
            problems.add(text, kind="bad-entry", line=element.line, value=element.key[:80])
            numbers[element.key] = None
            continue
        numbers[element.key] = kept = [number for number in found if number < categories]
        if len(kept) < len(found):
            dropped = dropped + len(found) - len(kept)
            largest = max(largest, *found)
            first = first or element.line
    if dropped and beyond == "refuse":
        problems.add(
            f"{dropped} labels have numbers from {categories} to {largest}. Say what is meant:"
            f"\n  -o categories={largest + 1} (Python: categories={largest + 1}): all of them"
            f'\n  -o beyond=drop (Python: beyond="drop"): the first {categories} categories, without these labels',
            kind="beyond",
            line=first,
        )
    problems.raise_any()
    return numbers


def _is_number(number: object) -> bool:
    # no published set has a million categories, and the number is offered as an option
    return type(number) is int and 0 <= number < 1_000_000


def locate(folder: Path, files: Sequence[str]) -> list[str]:
    """Return every file with the folder it is in, found by listing each folder once; VG_100K if in none."""
    place: dict[str, str] = {}
    for name in FOLDERS:
        if (folder / name).is_dir():
            for file in os.listdir(folder / name):  # noqa: PTH208
                place.setdefault(file, f"{name}/{file}")
    return [place.get(file, file if "/" in file else f"{FOLDERS[0]}/{file}") for file in files]
