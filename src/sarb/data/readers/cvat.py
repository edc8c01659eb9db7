"""CVAT for images 1.1: ``annotations.xml`` with tags on images, from a task, a job or a project."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from sarb.data.assemble import SPLITS, assemble, declared_names, find_root
from sarb.data.check.problems import Problems, fault
from sarb.data.dataset import Data
from sarb.data.parse.facts import Facts
from sarb.data.parse.messages import option
from sarb.data.parse.text import unreadable
from sarb.data.parse.unlisted import check_unlisted, rest_label
from sarb.data.parse.xml import parse
from sarb.data.readers.image_files import is_file
from sarb.errors import check_choice, did_you_mean
from sarb.labels import PRESENT

#: elements inside an image that mark a place in it
SHAPES = ("box", "polygon", "polyline", "points", "cuboid", "ellipse", "mask", "skeleton")
#: types of label an image can be tagged with; a file of an older CVAT has no types
TAGGABLE = ("", "any", "tag")


def load_cvat(
    path: Path,
    *,
    unlisted: str | None = None,
    shapes: str | None = None,
    subsets: str = "split",
    categories: str | None = None,
    root: Path | None = None,
    check_files: bool = True,
) -> Data:
    """Read CVAT for images 1.1: a tag is present, the rest by ``unlisted``; categories in the order of the
    labels.

    An image without any tag was looked at like the others: all its categories go by ``unlisted``.

    Args:
        path: ``annotations.xml``, or the unzipped folder it is in.
        unlisted: what a category without a tag is, ``absent`` or ``unknown``; must be said.
        shapes: boxes, polygons and other shapes are no tags: ``ignore`` them, or let their labels be
            ``present`` too; must be said when there are any.
        subsets: the subset of an image in a project is its ``split`` (Train, Test, Validation; default is
            none), or ``ignore`` it.
        categories: the names there should be, ``a,b,c`` or a file with one per line, instead of the labels
            in the file.
        root: folder of the images; by default the file's own, or its ``images/`` when they are only there. A
            project export has them in a folder per subset.
        check_files: look for the image files to find their folder.

    Raises:
        DataError: every fault of the file with its line; a reading that must be chosen, with the counts of
            each.
    """
    check_unlisted(unlisted)
    check_choice("value of option shapes:", shapes or "ignore", ("ignore", "present"))
    check_choice("value of option subsets:", subsets, ("split", "ignore"))
    path = _file(path)
    declared = declared_names(categories, path)
    annotations = _Annotations(path)
    parse(path, annotations.start, annotations.text, annotations.end)
    problems = annotations.problems
    shapes = shapes or annotations.choose_shapes()
    facts, present = _facts(annotations, declared or annotations.declared(shapes), shapes)
    entries = len(annotations.names) * len(facts.columns)
    values, names = facts.matrix(rest_label(problems, unlisted, present, entries - present))
    splits = annotations.splits() if subsets == "split" else None
    files, folder = _image_files(path, annotations, root, check_files)
    notes: dict[str, object] = {"unlisted": unlisted, "shapes": shapes, "subsets": subsets}
    return assemble(
        problems,
        files,
        values,
        names,
        root=folder,
        splits=splits,
        lines=annotations.lines,
        name="cvat",
        notes=notes,
    )


def _file(path: Path) -> Path:
    """Return the XML file, or say what was given instead."""
    if path.is_dir():
        if not (path / "annotations.xml").is_file():
            text = "no annotations.xml in this folder; export from CVAT as 'CVAT for images 1.1' and unzip it"
            raise fault(path, text)
        return path / "annotations.xml"
    try:
        with path.open("rb") as file:
            zipped = file.read(2) == b"PK"
    except OSError as error:
        raise unreadable(path, error) from None
    if zipped:
        raise fault(path, "a zip archive; unzip it and give its annotations.xml")
    return path


def _facts(annotations: _Annotations, declared: list[str] | None, shapes: str) -> tuple[Facts, int]:
    """Return what is present, and how many entries that is; raise for a file that says nothing."""
    marks = annotations.tags + (annotations.shapes if shapes == "present" else [])
    if not annotations.names or not marks:
        annotations.problems.raise_any()
        text = "no image has a <tag>" if annotations.names else "there is no <image> in it"
        raise fault(annotations.path, text, kind="empty")
    facts = Facts(annotations.problems, declared)
    # by number: an image that occurs twice must not become one row
    for number, line in enumerate(annotations.lines):
        facts.image(str(number), line=line)
    for row, label, line in marks:
        facts.say(row, label, PRESENT, line)
    return facts, len({(row, label) for row, label, _ in marks if label in facts.columns})


class _Annotations:
    """What the file says, in file order: N images, and tags and shapes as (row, label, line)."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.problems = Problems(path)
        self.names: list[str] = []
        self.subsets: list[str] = []
        self.lines: list[int] = []
        self.tags: list[tuple[int, str, int]] = []
        self.shapes: list[tuple[int, str, int]] = []
        self.element_counts: Counter[str] = Counter()
        self.label: dict[str, str] = {}
        self.labels: dict[tuple[str, str], tuple[str, int]] = {}

    def start(self, stack: list[str], attributes: dict[str, str], line: int) -> None:
        """Take one element; raise for a file that is something else."""
        depth = len(stack)
        tag = stack[-1]
        if depth == 1 and tag != "annotations":
            hint = "; is this Pascal VOC? Then give its folder" if tag == "annotation" else ""
            text = f"starts with <{tag}>, expected <annotations>{hint}"
            raise fault(self.path, text, line=line, kind="bad-layout")
        if depth == 2 and tag == "track":
            text = "this is 'CVAT for video'; export it again as 'CVAT for images 1.1'"
            raise fault(self.path, text, line=line, kind="bad-layout")
        if depth == 2 and tag == "image":
            self.names.append(self._attribute(tag, attributes, "name", line))
            self.subsets.append(attributes.get("subset", ""))
            self.lines.append(line)
        elif depth == 3 and stack[1] == "image":
            self._inside(tag, attributes, line)
        elif depth == 5 and stack[1] == "meta" and stack[3:] == ["labels", "label"]:
            self.label = {"line": str(line), "name": "", "type": "", "parent": ""}

    def text(self, stack: list[str], data: str) -> None:
        """Take the text of a label's name, type or parent."""
        # exactly this depth: an attribute of a label has a name too
        inside = len(stack) == 6 and stack[1] == "meta" and stack[3:5] == ["labels", "label"]
        if inside and stack[5] in ("name", "type", "parent"):
            self.label[stack[5]] += data

    def end(self, stack: list[str]) -> None:
        """Take a label when it is complete."""
        if len(stack) != 5 or stack[1] != "meta" or stack[3:] != ["labels", "label"]:
            return
        name = self.label["name"].strip()
        parent = self.label["parent"].strip()
        line = int(self.label["line"])
        # with the parent: points of two skeletons may have one name
        first = self.labels.get((name, parent))
        if not name or first:
            twice = first and f"label '{name}' is declared twice, on lines {first[1]} and {line}"
            self.problems.add(twice or "a label has no name", line=line, kind="bad-label", value=name)
        else:
            self.labels[name, parent] = self.label["type"].strip(), line

    def _inside(self, tag: str, attributes: dict[str, str], line: int) -> None:
        known = ("tag", *SHAPES)
        if tag not in known:
            expected = ", ".join(f"<{name}>" for name in known)
            text = f"element <{tag[:60]}> in an image; expected {expected}.{did_you_mean(tag, known)}"
            self.problems.add(text, line=line, kind="bad-element", value=tag[:60])
            return
        label = self._attribute(tag, attributes, "label", line)
        if label:
            self.element_counts[tag] += 1
            (self.tags if tag == "tag" else self.shapes).append((len(self.names) - 1, label, line))

    def _attribute(self, tag: str, attributes: dict[str, str], name: str, line: int) -> str:
        value = attributes.get(name, "")
        if not value.strip():
            text = f"<{tag}> has no attribute '{name}'.{did_you_mean(name, attributes)}"
            self.problems.add(text, line=line, column=name, kind="bad-element")
        return value

    def choose_shapes(self) -> str:
        """Return ``ignore`` stack there is no shape; otherwise note both readings with their counts."""
        if self.shapes:
            counts = self.element_counts.items()
            listed = ", ".join(f"{count} {element}" for element, count in counts if element != "tag")
            tagged = len({(row, label) for row, label, _ in self.tags})
            marked = len({(row, label) for row, label, _ in self.tags + self.shapes})
            self.problems.add(
                f"holds shapes besides {len(self.tags)} tags ({listed}); say what they mean for an image"
                f"\n  {option('shapes', 'ignore')}: {tagged} present, from tags only"
                f"\n  {option('shapes', 'present')}: {marked} present, from tags and shapes",
                kind="undeclared-shapes",
            )
        return "ignore"

    def declared(self, shapes: str) -> list[str] | None:
        """Return the labels an image can have, None when the file declares none.

        A label of type rectangle can never be a tag: without shapes it would be a category that is absent
        everywhere. Labels with a parent are the points of a skeleton.
        """
        types = {name: label_type for (name, parent), (label_type, _) in self.labels.items() if not parent}
        if shapes == "present":
            return list(types) or None
        tagged = {label for _, label, _ in self.tags}
        return [
            name for name, label_type in types.items() if label_type in TAGGABLE or name in tagged
        ] or None

    def splits(self) -> list[str]:
        """Return train, test, valid or nothing for each image; note any other word."""
        known = {**SPLITS, "default": "", "": ""}
        for word in sorted({word for word in self.subsets if word.strip().lower() not in known}):
            near = did_you_mean(word, SPLITS)
            self.problems.add(
                f"subset {word[:60]!r}; expected Train, Test, Validation or default.{near} "
                f"Add {option('subsets', 'ignore')} to draw the splits instead",
                line=self.lines[self.subsets.index(word)],
                column="subset",
                value=word[:60],
                kind="bad-split",
            )
        return [known.get(word.strip().lower(), "") for word in self.subsets]


def _image_files(
    path: Path, annotations: _Annotations, root: Path | None, check_files: bool
) -> tuple[list[str], Path]:
    """Return N image names and their folder; a project's images are in a folder per subset."""
    names = annotations.names
    images = zip(annotations.subsets, names, strict=True)
    in_subsets = [f"{subset}/{name}" if subset else name for subset, name in images]
    if in_subsets != names:
        folder = find_root(path, in_subsets, root, check_files)
        ambiguous = len(set(names)) < len(names)
        if ambiguous or any(is_file(folder, name) for name in in_subsets):
            return in_subsets, folder
    return names, find_root(path, names, root, check_files)
