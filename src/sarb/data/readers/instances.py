"""A file in COCO format: images, categories and annotations, linked by ids."""

from __future__ import annotations

import re
from array import array
from collections.abc import Sequence
from pathlib import Path

from sarb.data.assemble import assemble
from sarb.data.check.problems import Problems, fault
from sarb.data.dataset import Dataset
from sarb.data.parse.element import Element, Identity, identity_order
from sarb.data.parse.facts import Facts
from sarb.data.parse.messages import few, first_here
from sarb.data.parse.stream import elements
from sarb.errors import did_you_mean
from sarb.labels import PRESENT

#: list in the file -> what a message calls one of its entries
LISTED = {"images": "image", "categories": "category"}


class Instances:
    """The content of a COCO or LVIS file, in file order; bad entries are reported and left out.

    Images, annotations and categories may come in any order, so ids are numbered as they appear, and a fact
    is stored as four numbers: the 1.3 million annotations of LVIS take 22 MB.
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
        # one entry per fact in each of these
        self._fact_images = array("i")
        self._fact_categories = array("i")
        self._fact_labels = array("b")
        self._fact_lines = array("q")

    def read(self) -> Instances:
        """Read the file; :meth:`facts` checks that the ids in annotations exist."""
        handlers = {"images": self.image, "categories": self.category, "annotations": self.annotation}
        for element in elements(self.path, tuple(handlers)):
            if not element.key:
                text = "contains a JSON list; expected an object with images, annotations and categories"
                raise fault(self.path, text, line=1)
            try:
                handlers[element.key](element)
            except ValueError as error:
                self.problems.add(f"{element.location} {error}", kind="bad-entry", line=element.line)
        self._check_empty()
        return self

    def _check_empty(self) -> None:
        """Raise if images, categories or annotations are missing.

        An empty list of annotations is only a warning: it says that no image shows anything. Without such a
        list, as in a file of test images, nothing is known.
        """
        contents = {"images": self.images, "categories": self.categories, "annotations": self.annotations}
        if not self.annotations and re.search(rb'"annotations"\s*:\s*\[\s*\]', self.path.read_bytes()):
            text = "'annotations' is an empty list: nothing is marked as present"
            self.problems.add(text, kind="no-annotations", level="warning")
            del contents["annotations"]
        empty = [f"'{part}'" for part, content in contents.items() if not content]
        if empty:
            self.problems.raise_any()
            text = f"{' and '.join(empty)} missing or empty; is this an annotation file?"
            raise fault(self.path, text, kind="empty")

    def image(self, element: Element) -> None:
        """Add an entry of ``images``."""
        if isinstance(element.value, dict) and "neg_category_ids" in element.value:
            text = "has neg_category_ids, so this is an LVIS file, in which unlisted categories are unknown"
            text = f"{element.location} {text}; read it as lvis:{self.path}"
            raise fault(self.path, text, line=element.line, kind="bad-layout")
        self.add(element, self.images, "file_name", element.text("file_name"))

    def add(self, element: Element, entries: dict[Identity, tuple[str, int]], field: str, name: str) -> None:
        """Add an entry; if another one has its name, report it and treat the two as one."""
        identity = element.identity("id")
        if identity in entries:
            first_name, first_line = entries[identity]
            raise ValueError(f"repeats id {identity!r} of '{first_name}' on line {first_line}")
        entries[identity] = name, element.line
        first = self._named.setdefault((field, name), identity)
        if first != identity:
            lines = f"lines {entries[first][1]} and {element.line}"
            self.problems.add(
                f"{element.location}: {field} '{name}' has two ids, {first!r} and {identity!r}, on {lines}",
                kind="duplicate-name",
                line=element.line,
                column=field,
                value=name,
            )

    def category(self, element: Element) -> None:
        """Add an entry of ``categories``."""
        self.add(element, self.categories, "category", element.text("name"))

    def annotation(self, element: Element) -> None:
        """Add an entry of ``annotations``; several objects of a category make one label."""
        self.annotations += 1
        self.say(element.identity("image_id"), element.identity("category_id"), PRESENT, element.line)

    def say(self, image: Identity, category: Identity, label: int, line: int) -> None:
        """Record a fact."""
        images = self._image_numbers
        categories = self._category_numbers
        self._fact_images.append(images.setdefault(image, len(images)))
        self._fact_categories.append(categories.setdefault(category, len(categories)))
        self._fact_labels.append(label)
        self._fact_lines.append(line)

    @property
    def names(self) -> list[str]:
        """N file names."""
        return [name for field, name in self._named if field == "file_name"]

    def dataset(self, rest: int, folder: Path, like: Dataset | None = None) -> Dataset:
        """Return the images with their labels, and raise all problems with the file.

        Args:
            rest: label of an entry without a fact.
            folder: folder of the images.
            like: dataset whose categories to use, in their order.
        """
        facts = self.facts(like)
        name = self.path.stem.removeprefix("instances_")
        values, categories = facts.matrix(rest)
        return assemble(
            self.problems, facts.names, values, categories, root=folder, lines=facts.lines, name=name
        ).train

    def facts(self, like: Dataset | None = None) -> Facts:
        """Return the facts by file name and category, with the categories of ``like`` if given."""
        ordered = sorted(self.categories, key=identity_order)
        names = list(dict.fromkeys(self.categories[identity][0] for identity in ordered))
        if like is not None:
            self._compare_categories(names, like)
            names = list(like.categories)
        facts = Facts(self.problems, names)
        row_of = {identity: facts.image(name, line=line) for identity, (name, line) in self.images.items()}
        rows = [row_of.get(identity) for identity in self._image_numbers]
        columns = [self.categories.get(identity, (None, 0))[0] for identity in self._category_numbers]
        self._note_strangers("images", list(self._image_numbers), rows, self._fact_images)
        self._note_strangers("categories", list(self._category_numbers), columns, self._fact_categories)
        stored = (self._fact_images, self._fact_categories, self._fact_labels, self._fact_lines)
        for image, category, label, line in zip(*stored, strict=True):
            row = rows[image]
            name = columns[category]
            if row is not None and name in facts.columns:
                facts.say(row, str(name), label, line)
        return facts

    def _note_strangers(
        self, part: str, identities: Sequence[Identity], known: Sequence[object], used: Sequence[int]
    ) -> None:
        """Report ids that facts use but the file does not list, each once with its first line.

        Args:
            part: ``images`` or ``categories``.
            identities: ids, by number.
            known: None for every id that is not listed.
            used: number of the id that each fact uses.
        """
        if None not in known:
            return
        first: dict[int, tuple[int, int]] = {}
        for number, line in zip(used, self._fact_lines, strict=True):
            if known[number] is None:
                start, times = first.get(number, (line, 0))
                first[number] = start, times + 1
        for number, (line, times) in first.items():
            self.problems.add(
                f"{LISTED[part]} id {identities[number]!r} is not in '{part}'{first_here(times)}",
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
            f"{where}: {few(different)}"
            for where, different in (("only here", extra), ("only there", lacking))
            if different
        ]
        line = next((line for name, line in self.categories.values() if name in extra), None)
        self.problems.add(
            f"has different categories than {like.source}; {'; '.join(listed)}.{near}",
            kind="other-categories",
            line=line,
        )
