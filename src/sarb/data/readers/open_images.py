"""Open Images: rows of image, source, label and confidence; only labels verified by people are known."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path

import numpy as np

from sarb.data.assemble import assemble, declared_names, missing_rows
from sarb.data.check.problems import Problems, fault, gathering
from sarb.data.dataset import Data, Dataset
from sarb.data.parse.facts import Facts
from sarb.data.parse.rows import full_rows
from sarb.data.parse.text import csv_rows
from sarb.data.readers.open_images_classes import chosen_names, class_names
from sarb.data.readers.open_images_layout import class_file, image_folder, label_files
from sarb.errors import check_choice, data_option, did_you_mean
from sarb.labels import UNKNOWN, encoding_table, meaning, normalise_code

COLUMNS = ("ImageID", "Source", "LabelName", "Confidence")
HUMAN = ("verification", "crowdsource-verification")
SOURCES = (*HUMAN, "machine")


@dataclass
class _Read:
    """The content of a label file; ``machine`` and ``other`` count rows that are left out."""

    problems: Problems
    facts: Facts
    machine: int = 0
    other: int = 0


def load_open_images(
    path: Path,
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

    Rows with ``Source=machine`` are predictions of a model and are left out. An image is read if it has a
    verified row for one of the categories.

    Args:
        path: a folder with the official ``…-annotations-human-imagelabels.csv`` and
            ``class-descriptions.csv``, possibly in ``train``, ``validation`` and ``test``; or one label file,
            whose images are all for training.
        conflict: read an entry that was verified as both present and absent as ``unknown``, ``present`` or
            ``absent``; by default it is an error.
        categories: display names or ids such as ``/m/0bt9lr``, ``a,b,c`` or a file with one per line, in that
            order (default: those that occur, in the order of the class descriptions).
        files: read ``boxable`` or ``all``, if a split has both ``…-imagelabels-boxable.csv`` and
            ``…-imagelabels.csv``.
        missing: ``skip`` images that were not downloaded; by default they are an ``error``.
        descriptions: file of class descriptions, if there are several.
        root: folder of the images, or of ``train``, ``validation``, ``test`` (default: ``path`` or its
            ``images``).
        charset: character set of the files, if not UTF-8.
        check_files: look for the image files.
    """
    settled = None if conflict is None else meaning("conflict", conflict)
    check_choice("value of option missing:", missing, ("error", "skip"))
    check_choice("value of option files:", files or "all", ("boxable", "all"))
    label_paths = label_files(path, files)
    home = path if path.is_dir() else path.absolute().parent
    shown = class_names(class_file(home, descriptions, label_paths), charset)
    declared = chosen_names(declared_names(categories, home / "labels.csv"), shown)
    reads = {split: _read(file, shown, declared, charset) for split, file in label_paths.items()}
    _check_overlap(list(reads.values()))
    occurring = set[str]().union(*(read.facts.columns for read in reads.values()))
    order = declared or [name for name in shown.values() if name in occurring]
    parts: dict[str, Dataset] = {}
    for split, read in reads.items():
        folder = image_folder(home, root, split, label_paths[split], read.facts.images)
        parts[split] = _dataset(split, read, settled, order, folder)
    notes: dict[str, object] = {
        "files": {split: file.name for split, file in label_paths.items()},
        "conflict": conflict,
        "missing": missing,
        "machine_rows": sum(read.machine for read in reads.values()),
        "other_category_rows": sum(read.other for read in reads.values()),
    }
    if check_files or missing == "skip":
        parts = _existing(parts, missing == "skip", notes)
    if "test" in parts:
        notes["test_split"] = label_paths["test"].name
    test = parts.get("test", parts["train"].take([]))
    return Data(parts["train"], test, parts.get("valid"), "open_images", notes)


def _read(path: Path, shown: dict[str, str], declared: list[str] | None, charset: str | None) -> _Read:
    """Read the rows of a label file; there may be tens of millions."""
    rows = csv_rows(path, charset=charset)
    problems = Problems(path)
    read = _Read(problems, Facts(problems, declared))
    strangers: dict[str, list[int]] = {}  # label -> first line, times
    chosen = set(shown.values() if declared is None else declared)
    wanted = {label: name for label, name in shown.items() if name in chosen}
    states = {code: label for code, label in encoding_table("binary").items() if code}
    width, fields = _header(path, next(rows, (1, []))[1])
    images = read.facts.images
    for line, row in full_rows(problems, rows, width):
        name, source, label, confidence = fields(row)
        state = states.get(confidence) or states.get(normalise_code(confidence))
        if source == "machine":
            read.machine += 1
        elif source not in HUMAN:
            _note(problems, line, "Source", source, ", ".join(SOURCES), SOURCES)
        elif state is None:
            _note(problems, line, "Confidence", confidence, "1 (verified present) or 0 (verified absent)", ())
        elif label in wanted:
            image = images[name] if name in images else read.facts.image(name, "", line)
            read.facts.say(image, wanted[label], state, line)
        elif label in shown:
            read.other += 1
        else:
            strangers.setdefault(label, [line, 0])[1] += 1
    for label, (line, times) in strangers.items():
        expected = f"an id from the class descriptions ({times:,} times, first here)"
        _note(problems, line, "LabelName", label, expected, shown)
    _check_images(read)
    return read


