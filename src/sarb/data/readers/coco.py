"""COCO instances: an annotated category is present, every other is absent."""

from __future__ import annotations

import os
import re
from array import array
from collections.abc import Sequence
from pathlib import Path

from sarb.data.assemble import assemble, find_root
from sarb.data.check.official import COCO, compare
from sarb.data.check.problems import Problems, fault
from sarb.data.dataset import Data, Dataset
from sarb.data.parse.facts import Facts
from sarb.data.parse.stream import Element, Identity, identity_order, located_elements
from sarb.errors import ConfigError, check_choice, did_you_mean
from sarb.labels import ABSENT, PRESENT

#: how many images are looked for to find their folder
PROBES = 100


def load_coco(
    place: Path,
    *,
    images: str = "all",
    year: int = 2014,
    train_json: Path | None = None,
    test_json: Path | None = None,
    root: Path | None = None,
    check_files: bool = True,
) -> Data:
    """Read COCO: ``annotations/instances_{train,val}2014.json``, or any one file in that format.

    Categories (80 in COCO) are in ascending order of their ids, which have gaps; images in the order of the
    file. A crowd annotation (``iscrowd``) counts as present. Images are in ``train2014/``,
    ``images/train2014/``, ``images/`` or the folder itself; those of a file on its own beside it or in
    ``images/``.

    Args:
        place: the folder that holds ``annotations``, or one annotation file, which has no test images of its
            own.
        images: ``all`` images (paper) or only the ``annotated`` ones.
        year: 2014 (paper) or 2017.
        train_json: another annotation file, relative to ``place``; without ``test_json`` there is no test
            file then.
        test_json: the same for testing; relative to the folder of ``place`` if that is a file.
        root: folder of the images, if it is another.
        check_files: look at the image files to find their folder.
    """
    check_choice("value of option images:", images, ("all", "annotated"))
    official = [f"annotations/instances_{split}{year}.json" for split in ("train", "val")]
    files = annotation_files(place, official, train_json, test_json, "year, train_json and test_json")
    parts: list[Dataset] = []
    for file in files:
        found = Instances(file).read()
        folder = _image_folder(place, file, found.names, root, check_files)
        part = found.dataset(ABSENT, folder, parts[0] if parts else None)
        if images == "annotated":
            part = part.take((part.labels.values == PRESENT).any(1))
        compare(file, COCO.get((file.name, images)), len(part), part.labels, found.annotations)
        parts.append(part)
    notes = {"images": images, "annotations": [file.name for file in files]}
    return Data(parts[0], parts[1] if len(parts) > 1 else parts[0].take([]), name="coco", notes=notes)


