"""Pascal VOC: image lists in ``ImageSets/Main``, objects in ``Annotations/*.xml``."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sarb.data.assemble import assemble, declared_names
from sarb.data.check.official import VOC_2007, compare
from sarb.data.check.problems import Problems, fault
from sarb.data.dataset import Data, Dataset
from sarb.data.parse.text import text_lines
from sarb.data.parse.xml import parse
from sarb.data.readers.image_files import given_folder
from sarb.errors import DataError, unknown_name
from sarb.labels import ABSENT, PRESENT, UNKNOWN, encoding_table, meaning

#: the official order, alphabetical
CATEGORIES = (
    "aeroplane",
    "bicycle",
    "bird",
    "boat",
    "bottle",
    "bus",
    "car",
    "cat",
    "chair",
    "cow",
    "diningtable",
    "dog",
    "horse",
    "motorbike",
    "person",
    "pottedplant",
    "sheep",
    "sofa",
    "train",
    "tvmonitor",
)


def load_voc(
    path: Path,
    *,
    difficult: str = "absent",
    year: int = 2007,
    train: str = "trainval",
    test: str = "test",
    categories: str | None = None,
    root: Path | None = None,
) -> Data:
    """Read VOC: the 20 categories in alphabetical order, images in the order of the lists.

    Without a folder ``Annotations`` the lists ``<class>_<list>.txt`` are read: 1, -1, 0 = difficult.

    Args:
        path: ``VOC2007``, ``VOCdevkit`` or its parent.
        difficult: a category shown only by objects marked difficult is ``absent`` (paper), ``unknown`` or
            ``present``. One plain object makes it present in any case.
        year: the folder to look for, 2007 in the paper.
        train: list in ``ImageSets/Main`` to train on.
        test: list to test on.
        categories: other names than the 20, for a set of your own: a file with one per line, or ``a,b,c``.
        root: folder of the images, if it is not ``JPEGImages``.
    """
    rule = meaning("difficult", difficult)
    home = _home(path, year)
    names = declared_names(categories, home / "JPEGImages") or list(CATEGORIES)
    folder = home / "JPEGImages" if root is None else given_folder(root, home)
    parts = [_dataset(home, split, names, rule, folder) for split in (train, test)]
    if year == 2007 and names == list(CATEGORIES):
        for part in parts:
            # the documented counts leave difficult objects out
            official = VOC_2007.get(part.name) if rule != PRESENT else None
            compare(home / "ImageSets" / "Main" / f"{part.name}.txt", official, len(part), part.labels)
    _note_unlisted(home, parts)
    return Data(parts[0], parts[1], name=f"voc{year}", notes={"difficult": difficult, "lists": [train, test]})


def _home(path: Path, year: int) -> Path:
    """Return the folder that holds ``ImageSets/Main``."""
    for folder in (path, path / f"VOC{year}", path / "VOCdevkit" / f"VOC{year}"):
        if (folder / "ImageSets" / "Main").is_dir():
            return folder
    others = sorted(file.name for file in (*path.glob("VOC[0-9]*"), *path.glob("VOCdevkit/VOC[0-9]*")))
    hint = f" There is {', '.join(others)}: add -o year={others[0].removeprefix('VOC')}." if others else ""
    text = f"no ImageSets/Main in it, nor in VOC{year} or VOCdevkit/VOC{year}.{hint}"
    raise fault(path, text, kind="missing-file")


def _dataset(home: Path, split: str, categories: list[str], difficult: int, folder: Path) -> Dataset:
    path = home / "ImageSets" / "Main" / f"{split}.txt"
    if not path.is_file():
        lists = ", ".join(sorted(file.stem for file in path.parent.glob("*.txt") if "_" not in file.stem))
        text = f"no such list. Lists there: {lists or 'none'}; see options train and test"
        raise fault(path, text, kind="missing-file")
    problems = Problems(path)
    listed = [(line, fields[0]) for line, fields in _fields(problems, path, 1)]
    names = [name for _, name in listed]
    if not names:
        problems.add("names no image", kind="empty")
    if (home / "Annotations").is_dir():
        values = _from_xml(problems, home, names, categories, difficult)
    else:
        values = _from_lists(problems, home, split, names, categories, difficult)
    return assemble(
        problems,
        [f"{name}.jpg" for name in names],
        values,
        categories,
        root=folder,
        lines=[line for line, _ in listed],
        name=split,
    ).train


def _fields(problems: Problems, path: Path, width: int) -> Iterator[tuple[int, list[str]]]:
    """Yield (line number, fields) of the lines of a list that have ``width`` fields; note the others."""
    for number, line in text_lines(path):
        fields = line.split()
        if len(fields) == width:
            yield number, fields
        else:
            text = f"{len(fields)} fields, expected {width}: {line[:60]!r}"
            problems.add(text, kind="bad-row", line=number, file=path)


def _from_xml(
    problems: Problems, home: Path, names: Sequence[str], categories: list[str], difficult: int
) -> NDArray[np.int8]:
    """Return labels (N, C); an image whose annotation cannot be read is unknown throughout."""
    values = np.full((len(names), len(categories)), ABSENT, np.int8)
    columns = {category.lower(): number for number, category in enumerate(categories)}
    for row, image in enumerate(names):
        path = home / "Annotations" / f"{image}.xml"
        try:
            objects = read_objects(path)
        except DataError as error:
            for finding in error.findings:
                problems.add(
                    finding.message, kind=finding.kind, line=finding.line, column=finding.column, file=path
                )
            values[row] = UNKNOWN
            continue
        # plain objects last, so that they overrule difficult ones of the same category
        for thing in sorted(objects, key=lambda thing: thing.difficult != "1"):
            if _check_object(problems, path, thing, categories, columns):
                values[row, columns[thing.name]] = difficult if thing.difficult == "1" else PRESENT
    return values


def _check_object(
    problems: Problems, path: Path, thing: Thing, categories: list[str], columns: Collection[str]
) -> bool:
    """Whether an object can be read; note why not."""
    if thing.difficult not in ("", "0", "1"):
        problems.add(
            kind="bad-value",
            line=thing.line,
            column="difficult",
            value=thing.difficult[:60],
            expected="0 or 1",
            file=path,
        )
        return False
    if thing.name not in columns:
        name = thing.name[:60]
        text = unknown_name("category", name, categories) if name else "an object without a name"
        problems.add(text, kind="unknown-category", line=thing.line, value=name, file=path)
        return False
    return True


class Thing(NamedTuple):
    """An object of an annotation: its name in lower case, what it says of ``difficult``, and the line of its
    name.
    """

    name: str
    difficult: str
    line: int


def read_objects(path: Path) -> list[Thing]:
    """Return the objects of an annotation file.

    Raises:
        DataError: not XML (with line and column), not an annotation, or unreadable.
    """
    objects: list[dict[str, str]] = []
    lines: list[int] = []

    def start(stack: list[str], _: object, line: int) -> None:
        if stack[0] != "annotation":
            message = f"starts with <{stack[0][:60]}>, expected <annotation>"
            raise fault(path, message, line=line, kind="bad-xml")
        if stack[1:] == ["object"]:
            objects.append({"name": "", "difficult": ""})
            lines.append(line)
        elif stack[1:] == ["object", "name"]:
            lines[-1] = line

    def text(stack: list[str], data: str) -> None:
        # exactly this depth: a part of an object (a head, a hand) has a name too
        if len(stack) == 3 and stack[1] == "object" and stack[2] in objects[-1]:
            objects[-1][stack[2]] += data

    parse(path, start, text)
    return [
        Thing(item["name"].strip().lower(), item["difficult"].strip(), line)
        for item, line in zip(objects, lines, strict=True)
    ]


def _from_lists(
    problems: Problems, home: Path, split: str, names: Sequence[str], categories: list[str], difficult: int
) -> NDArray[np.int8]:
    """Read ``<class>_<split>.txt``, which says 1, -1 or 0 (only difficult objects) for every image: labels
    (N, C).
    """
    rows = {name: row for row, name in enumerate(dict.fromkeys(names))}
    values = np.full((len(rows), len(categories)), UNKNOWN, np.int8)
    signed = encoding_table("signed")
    codes = {code: difficult if label == UNKNOWN else label for code, label in signed.items()}
    for column, category in enumerate(categories):
        file = home / "ImageSets" / "Main" / f"{category}_{split}.txt"
        if not file.is_file():
            text = "no such list, and no folder Annotations beside ImageSets"
            problems.add(text, kind="missing-file", file=file)
            continue
        for name, label in _read_list(problems, file, split, rows, codes):
            values[rows[name], column] = label
    return values[[rows[name] for name in names]]


def _read_list(
    problems: Problems, file: Path, split: str, images: Collection[str], codes: Mapping[str, int]
) -> Iterator[tuple[str, int]]:
    """Yield (image, label) of a list of one category; note what is wrong with its lines."""
    lines: dict[str, int] = {}
    for line, (name, code) in _fields(problems, file, 2):
        if name not in images:
            text = f"image '{name[:60]}' is not in {split}.txt"
            problems.add(text, kind="unknown-image", line=line, file=file)
        elif code not in codes:
            problems.add(kind="bad-value", line=line, value=code[:60], expected="1, -1 or 0", file=file)
        elif lines.setdefault(name, line) != line:
            text = f"image '{name}' occurs twice, on lines {lines[name]} and {line}"
            problems.add(text, kind="duplicate-row", line=line, file=file)
        else:
            yield name, codes[code]
    if len(lines) < len(images):
        problems.add(f"{len(lines)} images, {split}.txt has {len(images)}", kind="bad-length", file=file)


def _note_unlisted(home: Path, parts: Sequence[Dataset]) -> None:
    """Note annotations that no list names."""
    listed = {Path(name).stem for part in parts for name in part.labels.paths}
    others = sorted(path.stem for path in (home / "Annotations").glob("*.xml") if path.stem not in listed)
    if others:
        problems = Problems(home / "Annotations")
        unlisted = f"{len(others)} annotations of images that neither list has, such as {others[0]}.xml"
        problems.add(
            f"{unlisted}; they are not used",
            kind="unlisted-annotation",
            level="note",
            times=len(others),
        )
        problems.raise_any()
