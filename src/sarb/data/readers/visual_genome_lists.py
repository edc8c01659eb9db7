"""The published files of VG-500 and VG-200: two image lists, and the category numbers of each image."""

from __future__ import annotations

import os
import reprlib
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sarb.data.assemble import assemble
from sarb.data.check.official import VISUAL_GENOME, compare
from sarb.data.check.problems import Problems, fault
from sarb.data.dataset import Data
from sarb.data.parse.stream import members
from sarb.data.parse.text import text_lines
from sarb.errors import ConfigError, data_option
from sarb.labels import ABSENT, PRESENT, UNKNOWN

#: usual image folders
FOLDERS = ("VG_100K", "VG_100K_2", "images/VG_100K", "images/VG_100K_2", "images")
#: published names; VG-500 and VG-200 have the same images
TRAIN_LIST = "train_list_500.txt"
TEST_LIST = "test_list_500.txt"
LABELS = "vg_category_{}_labels_index.json"


def published(folder: Path, options: Mapping[str, Path | None], categories: int) -> list[Path]:
    """Return the training list, test list and label file: from options, else by their published names.

    Args:
        folder: folder of the files.
        options: option -> path, for train_list, test_list and label_file.
        categories: selects the label file, if there are several.
    """
    named = [folder / path for path in options.values() if path is not None]
    if named:
        missing = [name for name, path in options.items() if path is None]
        if missing:
            raise ConfigError([f"published lists also need option {name}" for name in missing])
        return named
    lists = [folder / TRAIN_LIST, folder / TEST_LIST]
    candidates = [folder / LABELS.format(number) for number in (categories, 200, 500)]
    label_files = [path for path in candidates if path.is_file()]
    if not label_files or not all(path.is_file() for path in lists):
        return []
    return [*lists, label_files[0]]


def read_lists(
    folder: Path, lists: Sequence[Path], names: Path | None, categories: int, beyond: str, image_root: Path
) -> Data:
    """Read two image lists and a label file.

    Args:
        folder: folder of the files.
        lists: training list, test list and label file.
        names: file of category names in the folder; None numbers the categories.
        categories: number of categories, if ``names`` is None.
        beyond: ``refuse`` or ``drop`` larger category numbers.
        image_root: folder that contains the image folders.
    """
    train_list, test_list, label_file = lists
    if names is None:
        category_names = [f"category {number}" for number in range(categories)]
    else:
        category_names = _read_names(folder / names)
    numbers = _read_numbers(label_file, len(category_names), beyond)
    parts = []
    for path, split in ((train_list, "train"), (test_list, "test")):
        problems = Problems(path)
        listed = [(line, text.strip()) for line, text in text_lines(path)]
        values = _values(problems, listed, numbers, len(category_names), label_file)
        if not listed:
            problems.add("contains no image", kind="empty")
        files = locate(image_root, [name for _, name in listed])
        lines = [line for line, _ in listed]
        data = assemble(problems, files, values, category_names, root=image_root, lines=lines, name=split)
        parts.append(data.train)
        compare(path, VISUAL_GENOME.get(path.name), len(listed))
    notes = {"lists": [path.name for path in lists[:2]], "label_file": label_file.name, "beyond": beyond}
    return Data(parts[0], parts[1], name="vg", notes=notes)


def _values(
    problems: Problems,
    listed: Sequence[tuple[int, str]],
    numbers: Mapping[str, list[int] | None],
    categories: int,
    label_file: Path,
) -> NDArray[np.int8]:
    """Return labels (N, C) of the listed images; report images without labels."""
    values = np.full((len(listed), categories), UNKNOWN, np.int8)
    for row, (line, name) in enumerate(listed):
        if name not in numbers:
            text = f"image '{name[:80]}' has no labels in {label_file.name}"
            problems.add(text, kind="unknown-image", line=line, value=name[:80])
            continue
        present = numbers[name]
        if present is not None:
            values[row] = ABSENT
            values[row, present] = PRESENT
    return values


def _read_names(path: Path) -> list[str]:
    lines: dict[str, int] = {}
    for line, text in text_lines(path):
        name = text.strip()
        if lines.setdefault(name, line) != line:
            twice = f"category '{name[:60]}' occurs twice, on lines {lines[name]} and {line}"
            raise fault(path, twice, line=line, kind="duplicate-name")
    return list(lines)


def _read_numbers(path: Path, categories: int, beyond: str) -> dict[str, list[int] | None]:
    """Return image name -> category numbers, or None if they cannot be read."""
    problems = Problems(path)
    numbers: dict[str, list[int] | None] = {}
    dropped = 0
    largest = 0
    first = None
    for element in members(path):
        listed = element.value
        if not isinstance(listed, list) or not all(map(_is_number, listed)):
            image = element.key[:80]
            text = f"image '{image}': {reprlib.repr(listed)}; expected a list of category numbers from 0"
            problems.add(text, kind="bad-entry", line=element.line, value=image)
            numbers[element.key] = None
            continue
        kept = [number for number in listed if number < categories]
        numbers[element.key] = kept
        if len(kept) < len(listed):
            dropped += len(listed) - len(kept)
            largest = max(largest, *listed)
            first = first or element.line
    if dropped and beyond == "refuse":
        problems.add(
            f"{dropped} labels have numbers from {categories} to {largest}. Declare what you want:"
            f"\n  {data_option('categories', largest + 1)}: keep all categories"
            f"\n  {data_option('beyond', 'drop')}: keep the first {categories} categories and drop these labels",
            kind="beyond",
            line=first,
        )
    problems.raise_any()
    return numbers


def _is_number(number: object) -> bool:
    # a message suggests this number as an option; no published set has a million categories
    return type(number) is int and 0 <= number < 1_000_000


def locate(folder: Path, files: Sequence[str]) -> list[str]:
    """Return every file with its folder, from one listing per folder; VG_100K if it is in none of them."""
    located: dict[str, str] = {}
    for name in FOLDERS:
        if (folder / name).is_dir():
            for file in os.listdir(folder / name):  # noqa: PTH208 - a Path per file is slow
                located.setdefault(file, f"{name}/{file}")
    return [located.get(file, file if "/" in file else f"{FOLDERS[0]}/{file}") for file in files]