class Instances:
    """What a file of COCO or LVIS says, in the order of the file; faulty entries are noted and left out.

    Images, annotations and categories may come in any order, so ids are numbered as they are met and a fact
    is kept as four numbers: the 1.3 million annotations of LVIS take 22 MB.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.problems = Problems(path)
        self.images: dict[Identity, tuple[str, int]] = {}  # id -> file name, line
        self.categories: dict[Identity, tuple[str, int]] = {}  # id -> name, line
        self.annotations = 0
        self._named: dict[tuple[str, str], Identity] = {}  # (file_name or category, its name) -> first id
        self._image_numbers: dict[Identity, int] = {}
        self._category_numbers: dict[Identity, int] = {}
        self._said = array("i"), array("i"), array("b"), array("q")  # image, category, label, line

    def read(self) -> Instances:
        """Read the file; whether the ids that annotations name are there is checked by :meth:`facts`."""
        parts = {"images": self.image, "categories": self.category, "annotations": self.annotation}
        for element in located_elements(self.path, tuple(parts)):
            if not element.key:
                raise fault(
                    self.path, "is a JSON list, not an object with images, annotations and categories", line=1
                )
            try:
                parts[element.key](element)
            except ValueError as error:
                self.problems.add(f"{element.place} {error}", kind="bad-entry", line=element.line)
        found = {"images": self.images, "categories": self.categories, "annotations": self.annotations}
        # a file of test images has no annotations, and is no statement that nothing is in them; an empty
        # list is one
        if not self.annotations and re.search(rb'"annotations"\s*:\s*\[\s*\]', self.path.read_bytes()):
            text = "'annotations' is an empty list: no image is known to show anything"
            self.problems.add(text, kind="no-annotations", level="warning")
            del found["annotations"]
        empty = [f"'{part}'" for part, things in found.items() if not things]
        if empty:
            self.problems.raise_any()
            raise fault(
                self.path,
                f"{' and '.join(empty)} missing or empty; is this a file of image annotations?",
                kind="empty",
            )
        return self

    def image(self, element: Element) -> None:
        """Take an entry of ``images``."""
        if isinstance(element.value, dict) and "neg_category_ids" in element.value:
            text = "has neg_category_ids, so this is an LVIS file, where what is not listed is unknown"
            raise fault(
                self.path,
                f"{element.place} {text}; read it as lvis:{self.path}",
                line=element.line,
                kind="bad-layout",
            )
        self.add(element, self.images, "file_name", element.text("file_name"))

    def add(self, element: Element, found: dict[Identity, tuple[str, int]], what: str, name: str) -> None:
        """Keep an entry; one that has the name of another is noted and from then on the same as that."""
        identity = element.identity("id")
        if identity in found:
            raise ValueError(f"repeats id {identity!r} of '{found[identity][0]}', line {found[identity][1]}")
        found[identity] = name, element.line
        first = self._named.setdefault((what, name), identity)
        if first != identity:
            self.problems.add(
                f"{element.place}: {what} '{name}' has two ids, {first!r} and {identity!r}, on lines {found[first][1]} "
                f"and {element.line}",
                kind="duplicate-name",
                line=element.line,
                column=what,
                value=name,
            )

    def category(self, element: Element) -> None:
        """Take an entry of ``categories``."""
        self.add(element, self.categories, "category", element.text("name"))

    def annotation(self, element: Element) -> None:
        """Take an entry of ``annotations``: many objects of a category are one label."""
        self.annotations += 1
        self.say(element.identity("image_id"), element.identity("category_id"), PRESENT, element.line)

    def say(self, image: Identity, category: Identity, label: int, line: int) -> None:
        """Keep a fact."""
        rows = self._image_numbers
        columns = self._category_numbers
        fact = rows.setdefault(image, len(rows)), columns.setdefault(category, len(columns)), label, line
        for kept, number in zip(self._said, fact, strict=True):
            kept.append(number)

    @property
    def names(self) -> list[str]:
        """N file names."""
        return [name for what, name in self._named if what == "file_name"]

    def dataset(self, rest: int, folder: Path, like: Dataset | None = None) -> Dataset:
        """Return the images with their labels; what nobody said is ``rest``. Raises everything wrong with
        the file.
        """
        facts = self.facts(like)
        name = self.path.stem.removeprefix("instances_")
        values, categories = facts.matrix(rest)
        return assemble(
            self.problems, facts.names, values, categories, root=folder, lines=facts.lines, name=name
        ).train

    def facts(self, like: Dataset | None = None) -> Facts:
        """Return what is said by file name and category, in the categories (and their order) of ``like`` if
        given.
        """
        ordered = sorted(self.categories, key=identity_order)
        names = list(dict.fromkeys(self.categories[identity][0] for identity in ordered))
        if like is not None:
            self._compare_categories(names, like)
            names = list(like.categories)
        facts = Facts(self.problems, names)
        rows = {identity: facts.image(name, line=line) for identity, (name, line) in self.images.items()}
        row = [rows.get(identity) for identity in self._image_numbers]
        column = [self.categories.get(identity, (None, 0))[0] for identity in self._category_numbers]
        self._note_strangers("images", list(self._image_numbers), row, self._said[0])
        self._note_strangers("categories", list(self._category_numbers), column, self._said[1])
        for image, category, label, line in zip(*self._said, strict=True):
            place = row[image]
            name = column[category]
            if place is not None and name in facts.columns:
                facts.say(place, str(name), label, line)
        return facts

    def _note_strangers(
        self, part: str, identities: Sequence[Identity], known: Sequence[object], said: Sequence[int]
    ) -> None:
        """Note ids that are used but not listed, each once with its first line; ``said`` are numbers of
        ids.
        """
        if None not in known:
            return
        first: dict[int, tuple[int, int]] = {}
        for number, line in zip(said, self._said[3], strict=True):
            if known[number] is None:
                start, times = first.get(number, (line, 0))
                first[number] = start, times + 1
        for number, (line, times) in first.items():
            more = f" ({times} times, first here)" if times > 1 else ""
            self.problems.add(
                f"id {identities[number]!r} is not in '{part}'{more}",
                kind="unknown-id",
                line=line,
                value=str(identities[number]),
            )

    def _compare_categories(self, names: Sequence[str], like: Dataset) -> None:
        extra = [name for name in names if name not in like.categories]
        lacking = [name for name in like.categories if name not in names]
        if not extra and not lacking:
            return
        near = did_you_mean(extra[0], lacking or like.categories) if extra else ""
        listed = [
            f"{where}: {', '.join(found[:5])}{', …' if len(found) > 5 else ''}"
            for where, found in (("only here", extra), ("only there", lacking))
            if found
        ]
        line = next((line for name, line in self.categories.values() if name in extra), None)
        self.problems.add(
            f"has different categories than {like.source}; {'; '.join(listed)}.{near}",
            kind="other-categories",
            line=line,
        )


def annotation_files(
    place: Path, official: Sequence[str], train_json: Path | None, test_json: Path | None, options: str
) -> list[Path]:
    """Return the file to train on and, if there is one, the file to test on.

    Args:
        place: a folder, or the file to train on.
        official: names in the folder, for training and for testing.
        train_json: used instead.
        test_json: used instead.
        options: to name when a file is missing.
    """
    if place.is_file():
        if train_json is not None:
            raise ConfigError(
                [f"{place} is the file to train on; leave option train_json out, or give the folder"]
            )
        files = [place, *([place.parent / test_json] if test_json is not None else [])]
    elif train_json is not None:
        files = [place / file for file in (train_json, test_json) if file is not None]
    else:
        files = [place / official[0], place / (test_json or official[1])]
    for file in files:
        if not file.is_file():
            others = sorted(other.name for other in file.parent.glob("*.json"))
            hint = f" There is {', '.join(others[:8])}: see options {options}." if others else ""
            raise fault(file, f"no such annotation file.{hint}", kind="missing-file")
    return files


def _image_folder(
    place: Path, file: Path, names: Sequence[str], root: Path | None, check_files: bool
) -> Path:
    """Return the folder of a file's images; a file outside of the official layout has them where any table
    has.
    """
    if root is not None or (place.is_file() and file.parent.name != "annotations"):
        return find_root(file if place.is_file() else place / file.name, names, root, check_files)
    home = file.parent.parent if place.is_file() else place
    split = file.stem.removeprefix("instances_")
    return first_holding([home / split, home / "images" / split, home / "images", home], names)


def first_holding(places: Sequence[Path], names: Sequence[str]) -> Path:
    """Return the first folder with one of the first images in it, else the first that exists, else the
    first.
    """
    for place in places:
        # os.path: Path.is_file raises for a name that is too long
        if place.is_dir() and any(os.path.isfile(place / name) for name in names[:PROBES]):  # noqa: PTH113
            return place
    return next((place for place in places if place.is_dir()), places[0])
