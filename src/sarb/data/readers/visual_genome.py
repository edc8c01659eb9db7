"""Visual Genome: build VG-200 from the official files, or read published lists."""

from __future__ import annotations

import reprlib
from array import array
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sarb.data.assemble import assemble
from sarb.data.check.official import VISUAL_GENOME, compare
from sarb.data.check.problems import Problems, fault
from sarb.data.dataset import Data
from sarb.data.parse.element import Element, Identity, identity_order
from sarb.data.parse.stream import elements
from sarb.data.parse.text import text_lines
from sarb.data.readers.image_files import given_folder
from sarb.data.readers.visual_genome_lists import LABELS, TEST_LIST, TRAIN_LIST, locate, published, read_lists
from sarb.errors import ConfigError, check_choice, data_option
from sarb.labels import ABSENT, PRESENT, UNKNOWN

#: the official file of synonyms
ALIASES = "object_alias.txt"
IMAGES = "image_data.json"
OBJECTS = "objects.json"


def load_visual_genome(
    path: Path,
    *,
    categories: int = 200,
    test: int = 10_000,
    seed: int = 0,
    aliases: str | None = "",
    train_list: Path | None = None,
    test_list: Path | None = None,
    label_file: Path | None = None,
    names: Path | None = None,
    beyond: str = "refuse",
    root: Path | None = None,
) -> Data:
    """Build VG-200 from ``objects.json`` and ``image_data.json``, or read published lists.

    To build VG-200, object names are stripped and lower-cased. The categories are the names that occur in the
    most **images** (of all images, before the split), most frequent first, ties in alphabetical order. Images
    are sorted by id, and ``numpy.random.RandomState(seed).permutation(N)[:test]`` are the test images. A
    category is present if an object has that name, and otherwise absent. If an image has no entry in
    ``objects.json``, nobody looked at it, and its labels are unknown.

    Published lists are read if options name them, or if there is no ``objects.json`` and they have their
    published names (``train_list_500.txt``, ``test_list_500.txt``, ``vg_category_200_labels_index.json``).

    Args:
        path: folder with the JSON files and the images in ``VG_100K`` and ``VG_100K_2``.
        categories: number of categories to keep.
        test: number of test images to draw.
        seed: seed of this draw.
        aliases: file of synonyms, for example ``object_alias.txt``: comma-separated names on each line, of
            which the first is used; ``none`` keeps all names apart. If the file exists but this option is not
            set, names are kept apart with a warning.
        train_list: published list of image names, one per line; needs ``test_list`` and ``label_file``.
        test_list: the same for testing.
        label_file: JSON object, image name -> list of category numbers from 0.
        names: category names for ``label_file``, one per line (default: category 0, category 1, …).
        beyond: ``refuse`` or ``drop`` category numbers from ``categories`` on (VG-200 is VG-500 without
            them).
        root: folder that contains the image folders, if it is somewhere else.

    Paths in options are relative to ``path``.
    """
    check_choice("value of option beyond:", beyond, ("refuse", "drop"))
    if categories < 1:
        raise ConfigError([f"option categories must be at least 1, got {categories}"])
    folder = path.parent if path.is_file() else path
    image_root = folder if root is None else given_folder(root, folder)
    options = {"train_list": train_list, "test_list": test_list, "label_file": label_file}
    has_objects = (folder / OBJECTS).exists()
    if any(options.values()) or not has_objects:
        lists = published(folder, options, categories)
        if lists:
            return read_lists(folder, lists, names, categories, beyond, image_root)
    if names is not None:
        raise ConfigError(
            [f"option 'names' needs published lists: add option '{name}' too" for name in options]
        )
    if not has_objects:
        lists_too = f"published lists ({TRAIN_LIST}, {TEST_LIST}, {LABELS.format(categories)})"
        raise fault(folder, f"contains neither {OBJECTS} with {IMAGES} nor {lists_too}", kind="missing-file")
    return _build(folder, categories, test, seed, "none" if aliases is None else str(aliases), image_root)


class _Shown:
    """Which names occur in which images: image ``rows[p]`` shows name number ``numbers[p]``.

    These pairs take 25 MB for the 108,077 images; a set of strings per image would take 300 MB.
    """

    def __init__(self, images: int) -> None:
        self.names: dict[str, int] = {}
        self.rows = array("i")
        self.numbers = array("i")
        self.described = np.zeros(images, bool)

    def add(self, row: int, names: Iterable[str]) -> None:
        self.described[row] = True
        for name in names:
            self.rows.append(row)
            self.numbers.append(self.names.setdefault(name, len(self.names)))

    def most_frequent(self, aliases: Mapping[str, str], count: int) -> tuple[list[str], NDArray[np.int64]]:
        """Return the ``count`` most frequent names, ties in alphabetical order, and where they occur.

        The second result (P, 2) holds pairs of an image row and an index into the names.
        """
        merged: dict[str, int] = {}
        numbers = [merged.setdefault(aliases.get(name, name), len(merged)) for name in self.names]
        names = list(merged)
        width = max(1, len(merged))
        shown = np.asarray(numbers, np.int64)[np.asarray(self.numbers)]
        # several objects with one name, or with synonyms, count once
        pairs = np.unique(np.asarray(self.rows, np.int64) * width + shown)
        rows = pairs // width
        shown = pairs % width
        times = np.bincount(shown, minlength=width).tolist()
        kept = sorted(range(len(names)), key=lambda number: (-times[number], names[number]))[:count]
        column_of = np.full(width, -1)
        column_of[kept] = np.arange(len(kept))
        columns = column_of[shown]
        return [names[number] for number in kept], np.stack([rows, columns], 1)[columns >= 0]


