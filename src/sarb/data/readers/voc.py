"""Pascal VOC: image lists in ``ImageSets/Main``, objects in ``Annotations/*.xml``."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sarb.data.assemble import assemble, declared_names
from sarb.data.check.official import VOC_2007, compare
from sarb.data.check.outside import leaves
from sarb.data.check.problems import Problems, fault
from sarb.data.dataset import Data, Dataset
from sarb.data.parse.messages import counted
from sarb.data.parse.text import text_lines
from sarb.data.parse.xml import parse
from sarb.data.readers.image_files import given_folder
from sarb.errors import DataError, data_option, unknown_name
from sarb.labels import ABSENT, PRESENT, UNKNOWN, encoding_table, meaning

#: in the official order, which is alphabetical
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
    """Read Pascal VOC: a category with an object is present, every other category is absent.

    The 20 categories are in alphabetical order, images in the order of the lists. If there is no folder
    ``Annotations``, read the lists ``<class>_<list>.txt``, in which 0 means difficult.

    Args:
        path: ``VOC2007``, ``VOCdevkit`` or its parent.
        difficult: read a category whose objects are all marked difficult as ``absent`` (as in the paper),
            ``unknown`` or ``present``. A single object that is not difficult makes it present.
        year: selects the folder, 2007 in the paper.
        train: list in ``ImageSets/Main`` to train on.
        test: list in ``ImageSets/Main`` to test on.
        categories: categories of your own data set, ``a,b,c`` or a file with one per line.
        root: folder of the images, if it is not ``JPEGImages``.
    """
    rule = meaning("difficult", difficult)
    home = _home(path, year)
    names = declared_names(categories, home / "JPEGImages") or list(CATEGORIES)
    folder = home / "JPEGImages" if root is None else given_folder(root, home)
    parts = [_dataset(home, split, names, rule, folder) for split in (train, test)]
    if year == 2007 and names == list(CATEGORIES):
        for part in parts:
            # the documented counts exclude difficult objects
            official = VOC_2007.get(part.name) if rule != PRESENT else None
            compare(home / "ImageSets" / "Main" / f"{part.name}.txt", official, len(part), part.labels)
    _note_unlisted(home, parts)
    return Data(parts[0], parts[1], name=f"voc{year}", notes={"difficult": difficult, "lists": [train, test]})


def _home(path: Path, year: int) -> Path:
    """Return the folder that contains ``ImageSets/Main``."""
    for folder in (path, path / f"VOC{year}", path / "VOCdevkit" / f"VOC{year}"):
        if (folder / "ImageSets" / "Main").is_dir():
            return folder
    others = sorted(file.name for file in (*path.glob("VOC[0-9]*"), *path.glob("VOCdevkit/VOC[0-9]*")))
    hint = (
        f" Found {', '.join(others)}; add {data_option('year', others[0].removeprefix('VOC'))}."
        if others
        else ""
    )
    text = f"contains no ImageSets/Main, nor does VOC{year} or VOCdevkit/VOC{year} in it.{hint}"
    raise fault(path, text, kind="missing-file")


def _dataset(home: Path, split: str, categories: list[str], difficult: int, folder: Path) -> Dataset:
    path = home / "ImageSets" / "Main" / f"{split}.txt"
    if not path.is_file():
        lists = ", ".join(sorted(file.stem for file in path.parent.glob("*.txt") if "_" not in file.stem))
        text = f"no such list. Lists in this folder: {lists or 'none'}; see options train and test"
        raise fault(path, text, kind="missing-file")
    problems = Problems(path)
    listed = [(line, fields[0]) for line, fields in _fields(problems, path, 1)]
    names = [name for _, name in listed]
    if not names:
        problems.add("contains no image", kind="empty")
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
    """Yield (line number, fields) for every line with ``width`` fields; report the others."""
    for number, line in text_lines(path):
        fields = line.split()
        if len(fields) == width:
            yield number, fields
        else:
            text = f"{counted(len(fields), 'field')}, expected {width}: {line[:60]!r}"
            problems.add(text, kind="bad-row", line=number, file=path)


def _from_xml(
    problems: Problems, home: Path, names: Sequence[str], categories: list[str], difficult: int
) -> NDArray[np.int8]:
    """Return labels (N, C); if an annotation cannot be read, all labels of the image are unknown."""
    values = np.full((len(names), len(categories)), ABSENT, np.int8)
    columns = {category.lower(): number for number, category in enumerate(categories)}
    for row, image in enumerate(names):
        path = home / "Annotations" / f"{image}.xml"
        if leaves(image):  # a list must not make us read files elsewhere
            problems.add(
                f"'{image[:60]}' {leaves(image)}, so it is not read", kind="bad-name", value=image[:60]
            )
            values[row] = UNKNOWN
            continue
        try:
            objects = read_objects(path)
        except DataError as error:
            for finding in error.findings:
                problems.add(
                    finding.message, kind=finding.kind, line=finding.line, column=finding.column, file=path
                )
            values[row] = UNKNOWN
            continue
        # difficult objects first, so that other objects of the same category overrule them
        for thing in sorted(objects, key=lambda thing: thing.difficult != "1"):
            if _check_object(problems, path, thing, categories, columns):
                values[row, columns[thing.name]] = difficult if thing.difficult == "1" else PRESENT
    return values


def _check_object(
    problems: Problems, path: Path, thing: Thing, categories: list[str], columns: Collection[str]
) -> bool:
    """Whether an object is valid; report why not."""
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
        text = unknown_name("category", name, categories) if name else "an object has no name"
        problems.add(text, kind="unknown-category", line=thing.line, value=name, file=path)
        return False
    return True


class Thing(NamedTuple):
    """An object in an annotation: name in lower case, value of ``difficult``, and the line of the name."""

    name: str
    difficult: str
    line: int


def read_objects(path: Path) -> list[Thing]:
    """Return the objects of an annotation file.

    Raises:
        DataError: not XML (with line and column), not an annotation file, or unreadable.
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
        # only at this depth: parts of an object (head, hand) have names too
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
    """Return labels (N, C) from ``<class>_<split>.txt``: 1, -1 or 0 (only difficult objects) per image."""
    rows = {name: row for row, name in enumerate(dict.fromkeys(names))}
    values = np.full((len(rows), len(categories)), UNKNOWN, np.int8)
    signed = encoding_table("signed")
    codes = {code: difficult if label == UNKNOWN else label for code, label in signed.items()}
    for column, category in enumerate(categories):
        file = home / "ImageSets" / "Main" / f"{category}_{split}.txt"
        if not file.is_file():
            text = "no such list, and there is no folder Annotations next to ImageSets"
            problems.add(text, kind="missing-file", file=file)
            continue
        for name, label in _read_list(problems, file, split, rows, codes):
            values[rows[name], column] = label
    return values[[rows[name] for name in names]]


def _read_list(
    problems: Problems, file: Path, split: str, images: Collection[str], codes: Mapping[str, int]
) -> Iterator[tuple[str, int]]:
    """Yield (image, label) from the list of one category; report bad lines."""
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
        problems.add(
            f"has {counted(len(lines), 'image')}, but {split}.txt has {len(images):,}",
            kind="bad-length",
            file=file,
        )


def _note_unlisted(home: Path, parts: Sequence[Dataset]) -> None:
    """Report annotations of images that are in neither list."""
    listed = {Path(name).stem for part in parts for name in part.labels.paths}
    others = sorted(path.stem for path in (home / "Annotations").glob("*.xml") if path.stem not in listed)
    if others:
        problems = Problems(home / "Annotations")
        count = counted(len(others), "annotation")
        problems.add(
            f"{count} not used, for example {others[0]}.xml: no list has the image",
            kind="unlisted-annotation",
            level="note",
            times=len(others),
        )
        problems.raise_any()
