"""Pascal VOC: image lists in ``ImageSets/Main``, objects in ``Annotations/*.xml``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from xml.parsers import expat

import numpy as np
from numpy.typing import NDArray

from sarb.data.checks import Problems, require_files, warn_size
from sarb.data.dataset import Data, Dataset
from sarb.errors import DataError, check_choice, unknown_name
from sarb.labels import ABSENT, PRESENT, UNKNOWN, LabelMatrix, encoding_table

#: the official order, alphabetical
CATEGORIES = (
    "aeroplane", "bicycle", "bird", "boat", "bottle", "bus", "car", "cat", "chair", "cow",
    "diningtable", "dog", "horse", "motorbike", "person", "pottedplant", "sheep", "sofa", "train", "tvmonitor",
)  # fmt: skip

#: option ``difficult`` -> label of a category seen only in objects marked difficult
DIFFICULT = {"absent": ABSENT, "unknown": UNKNOWN, "present": PRESENT}

SIZES = {"trainval": 5_011, "test": 4_952}


def load_voc(
    root: Path,
    *,
    difficult: str = "absent",
    year: int = 2007,
    train: str = "trainval",
    test: str = "test",
    check_files: bool = True,
) -> Data:
    """Read VOC: the 20 categories in alphabetical order, images in the order of the lists.

    Args:
        root: ``VOC2007``, ``VOCdevkit`` or its parent.
        difficult: a category shown only by objects marked difficult is ``absent`` (paper), ``unknown`` or ``present``.
            One plain object makes it present in any case.
        year: the folder to look for, 2007 in the paper.
        train: list in ``ImageSets/Main`` to train on.
        test: list to test on.
        check_files: look for every image file.

    Without a folder ``Annotations`` the lists ``<class>_<list>.txt`` are read: 1, -1, 0 = difficult.
    """
    check_choice("value of option difficult:", difficult, DIFFICULT)
    home = _home(root, year)
    first, second = (_dataset(home, split, DIFFICULT[difficult], check_files) for split in (train, test))
    if year == 2007:
        for part in (first, second):
            warn_size(f"VOC 2007 {part.name}", SIZES.get(part.name, len(part)), len(part))
    return Data(first, second, name=f"voc{year}", notes={"difficult": difficult, "lists": [train, test]})


def _home(root: Path, year: int) -> Path:
    places = [root, root / f"VOC{year}", root / "VOCdevkit" / f"VOC{year}"]
    for place in places:
        if (place / "ImageSets" / "Main").is_dir():
            return place
    others = sorted(path.name for path in (*root.glob("VOC[0-9]*"), *root.glob("VOCdevkit/VOC[0-9]*")))
    hint = f" There is {', '.join(others)}: add -o year={others[0].removeprefix('VOC')}." if others else ""
    raise DataError(f"{root}: no ImageSets/Main in it, nor in VOC{year} or VOCdevkit/VOC{year}.{hint}")


def _dataset(home: Path, split: str, difficult: int, check_files: bool) -> Dataset:
    names = [fields[0] for _, fields in _lines(home / "ImageSets" / "Main" / f"{split}.txt", 1)]
    if (home / "Annotations").is_dir():
        values = _from_xml(home, names, difficult)
    else:
        values = _from_lists(home, split, names, difficult)
    files = [f"{name}.jpg" for name in names]
    if check_files:
        require_files(home / "JPEGImages", files, home / "ImageSets" / "Main" / f"{split}.txt")
    return Dataset(LabelMatrix(values, CATEGORIES, files), home / "JPEGImages", split)


def _lines(path: Path, width: int) -> Iterator[tuple[int, list[str]]]:
    """Yield (line number, fields) of a list file whose lines have ``width`` fields."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        lists = ", ".join(sorted(file.stem for file in path.parent.glob("*.txt") if "_" not in file.stem))
        raise DataError(f"{path}: no such list. Lists there: {lists or 'none'}; see options train and test") from None
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: cannot be read ({error})") from None
    for number, line in enumerate(text.splitlines(), 1):
        fields = line.split()
        if fields and len(fields) != width:
            raise DataError(f"{path}, line {number}: {len(fields)} fields, expected {width}: {line!r}")
        if fields:
            yield number, fields


def _from_xml(home: Path, names: Sequence[str], difficult: int) -> NDArray[np.int8]:
    values = np.full((len(names), len(CATEGORIES)), ABSENT, np.int8)
    column = {category: number for number, category in enumerate(CATEGORIES)}
    problems = Problems(home / "Annotations")
    for row, name in enumerate(names):
        try:
            objects = read_objects(home / "Annotations" / f"{name}.xml")
        except DataError as error:
            problems.add(str(error))
            continue
        # plain objects last, so that they overrule difficult ones of the same category
        for category, hard in sorted(objects, key=lambda item: not item[1]):
            if category in column:
                values[row, column[category]] = difficult if hard else PRESENT
            else:
                problems.add(f"{name}.xml: {unknown_name('category', category, CATEGORIES)}")
    problems.raise_any()
    return values


def read_objects(path: Path) -> list[tuple[str, bool]]:
    """Return (category, difficult) of every object of an annotation file.

    Document types and entities are refused: annotation files have none, and they are how XML attacks work.
    """
    where: list[str] = []
    objects: list[dict[str, str]] = []

    def start(tag: str, _: object) -> None:
        where.append(tag)
        if where == ["annotation", "object"]:
            objects.append({"name": "", "difficult": ""})

    def text(data: str) -> None:
        # exactly this depth: a part of an object (a head, a hand) has a name too
        if where[:-1] == ["annotation", "object"] and where[-1] in objects[-1]:
            objects[-1][where[-1]] += data

    def refuse(*_: object) -> None:
        raise DataError(f"{path}: a document type declaration is not allowed in an annotation")

    parser = expat.ParserCreate()
    parser.StartElementHandler, parser.EndElementHandler = start, lambda _: where.pop()
    parser.CharacterDataHandler, parser.StartDoctypeDeclHandler = text, refuse
    try:
        parser.Parse(path.read_bytes(), True)
    except expat.ExpatError as error:
        reason = expat.errors.messages[error.code]
        raise DataError(f"{path}, line {error.lineno}, column {error.offset + 1}: not valid XML, {reason}") from None
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror})") from None
    return [(item["name"].strip().lower(), item["difficult"].strip() == "1") for item in objects]


def _from_lists(home: Path, split: str, names: Sequence[str], difficult: int) -> NDArray[np.int8]:
    """Read ``<class>_<split>.txt``, which says 1, -1 or 0 (only difficult objects) for every image."""
    row = {name: number for number, name in enumerate(names)}
    values = np.full((len(names), len(CATEGORIES)), ABSENT, np.int8)
    meaning = encoding_table("signed")
    problems = Problems(home / "ImageSets" / "Main")
    for column, category in enumerate(CATEGORIES):
        file, listed = home / "ImageSets" / "Main" / f"{category}_{split}.txt", 0
        if not file.is_file():
            problems.add(f"no {file.name}, and no folder Annotations beside ImageSets")
            continue
        for line, (name, code) in _lines(file, 2):
            if name not in row or code not in meaning:
                what = f"code '{code}'; expected 1, -1 or 0" if name in row else f"image '{name}' is not in {split}.txt"
                problems.add(f"{file.name}, line {line}: {what}")
                continue
            values[row[name], column] = meaning[code] or difficult
            listed += 1
        if listed < len(names):
            problems.add(f"{file.name}: {listed} images, {split}.txt has {len(names)}")
    problems.raise_any()
    return values