def _build(folder: Path, categories: int, test: int, seed: int, aliases: str, image_root: Path) -> Data:
    images = _read_images(folder / IMAGES)
    shown = _read_objects(folder / OBJECTS, {identity: row for row, identity in enumerate(images)})
    merged = _read_aliases(folder / aliases) if aliases not in ("", "none") else {}
    kept, pairs = shown.most_frequent(merged, categories)
    test = _checked_test(folder, len(kept), categories, len(images), test)
    if not aliases:
        _note_aliases(folder / ALIASES, shown, kept)
    values = np.full((len(images), len(kept)), UNKNOWN, np.int8)
    values[shown.described] = ABSENT
    values[pairs[:, 0], pairs[:, 1]] = PRESENT
    splits = np.full(len(images), "train")
    splits[np.random.RandomState(seed).permutation(len(images))[:test]] = "test"
    data = assemble(
        Problems(folder / IMAGES),
        locate(image_root, [name for name, _ in images.values()]),
        values,
        kept,
        root=image_root,
        splits=splits.tolist(),
        lines=[line for _, line in images.values()],
        name="vg",
        notes={
            "categories": categories,
            "test": test,
            "seed": seed,
            "aliases": aliases if merged else None,
            "test_split": f"{test} random images, seed {seed}",
        },
    )
    compare(folder / IMAGES, VISUAL_GENOME[IMAGES], len(images))
    return data


def _checked_test(folder: Path, kept: int, categories: int, images: int, test: int) -> int:
    """Report options that ask for more than there is; return the number of test images to draw."""
    problems = Problems(folder / OBJECTS)
    if kept < categories:
        text = f"has only {kept} categories; add {data_option('categories', kept)} or fewer"
        problems.add(text, kind="option", value=str(categories))
    possible = 1 <= test < images
    if not possible:
        text = f"has {images} images, so {test} test images are not possible; add {data_option('test', 'NUMBER')}"
        problems.add(text, kind="option", file=folder / IMAGES, value=str(test))
    problems.raise_any()
    return test if possible else 0


def _read_images(path: Path) -> dict[Identity, tuple[str, int]]:
    """Return image id -> (file name, line), sorted by id; the name is the last part of the URL, or ID.jpg."""
    problems = Problems(path)
    images: dict[Identity, tuple[str, int]] = {}
    for element in elements(path):
        try:
            identity = element.identity("image_id")
            url = element.text("url") if "url" in element.value else ""
            if identity in images:
                raise ValueError(f"repeats image_id {identity!r} from line {images[identity][1]}")
            images[identity] = url.rsplit("/", 1)[-1] or f"{identity}.jpg", element.line
        except ValueError as error:
            problems.add(f"{element.location} {error}", kind="bad-entry", line=element.line)
    problems.raise_any()
    if not images:
        text = "contains no image; expected a JSON list of objects with image_id and url"
        raise fault(path, text, kind="empty")
    return {identity: images[identity] for identity in sorted(images, key=identity_order)}


def _read_objects(path: Path, rows: Mapping[Identity, int]) -> _Shown:
    """Read which names occur in which image."""
    problems = Problems(path)
    shown = _Shown(len(rows))
    lines: dict[Identity, int] = {}
    for element in elements(path):
        try:
            image = element.identity("image_id")
            names = _object_names(element)
        except ValueError as error:
            problems.add(f"{element.location} {error}", kind="bad-entry", line=element.line)
            continue
        if image not in rows:
            text = f"{element.location}: image id {image!r} is not in {IMAGES}"
            problems.add(text, kind="unknown-id", line=element.line, value=str(image))
            continue
        if image in lines:
            entry = f"image id {image!r} also has an entry on line {lines[image]}"
            text = f"{element.location}: {entry}; both are read"
            problems.add(text, kind="duplicate-row", level="warning", line=element.line, value=str(image))
        lines.setdefault(image, element.line)
        shown.add(rows[image], names)
    problems.raise_any()
    if not shown.described.any():
        text = "contains no image; expected a JSON list of objects with image_id and objects"
        raise fault(path, text, kind="empty")
    return shown


def _object_names(element: Element) -> set[str]:
    """Return the cleaned names of the objects in an image."""
    objects = element.field("objects")
    spelled: set[str] = set()
    if not isinstance(objects, list):
        raise ValueError(f"objects is {reprlib.repr(objects)}; expected a list")
    for number, item in enumerate(objects):
        names = item.get("names") if isinstance(item, dict) else None
        # a string would be read as a list of letters
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise ValueError(f"objects[{number}] has no list of names: {reprlib.repr(item)}")
        spelled.update(names)
    return {name for name in map(_clean, spelled) if name}


def _clean(name: str) -> str:
    return name.strip().lower()


def _read_aliases(path: Path) -> dict[str, str]:
    """Return name -> first name on its line; for a name on several lines, the first line counts."""
    aliases: dict[str, str] = {}
    for _, line in text_lines(path):
        names = [_clean(name) for name in line.split(",") if name.strip()]
        for name in names:
            aliases.setdefault(name, aliases.get(names[0], names[0]))
    return aliases


def _note_aliases(path: Path, shown: _Shown, kept: Sequence[str]) -> None:
    """Warn if the official file of synonyms exists but is not used, and say what it would change."""
    if not path.is_file():
        return
    others = set(shown.most_frequent(_read_aliases(path), len(kept))[0]) - set(kept)
    problems = Problems(path)
    problems.add(
        f"is not used; it would change {len(others)} of the {len(kept)} categories. Declare what you want:"
        f"\n  {data_option('aliases', path.name)}: synonyms are one category"
        f"\n  {data_option('aliases', 'none')}: every name is a category of its own, as now",
        kind="aliases",
        level="warning",
    )
    problems.raise_any()