def _header(path: Path, header: list[str]) -> tuple[int, Callable[[list[str]], tuple[str, ...]]]:
    """Return the number of columns, and a function that picks the four fields of a row."""
    header = [name.strip() for name in header]
    lacking = [name for name in COLUMNS if name not in header]
    if lacking or "XMin" in header:
        near = did_you_mean(lacking[0], [name[:60] for name in header]) if lacking else ""
        reason = f"has no column '{lacking[0]}'.{near}" if lacking else "is for boxes, not image labels."
        text = f"the header {','.join(header)[:80]!r} {reason} Expected {','.join(COLUMNS)}"
        raise fault(path, text, line=1, kind="bad-header")
    return len(header), itemgetter(*[header.index(name) for name in COLUMNS])


def _note(
    problems: Problems, line: int, column: str, value: str, expected: str, known: Iterable[str]
) -> None:
    # comparing with 20,000 ids is slow, so do it only for the values that are shown
    near = did_you_mean(value[:60], known) if problems.count < problems.limit else ""
    kind = "unknown-category" if column == "LabelName" else "bad-value"
    text = f"value {value[:60]!r}; expected {expected}.{near}"
    problems.add(text, kind=kind, line=line, column=column, value=value[:60], expected=expected)


def _check_images(read: _Read) -> None:
    """Report image ids that cannot be file names, and a file without any usable row."""
    for number, name in enumerate(read.facts.images):
        if not name.isalnum() and not re.fullmatch(r"[\w.-]+", name):
            text = f"value {name[:60]!r} cannot be an image name"
            line = read.facts.lines[number]
            read.problems.add(text, kind="bad-name", line=line, column="ImageID", value=name[:60])
    if not read.facts.images and not read.problems.count:
        reason = "it has no rows"
        if read.other:
            reason = f"no row is about the chosen categories, {read.other:,} are about others"
        elif read.machine:
            reason = f"all {read.machine:,} rows have Source=machine"
        read.problems.add(f"no verified labels: {reason}", kind="empty")


def _check_overlap(reads: Sequence[_Read]) -> None:
    """Report images in two splits; ``sarb data check`` looks for them itself."""
    gathered = gathering()
    if gathered is not None and gathered.detailed:
        return
    for number, read in enumerate(reads):
        facts = read.facts
        for other in reads[:number]:
            for name in sorted(facts.images.keys() & other.facts.images.keys()):
                other_line = other.facts.lines[other.facts.images[name]]
                text = f"image '{name[:60]}' is also in {other.problems.source}, line {other_line}"
                line = facts.lines[facts.images[name]]
                read.problems.add(text, kind="split-overlap", line=line, value=name[:60])


def _dataset(split: str, read: _Read, conflict: int | None, order: list[str], folder: Path) -> Dataset:
    """Return one split, with all categories; a category that this split never mentions is unknown."""
    values, categories = read.facts.matrix(UNKNOWN, conflict)
    if read.problems.found.counts["error", "conflict"]:
        hint = f"to read contradictory rows as unknown, add {data_option('conflict', 'unknown')}"
        read.problems.add(hint, kind="conflict")
    if categories != order:
        columns = {name: column for column, name in enumerate(categories)}
        if categories:
            # five times faster than assigning to chosen columns
            values = np.take(values, [columns.get(name, 0) for name in order], axis=1)
        else:
            values = np.zeros((len(values), len(order)), np.int8)
        values[:, [column for column, name in enumerate(order) if name not in columns]] = UNKNOWN
    names = [f"{image}.jpg" for image in read.facts.images][: len(values)]
    lines = read.facts.lines[: len(values)]
    name = f"open_images_{split}"
    return assemble(read.problems, names, values, order, root=folder, lines=lines, name=name).train


def _existing(parts: dict[str, Dataset], skip: bool, notes: dict[str, object]) -> dict[str, Dataset]:
    """Look for the image files; people often download only some of them."""
    kept: dict[str, Dataset] = {}
    missing: dict[str, int] = {}
    for split, dataset in parts.items():
        rows = missing_rows(dataset)
        problems = Problems(dataset.source or dataset.name)
        kept[split] = dataset.take(np.delete(np.arange(len(dataset)), rows)) if skip and rows else dataset
        missing[split] = len(rows)
        text = f"{len(rows):,} of {len(dataset):,} images are not in {dataset.root}"
        if rows and not skip:
            hint = f"to skip images that were not downloaded, add {data_option('missing', 'skip')}"
            problems.add(f"{text}; {hint}", kind="missing-file")
        elif rows and not len(kept[split]):
            level = "error" if split == "train" else "warning"
            problems.add(f"{text}; none are left", kind="missing-file", level=level)
        problems.raise_any()
    notes["missing_images"] = missing
    return kept
