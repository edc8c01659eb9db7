"""Open Images: rows of image, source, label and confidence; what a person verified is known, the rest is
not.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path

import numpy as np

from sarb.data.assemble import SPLITS, assemble, declared_names, missing_rows
from sarb.data.check.problems import Problems, fault, gathering
from sarb.data.dataset import Data, Dataset
from sarb.data.parse.facts import Facts
from sarb.data.parse.text import CHUNK, csv_rows
from sarb.errors import DataError, check_choice, did_you_mean
from sarb.labels import UNKNOWN, encoding_table, meaning, normalise_code

COLUMNS = ("ImageID", "Source", "LabelName", "Confidence")
HUMAN = ("verification", "crowdsource-verification")
SOURCES = (*HUMAN, "machine")
LABEL_FILE = re.compile(
    r"(?:oidv\d+-)?(train|validation|val|test)-annotations-human-imagelabels(-boxable)?\.csv"
)
CLASS_FILE = re.compile(r"(?:oidv\d+-)?class-descriptions(?:-boxable)?\.csv")
FOLDERS = ("", "train", "validation", "val", "test", "annotations", "metadata")
IMAGES = {"train": ("train",), "valid": ("validation", "val", "valid"), "test": ("test",)}


@dataclass
class _Split:
    """A label file and what its rows say."""

    problems: Problems
    facts: Facts
    machine: int = 0
    other: int = 0


def load_open_images(
    place: Path,
    *,
    conflict: str | None = None,
    categories: str | None = None,
    files: str | None = None,
    missing: str = "error",
    descriptions: Path | None = None,
    root: Path | None = None,
    charset: str | None = None,
    check_files: bool = True,
) -> Data:
    """Read Open Images V4 to V7: verified 1 is present, verified 0 absent, no row unknown.

    Rows with ``Source=machine`` are not knowledge and are left out. An image is read when it has a verified
    row about a category that is read.

    Args:
        place: a folder with the official ``…-annotations-human-imagelabels.csv`` and
            ``class-descriptions.csv``, or with these in ``train``, ``validation``, ``test``; or one label
            file, then all images are for training.
        conflict: an entry verified as both is ``unknown``, ``present`` or ``absent``; left out, it is an
            error.
        categories: display names or ids such as ``/m/0bt9lr``, ``a,b,c`` or a file with one per line, in
            that order; by default those that occur, in the order of the class descriptions.
        files: ``boxable`` or ``all``, when a split has ``…-imagelabels-boxable.csv`` and
            ``…-imagelabels.csv``.
        missing: ``skip`` leaves out images that were not downloaded; by default they are an ``error``.
        descriptions: the class descriptions, when it is not plain to see which.
        root: folder of the images, or of ``train``, ``validation``, ``test``; by default the place or its
            ``images``.
        charset: of files that are not UTF-8.
        check_files: look for the image files.
    """
    settled = None if conflict is None else meaning("conflict", conflict)
    check_choice("value of option missing:", missing, ("error", "skip"))
    check_choice("value of option files:", files or "all", ("boxable", "all"))
    found = _label_files(place, files)
    home = place if place.is_dir() else place.absolute().parent
    shown = _class_names(_class_file(home, descriptions, found), charset)
    declared = _declared(declared_names(categories, home / "labels.csv"), shown)
    splits = {split: _read(path, shown, declared, charset) for split, path in found.items()}
    _check_overlap(splits)
    occurring = set[str]().union(*(split.facts.columns for split in splits.values()))
    order = declared or [name for name in shown.values() if name in occurring]
    folders = {split: _image_folder(home, root, split, read) for split, read in splits.items()}
    parts = {split: _dataset(split, read, settled, order, folders[split]) for split, read in splits.items()}
    notes: dict[str, object] = {
        "files": {split: path.name for split, path in found.items()},
        "conflict": conflict,
        "missing": missing,
        "machine_rows": sum(split.machine for split in splits.values()),
        "other_category_rows": sum(split.other for split in splits.values()),
    }
    if check_files or missing == "skip":
        parts = _existing(parts, missing == "skip", notes)
    notes |= {"test_split": found["test"].name} if "test" in found else {}
    test = parts.get("test", parts["train"].take([]))
    return Data(parts["train"], test, parts.get("valid"), "open_images", notes)


def _label_files(place: Path, files: str | None) -> dict[str, Path]:
    """Return split -> its label file; a file for the boxable categories and one for all are two readings."""
    if not place.is_dir():
        return {"train": place}
    found: dict[str, dict[str, list[Path]]] = {}
    for path in _files(place):
        if match := LABEL_FILE.fullmatch(path.name):
            kinds = found.setdefault(SPLITS[match[1]], {"boxable": [], "all": []})
            kinds["boxable" if match[2] else "all"].append(path)
    if "train" not in found:
        text = "no train-annotations-human-imagelabels.csv in it; to read another label file, give that file"
        raise fault(place, text, kind="bad-layout")
    chosen = dict[str, Path]()
    doubt = ""
    for split in (split for split in IMAGES if split in found):
        kinds = {kind: paths for kind, paths in found[split].items() if paths}
        paths = kinds.get(files or "", next(iter(kinds.values())))
        if len(paths) > 1:
            several = ", ".join(map(str, paths))
            raise fault(place, f"several label files for {split}: {several}; keep one", kind="two-files")
        for kind, (path, *_) in kinds.items() if len(kinds) > 1 and files is None else ():
            doubt += f'\n  -o files={kind} (Python: files="{kind}"): {path}, {_rows(path):,} rows'
        chosen[split] = paths[0]
    if doubt:
        raise fault(
            place,
            f"label files for two sets of categories; say which to read{doubt}",
            kind="undeclared-files",
        )
    return chosen


def _files(place: Path) -> list[Path]:
    return [path for folder in FOLDERS for path in sorted((place / folder).glob("*.csv")) if path.is_file()]


def _rows(path: Path) -> int:
    with path.open("rb") as file:
        return max(0, sum(block.count(b"\n") for block in iter(lambda: file.read(CHUNK), b"")) - 1)


def _class_file(home: Path, given: Path | None, found: Mapping[str, Path]) -> Path:
    """Return the class descriptions: those of the boxable categories only where all label files are."""
    if given is not None:
        return given.expanduser() if given.expanduser().is_file() else home / given
    places = [home, home.parent] if home.name in FOLDERS else [home]
    every = dict.fromkeys(
        path for folder in places for path in _files(folder) if CLASS_FILE.fullmatch(path.name)
    )
    boxable = all(path.stem.endswith("-boxable") for path in found.values())
    paths = [path for path in every if path.stem.endswith("-boxable") == boxable] or list(every)
    if len(paths) != 1:
        text = (
            f"several class descriptions: {', '.join(map(str, paths))}"
            if paths
            else "no class-descriptions.csv"
        )
        text += '; name it with -o descriptions=FILE (Python: descriptions="FILE")'
        raise fault(home, text, kind="class-descriptions")
    return paths[0]


def _class_names(path: Path, charset: str | None) -> dict[str, str]:
    """Return id -> display name, in order; a name that several ids have gets the id: ``Bishop
    (/m/01b7b)``.
    """
    problems = Problems(path)
    names = dict[str, str]()
    lines = dict[str, int]()
    for line, row in csv_rows(path, charset=charset):
        if line == 1 and row[0].strip() == "LabelName":
            continue
        label, name = map(str.strip, row) if len(row) == 2 else ("", "")
        if not label.startswith("/") or not name:
            problems.add(f"{row!r:.60}; expected an id and a name: /m/0bt9lr,Dog", kind="bad-row", line=line)
        elif names.setdefault(label, name) != name:
            text = f"'{label[:60]}' is '{name[:60]}' here and '{names[label][:60]}' on line {lines[label]}"
            problems.add(text, kind="conflict", line=line)
        lines.setdefault(label, line)
    problems.raise_any()
    if not names:
        raise fault(path, "no class in it; expected lines such as /m/0bt9lr,Dog", kind="empty")
    times = Counter(names.values())
    return {label: f"{name} ({label})" if times[name] > 1 else name for label, name in names.items()}


def _declared(names: list[str] | None, shown: dict[str, str]) -> list[str] | None:
    """Return the display names of the categories that an option names by name or id."""
    known = dict.fromkeys([*shown, *shown.values()])
    wrong = list[str]()
    for name in (name for name in names or () if name not in known):
        several = " or ".join(text for label, text in shown.items() if text == f"{name} ({label})")
        near = f" Choose {several}." if several else did_you_mean(name, known)
        wrong.append(f"option categories: '{name[:60]}' is not in the class descriptions.{near}")
    result = [shown.get(name, name) for name in names or ()]
    if wrong or len(set(result)) < len(result):
        raise DataError(
            "\n".join(wrong) or "option categories: one is named twice, by its id and by its name"
        )
    return None if names is None else result


def _read(path: Path, shown: dict[str, str], declared: list[str] | None, charset: str | None) -> _Split:
    """Read the rows of a label file, tens of millions of them."""
    rows = csv_rows(path, charset=charset)
    problems = Problems(path)
    read = _Split(problems, Facts(problems, declared))
    strangers = dict[str, list[int]]()
    chosen = set(shown.values() if declared is None else declared)
    wanted = {label: name for label, name in shown.items() if name in chosen}
    states = {code: label for code, label in encoding_table("binary").items() if code}
    width, fields = _header(path, next(rows, (1, []))[1])
    images = read.facts.images
    say = read.facts.say
    for line, row in rows:
        if len(row) != width:
            problems.add(f"{len(row)} fields, the header has {width}", line=line, kind="bad-row")
            continue
        name, source, label, confidence = fields(row)
        state = states.get(confidence) or states.get(normalise_code(confidence))
        if source == "machine":
            read.machine += 1
        elif source not in HUMAN:
            _note(problems, line, "Source", source, ", ".join(SOURCES), SOURCES)
        elif state is None:
            _note(problems, line, "Confidence", confidence, "1 (verified present) or 0 (verified absent)", ())
        elif label in wanted:
            say(
                images[name] if name in images else read.facts.image(name, "", line),
                wanted[label],
                state,
                line,
            )
        elif label in shown:
            read.other += 1
        else:
            strangers.setdefault(label, [line, 0])[1] += 1
    for label, (line, times) in strangers.items():
        expected = f"an id of the class descriptions ({times:,} times, first here)"
        _note(problems, line, "LabelName", label, expected, shown)
    _check_images(read)
    return read


def _header(path: Path, header: list[str]) -> tuple[int, Callable[[list[str]], tuple[str, ...]]]:
    """Return the number of columns, and what takes the four fields out of a row."""
    header = [name.strip() for name in header]
    lacking = [name for name in COLUMNS if name not in header]
    if lacking or "XMin" in header:
        near = did_you_mean(lacking[0], [name[:60] for name in header]) if lacking else ""
        why = f"no column '{lacking[0]}'.{near}" if lacking else "boxes, not labels."
        text = f"the header {','.join(header)[:80]!r} has {why} Expected {','.join(COLUMNS)}"
        raise fault(path, text, line=1, kind="bad-header")
    return len(header), itemgetter(*[header.index(name) for name in COLUMNS])


def _note(
    problems: Problems, line: int, column: str, value: str, expected: str, known: Iterable[str]
) -> None:
    # comparing with 20,000 ids takes a while, and no more than these are shown
    near = did_you_mean(value[:60], known) if problems.count < problems.limit else ""
    kind = "unknown-category" if column == "LabelName" else "bad-value"
    text = f"value {value[:60]!r}; expected {expected}.{near}"
    problems.add(text, kind=kind, line=line, column=column, value=value[:60], expected=expected)


def _check_images(read: _Split) -> None:
    """Note ids that cannot be the name of a file, and a file from which nothing is known."""
    for number, name in enumerate(read.facts.images):
        if not name.isalnum() and not re.fullmatch(r"[\w.-]+", name):
            text = f"value {name[:60]!r} cannot be the name of an image"
            line = read.facts.lines[number]
            read.problems.add(text, kind="bad-name", line=line, column="ImageID", value=name[:60])
    if not read.facts.images and not read.problems.count:
        reason = (
            f"all {read.machine:,} rows have Source=machine, which is not knowledge"
            if read.machine
            else "no row"
        )
        reason = (
            f"no row about the categories asked for, {read.other:,} about others" if read.other else reason
        )
        read.problems.add(f"nothing is known: {reason}", kind="empty")


def _check_overlap(splits: dict[str, _Split]) -> None:
    """Note images in two splits; ``sarb data check`` finds them by itself."""
    found = gathering()
    reads = [(read.facts, read.problems) for read in splits.values()]
    for number, (facts, problems) in enumerate(reads if not (found and found.detailed) else ()):
        for other, theirs in reads[:number]:
            for name in sorted(facts.images.keys() & other.images.keys()):
                text = (
                    f"image '{name[:60]}' is also in {theirs.source}, line {other.lines[other.images[name]]}"
                )
                problems.add(
                    text, kind="split-overlap", line=facts.lines[facts.images[name]], value=name[:60]
                )


def _dataset(split: str, read: _Split, conflict: int | None, order: list[str], folder: Path) -> Dataset:
    """Return the images of a split with all categories; one that this split never names is unknown."""
    values, categories = read.facts.matrix(UNKNOWN, conflict)
    if read.problems.found.counts["error", "conflict"]:
        hint = 'to read contradicting rows all the same, add -o conflict=unknown (Python: conflict="unknown")'
        read.problems.add(hint, kind="conflict")
    if categories != order:
        place = {name: number for number, name in enumerate(categories)}
        index = [place.get(name, 0) for name in order]
        # writing into chosen columns takes five times as long
        values = (
            np.take(values, index, axis=1) if categories else np.zeros((len(values), len(order)), np.int8)
        )
        values[:, [number for number, name in enumerate(order) if name not in place]] = UNKNOWN
    names = [f"{image}.jpg" for image in read.facts.images][: len(values)]
    lines = read.facts.lines[: len(values)]
    return assemble(
        read.problems, names, values, order, root=folder, lines=lines, name=f"open_images_{split}"
    ).train


def _image_folder(home: Path, root: Path | None, split: str, read: _Split) -> Path:
    """Return the first usual folder with one of the images; it is enough to look until the first is found."""
    match = LABEL_FILE.fullmatch(Path(read.problems.source).name)
    words = IMAGES[SPLITS[match[1]] if match else split]
    given = root.expanduser() if root is not None else home
    bases = [home, home / "images"] if root is None else [given if given.is_dir() else home / given]
    places = [base / word for base in bases for word in words] + bases[::-1]
    for folder in (folder for folder in places if folder.is_dir()):
        with os.scandir(folder) as entries:
            if any(entry.name[:-4] in read.facts.images for entry in entries if entry.name.endswith(".jpg")):
                return folder
    return next((folder for folder in places if folder.is_dir()), home)


def _existing(parts: dict[str, Dataset], skip: bool, notes: dict[str, object]) -> dict[str, Dataset]:
    """Look for the image files; most people download only some of them."""
    kept = dict[str, Dataset]()
    missing = dict[str, int]()
    for split, dataset in parts.items():
        rows = missing_rows(dataset)
        problems = Problems(dataset.source or dataset.name)
        kept[split] = dataset.take(np.delete(np.arange(len(dataset)), rows)) if skip and rows else dataset
        missing[split] = len(rows)
        if rows and not (skip and len(kept[split])):
            hint = 'to leave out what was not downloaded, add -o missing=skip (Python: missing="skip")'
            said = f"{len(rows):,} of {len(dataset):,} images are not in {dataset.root}"
            text = f"{said}; {'none is left' if skip else hint}"
            problems.add(text, kind="missing-file", level="warning" if skip and split != "train" else "error")
        problems.raise_any()
    notes["missing_images"] = missing
    return kept
