"""CVAT for images 1.1: ``annotations.xml`` of a task, job or project, with tags on images."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from sarb.data.assemble import SPLITS, assemble, declared_names, find_root
from sarb.data.check.problems import Problems, fault
from sarb.data.dataset import Data
from sarb.data.parse.facts import Facts
from sarb.data.parse.messages import counted
from sarb.data.parse.text import unreadable
from sarb.data.parse.unlisted import check_unlisted, rest_label
from sarb.data.parse.xml import parse
from sarb.data.readers.image_files import is_file
from sarb.errors import check_choice, data_option, did_you_mean
from sarb.files import open_regular
from sarb.labels import PRESENT

#: elements that mark a region of an image
SHAPES = ("box", "polygon", "polyline", "points", "cuboid", "ellipse", "mask", "skeleton")
#: types of labels that can be tags; older versions of CVAT write no types
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
    """Read CVAT for images 1.1: a tagged category is present; ``unlisted`` decides about the others.

    An image without tags has been looked at, like any other: ``unlisted`` decides about all its categories.
    Categories are in the order of the labels.

    Args:
        path: ``annotations.xml``, or the unzipped folder that contains it.
        unlisted: what a category without a tag is, ``absent`` or ``unknown`` (required).
        shapes: ``ignore`` boxes, polygons and other shapes, or count their labels as ``present`` like tags
            (required if there are any).
        subsets: use the subsets of a project as the ``split`` (Train, Test, Validation; default means no
            split), or ``ignore`` them.
        categories: expected categories, ``a,b,c`` or a file with one per line, instead of the labels in the
            file.
        root: folder of the images (default: the folder of the file, or its ``images/`` if they are only
            there). A project export has a folder per subset.
        check_files: look for the image files to find their folder.

    Raises:
        DataError: all problems in the file, with their lines; a choice that the user must make, with counts.
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
    """Return the XML file; raise if the path is anything else."""
    if path.is_dir():
        if not (path / "annotations.xml").is_file():
            text = (
                "contains no annotations.xml; export from CVAT as 'CVAT for images 1.1' and unzip the export"
            )
            raise fault(path, text)
        return path / "annotations.xml"
    try:
        with open_regular(path) as file:
            zipped = file.read(2) == b"PK"
    except OSError as error:
        raise unreadable(path, error) from None
    if zipped:
        raise fault(path, "is a zip archive; unzip it and pass the annotations.xml inside")
    return path


def _facts(annotations: _Annotations, declared: list[str] | None, shapes: str) -> tuple[Facts, int]:
    """Return what is present, and the number of such entries; raise if there are none."""
    marks = annotations.tags + (annotations.shapes if shapes == "present" else [])
    if not annotations.names or not marks:
        annotations.problems.raise_any()
        text = "no image has a <tag>" if annotations.names else "contains no <image>"
        raise fault(annotations.path, text, kind="empty")
    facts = Facts(annotations.problems, declared)
    # use the number as name: an image that occurs twice must not become one row
    for number, line in enumerate(annotations.lines):
        facts.image(str(number), line=line)
    for row, label, line in marks:
        facts.say(row, label, PRESENT, line)
    return facts, len({(row, label) for row, label, _ in marks if label in facts.columns})


class _Annotations:
    """The content of the file, in order: N images, and tags and shapes as (row, label, line)."""

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
        """Handle the start of an element; raise if this is another kind of file."""
        depth = len(stack)
        tag = stack[-1]
        if depth == 1 and tag != "annotations":
            hint = "; if this is Pascal VOC, pass its folder" if tag == "annotation" else ""
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
        """Collect the name, type and parent of a label."""
        # only at this depth: attributes of a label have names too
        inside = len(stack) == 6 and stack[1] == "meta" and stack[3:5] == ["labels", "label"]
        if inside and stack[5] in ("name", "type", "parent"):
            self.label[stack[5]] += data

    def end(self, stack: list[str]) -> None:
        """Keep a label when its element ends."""
        if len(stack) != 5 or stack[1] != "meta" or stack[3:] != ["labels", "label"]:
            return
        name = self.label["name"].strip()
        parent = self.label["parent"].strip()
        line = int(self.label["line"])
        # include the parent: points of two skeletons may share a name
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
            text = (
                f"unexpected element <{tag[:60]}> in an image; expected {expected}.{did_you_mean(tag, known)}"
            )
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
        """Return ``ignore``; if there are shapes, report both choices with their counts."""
        if self.shapes:
            counts = self.element_counts.items()
            listed = ", ".join(f"{count} {element}" for element, count in counts if element != "tag")
            tagged = len({(row, label) for row, label, _ in self.tags})
            marked = len({(row, label) for row, label, _ in self.tags + self.shapes})
            self.problems.add(
                f"contains shapes ({listed}) as well as {counted(len(self.tags), 'tag')}; "
                "declare what the shapes mean:"
                f"\n  {data_option('shapes', 'ignore')}: {tagged} present, from tags only"
                f"\n  {data_option('shapes', 'present')}: {marked} present, from tags and shapes",
                kind="undeclared-shapes",
            )
        return "ignore"

    def declared(self, shapes: str) -> list[str] | None:
        """Return the labels that an image can have, or None if the file declares none.

        A label of type rectangle cannot be a tag: without shapes it would be absent everywhere. Labels with a
        parent are points of a skeleton.
        """
        types = {name: label_type for (name, parent), (label_type, _) in self.labels.items() if not parent}
        if shapes == "present":
            return list(types) or None
        tagged = {label for _, label, _ in self.tags}
        return [
            name for name, label_type in types.items() if label_type in TAGGABLE or name in tagged
        ] or None

    def splits(self) -> list[str]:
        """Return train, test, valid or an empty string for every image; report any other word."""
        known = {**SPLITS, "default": "", "": ""}
        for word in sorted({word for word in self.subsets if word.strip().lower() not in known}):
            near = did_you_mean(word, SPLITS)
            self.problems.add(
                f"unknown subset {word[:60]!r}; expected Train, Test, Validation or default.{near} "
                f"Add {data_option('subsets', 'ignore')} to draw random splits instead",
                line=self.lines[self.subsets.index(word)],
                column="subset",
                value=word[:60],
                kind="bad-split",
            )
        return [known.get(word.strip().lower(), "") for word in self.subsets]


def _image_files(
    path: Path, annotations: _Annotations, root: Path | None, check_files: bool
) -> tuple[list[str], Path]:
    """Return N image names and their folder; a project has a folder of images per subset."""
    names = annotations.names
    images = zip(annotations.subsets, names, strict=True)
    in_subsets = [f"{subset}/{name}" if subset else name for subset, name in images]
    if in_subsets != names:
        folder = find_root(path, in_subsets, root, check_files)
        ambiguous = len(set(names)) < len(names)
        if ambiguous or any(is_file(folder, name) for name in in_subsets):
            return in_subsets, folder
    return names, find_root(path, names, root, check_files)
