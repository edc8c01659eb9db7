"""NUS-WIDE: a file of 0s and 1s per concept, whose lines are those of a list of images."""

from __future__ import annotations

import os
import re
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sarb.data.assemble import assemble
from sarb.data.check.problems import Problems, fault, warn_size
from sarb.data.dataset import Data
from sarb.data.parse.text import read_text, text_lines
from sarb.errors import check_choice, did_you_mean
from sarb.labels import UNKNOWN, encoding_table, meaning, normalise_code

CONCEPTS = 81
SIZES = {"train": 161_789, "test": 107_859, "all": 269_648}
#: folders of the official set and of its copies, in the root or in Groundtruth; any case
FOLDERS = ("groundtruth", "traintestlabels", "alllabels", "alllabels81", "imagelist", "conceptslist")
LISTS = {"train": "TrainImagelist.txt", "test": "TestImagelist.txt", "all": "Imagelist.txt"}
ENDS = {"train": "_Train", "test": "_Test", "all": ""}
#: images looked for to find their folder
TRIED = 100


@dataclass
class _Files:
    """What there is: lists by split (train, test, all), label files by split and concept."""

    place: Path
    charset: str | None
    lists: dict[str, Path] = field(default_factory=dict)
    labels: dict[str, dict[str, Path]] = field(default_factory=lambda: {split: {} for split in LISTS})
    concepts: Path | None = None

    def complete(self, *splits: str) -> bool:
        """Whether there is a list and labels for each of these."""
        return all(split in self.lists and self.labels[split] for split in splits)

    def names(self, split: str) -> list[str]:
        """Return the images of a list, one per line, with forward slashes."""
        if not self.lists[split].is_file():
            raise fault(self.lists[split], "no such list of images", kind="missing-file")
        lines = _lines(read_text(self.lists[split], self.charset))
        if not lines:
            raise fault(self.lists[split], "the list of images is empty", kind="empty")
        return [line.strip().replace("\\", "/") for line in lines]


@dataclass
class _Part:
    """Images with label files of their own, ``labels``; they are in ``listing`` after line ``start``."""

    labels: str
    listing: Path
    names: list[str]
    start: int = 0


def load_nus_wide(
    place: Path,
    *,
    damaged: str | None = None,
    order: str | None = None,
    image_list: Path | None = None,
    root: Path | None = None,
    charset: str | None = None,
) -> Data:
    """Read NUS-WIDE: 1 is present, 0 absent; the 81 concepts in the order of ``Concepts81.txt``, else
    alphabetical.

    ``TrainTestLabels`` with both lists are the official split. Without them ``AllLabels`` are read.

    Args:
        place: the folder with ``Groundtruth``, ``ImageList`` and ``ConceptsList``, or with their files
            directly.
        damaged: ``unknown`` makes an entry that is neither 1 nor 0 unknown, with a warning: the published
            ``Labels_lake_Train.txt`` holds ``-1130179``. Left out, it is an error.
        order: ``train_first`` when labels of train and test come with only one list of all images, and its
            first lines are the training images. That is documented nowhere, so it has to be said.
        image_list: the list of all images, when it is not ``ImageList/Imagelist.txt``.
        root: folder of the images; by default ``Flickr``, ``images`` or the place itself, where they are.
        charset: of files that are not UTF-8.
    """
    if damaged is not None:
        meaning("damaged", damaged, ("unknown",))
    if order is not None:
        check_choice("value of option order:", order, ("train_first",))
    files = _find(place, image_list, charset)
    parts = _parts(files, order)
    for part in parts:
        warn_size(f"NUS-WIDE {part.labels}", SIZES[part.labels], len(part.names), part.listing)
    concepts = _concepts(files, [part.labels for part in parts])
    matrices, broken = zip(
        *(_matrix(files, part, concepts, damaged is not None) for part in parts), strict=True
    )
    splits = [part.labels for part in parts for _ in part.names]
    if splits[0] == "all":
        splits = _membership(files, parts[0].names)
    names = [name for part in parts for name in part.names]
    folder, names = _locate(place, root, names)
    lines = [line for part in parts for line in range(part.start + 1, part.start + len(part.names) + 1)]
    notes: dict[str, object] = {
        "labels": "AllLabels" if parts[0].labels == "all" else "TrainTestLabels",
        "order": order,
        "damaged": damaged,
        "damaged_entries": sum(broken),
    }
    if "test" in splits:
        notes["test_split"] = (
            "train first" if order and parts[0].listing == parts[-1].listing else LISTS["test"]
        )
    data = assemble(
        Problems(place),
        names,
        np.concatenate(matrices),
        concepts,
        root=folder,
        splits=splits,
        lines=lines,
        name="nus_wide",
        notes=notes,
    )
    sources = (replace(data.train, source=parts[0].listing), replace(data.test, source=parts[-1].listing))
    return replace(data, train=sources[0], test=sources[1])


def _find(place: Path, image_list: Path | None, charset: str | None) -> _Files:
    """Look for the official file names in the official folders and in the place itself."""
    if not place.is_dir():
        raise fault(place, "not a folder; give the one with Groundtruth and ImageList", kind="bad-layout")
    files = _Files(place, charset)
    problems = Problems(place)
    folders = [place]
    for folder in (
        place,
        *(path for path in place.iterdir() if path.name.lower() == "groundtruth" and path.is_dir()),
    ):
        folders += sorted(path for path in folder.iterdir() if path.name.lower() in FOLDERS and path.is_dir())
    for path in (path for folder in folders for path in sorted(folder.glob("*.[tT][xX][tT]"))):
        lowered = path.name.lower()
        slot = files.lists
        key = ""
        match = re.fullmatch(r"labels_(.+?)(_train|_test)?\.txt", path.name, re.IGNORECASE)
        if match:
            slot = files.labels[(match[2] or "_all")[1:].lower()]
            key = match[1]
        elif lowered.endswith("imagelist.txt"):
            key = lowered.removesuffix("imagelist.txt") or "all"
        elif lowered == "concepts81.txt":
            files.concepts = files.concepts or path
        if key and slot.setdefault(key, path) != path:
            problems.add(f"there is also {slot[key]}; keep one of them", kind="two-files", file=path)
    problems.raise_any()
    if image_list is not None:
        given = image_list.expanduser()
        files.lists["all"] = given if given.is_file() else place / given
    return files


def _parts(files: _Files, order: str | None) -> list[_Part]:
    """Decide which label files belong to which list."""
    if files.complete("train", "test"):
        return [_Part(split, files.lists[split], files.names(split)) for split in ("train", "test")]
    if files.complete("all"):
        return [_Part("all", files.lists["all"], files.names("all"))]
    if files.labels["train"] and files.labels["test"] and "all" in files.lists:
        return _one_list(files, order)
    if files.complete("train") and not files.labels["test"] and "test" not in files.lists:
        return [_Part("train", files.lists["train"], files.names("train"))]
    if not any(files.labels.values()):
        text = "no label file in it: expected Groundtruth/TrainTestLabels/Labels_<concept>_Train.txt and _Test.txt, or "
        raise fault(files.place, f"{text}Groundtruth/AllLabels/Labels_<concept>.txt", kind="bad-layout")
    lists = [LISTS[split] for split, found in files.labels.items() if found and split not in files.lists]
    labels = [f"Labels_<concept>{ENDS[split]}.txt" for split in files.lists if not files.labels[split]]
    raise fault(
        files.place,
        f"incomplete, there is no {' and no '.join([*lists, *labels])}. Lists are published apart, in "
        'ImageList.zip; a list of all images can be named with -o image_list=FILE (Python: image_list="FILE")',
        kind="bad-layout",
    )


def _one_list(files: _Files, order: str | None) -> list[_Part]:
    """Divide the list of all images by the lengths of the label files, once somebody has said the order."""
    path = files.lists["all"]
    names = files.names("all")
    sizes = dict[str, int]()
    for split in ("train", "test"):
        lengths = Counter(len(read_column(file, files.charset)[0]) for file in files.labels[split].values())
        sizes[split] = lengths.most_common(1)[0][0]
    said = f"{sizes['train']:,} lines of labels for train and {sizes['test']:,} for test"
    if sum(sizes.values()) != len(names):
        raise fault(path, f"{len(names):,} images, but {said}", kind="bad-length")
    if order is None:
        raise fault(
            files.place,
            f"{said}, but only one list of all images, {path}, and nothing says which are which. Get "
            f"{LISTS['train']} and {LISTS['test']} from ImageList.zip, or, if you know that it is so, add"
            f'\n  -o order=train_first (Python: order="train_first"): its first {sizes["train"]:,} images are for '
            f"training, the other {sizes['test']:,} for testing",
            kind="undeclared-order",
        )
    first = sizes["train"]
    return [_Part("train", path, names[:first]), _Part("test", path, names[first:], first)]


def _concepts(files: _Files, splits: list[str]) -> list[str]:
    """Return the concepts in order; note those without a file and files without a concept."""
    path = files.concepts
    concepts = sorted({concept for split in splits for concept in files.labels[split]})
    problems = Problems(path or files.place)
    if path is not None:
        first: dict[str, int] = {}
        for line, text in text_lines(path, files.charset):
            name = text.strip()
            if first.setdefault(name, line) != line:
                problems.add(f"'{name[:60]}' is also on line {first[name]}", kind="duplicate-name", line=line)
        concepts = list(first)
    if len(concepts) != CONCEPTS:
        problems.add(
            f"{len(concepts)} concepts, the official set has {CONCEPTS}: results cannot be compared",
            kind="official-size",
            level="warning",
            value=str(len(concepts)),
            expected=str(CONCEPTS),
        )
    for split, found in ((split, files.labels[split]) for split in splits):
        unused = [name for name in found if name not in concepts]
        for name in (name for name in concepts if name not in found):
            text = f"no file Labels_{name[:60]}{ENDS[split]}.txt in {next(iter(found.values())).parent}"
            problems.add(
                f"{text}.{did_you_mean(name[:60], unused)}", kind="missing-category", value=name[:60]
            )
        for name in unused:
            text = f"'{name}' is not in {path}.{did_you_mean(name, concepts)}"
            problems.add(text, kind="unknown-category", file=found[name], value=name)
    problems.raise_any()
    return concepts


def _matrix(files: _Files, part: _Part, concepts: list[str], forgiving: bool) -> tuple[NDArray[np.int8], int]:
    """Return labels (N, C) and the number of damaged entries; the column of a file that does not fit stays
    unknown.
    """
    size = len(part.names)
    broken = 0
    values = np.full((size, len(concepts)), UNKNOWN, np.int8)
    for column, concept in enumerate(concepts):
        path = files.labels[part.labels].get(concept)
        if path is None:
            continue
        problems = Problems(path)
        codes, strange = read_column(path, files.charset)
        if len(codes) == size:
            values[:, column] = codes
            broken += len(strange)
            _note_strange(problems, strange, size, forgiving)
        else:
            problems.add(f"{len(codes):,} lines, but {size:,} images in {part.listing}", kind="bad-length")
        problems.raise_any()
    return values, broken


def _note_strange(problems: Problems, strange: dict[int, str], size: int, forgiving: bool) -> None:
    # one line in a hundred is damage; more is another encoding, which must not become "unknown"
    few = len(strange) <= max(1, size // 100)
    for line, text in strange.items():
        value = text.strip()[:60]
        level = "error"
        kind = "bad-value"
        said = '; add -o damaged=unknown (Python: damaged="unknown") to make it unknown' if few else ""
        if forgiving and few:
            level = "warning"
            kind = "damaged"
            said = "; it was made unknown"
        text = f"value {value!r}; expected 1 or 0{said}"
        problems.add(text, kind=kind, level=level, line=line, value=value, expected="1 or 0")


def read_column(path: Path, charset: str | None = None) -> tuple[NDArray[np.int8], dict[int, str]]:
    """Return labels (N,) of a file with 1 or 0 on each line, and line number -> text of what is neither.

    21 million lines are read: a plain file is taken as bytes, only another one line by line.
    """
    text = read_text(path, charset)
    table = encoding_table("binary")
    plain = np.frombuffer(
        (text.replace("\r\n", "\n").replace(" ", "").rstrip("\n") + "\n").encode(), np.uint8
    )
    codes = plain[::2]
    if (
        len(plain) % 2 == 0
        and (plain[1::2] == ord("\n")).all()
        and ((codes == ord("0")) | (codes == ord("1"))).all()
    ):
        return np.where(codes == ord("1"), np.int8(table["1"]), np.int8(table["0"])), {}
    lines = _lines(text)
    labels = [table.get(normalise_code(line) or "blank") for line in lines]
    strange = {number: lines[number - 1] for number, label in enumerate(labels, 1) if label is None}
    return np.array([UNKNOWN if label is None else label for label in labels], np.int8), strange


def _lines(text: str) -> list[str]:
    """Return all lines, blank ones too since they count, but not the blank end of the file."""
    plain = text.replace("\r\n", "\n").replace("\r", "\n").rstrip()
    return plain.split("\n") if plain else []


def _membership(files: _Files, names: list[str]) -> list[str]:
    """Return the split of every image by the lists of train and test; nothing where they are not both
    there.
    """
    problems = Problems(files.lists["all"])
    if not {"train", "test"} <= set(files.lists):
        text = f"{LISTS['train']} and {LISTS['test']} are not both there, so the official test images are not known"
        problems.add(text, kind="official-split", level="warning")
        problems.raise_any()
        return [""] * len(names)
    split = dict.fromkeys(files.names("train"), "train")
    for line, name in enumerate(files.names("test"), 1):
        if split.setdefault(name, "test") == "train":
            text = f"'{name[:60]}' is also in {files.lists['train']}"
            problems.add(text, kind="split-overlap", file=files.lists["test"], line=line, value=name[:60])
    for line, name in enumerate(names, 1):
        if name not in split:
            text = f"'{name[:60]}' is in neither {LISTS['train']} nor {LISTS['test']}"
            problems.add(text, kind="no-split", line=line, value=name[:60])
    problems.raise_any()
    return [split.get(name, "") for name in names]


def _locate(place: Path, root: Path | None, names: list[str]) -> tuple[Path, list[str]]:
    """Return the folder of the images, and their names in it: some copies have them all in one folder."""
    folders = [path for path in (place / "Flickr", place / "images", place) if path.is_dir()]
    if root is not None:
        given = root.expanduser()
        folders = [given if given.is_absolute() or given.is_dir() else place / given]
    for folder in folders:
        tried = [name for name in names[:TRIED] if name and "\0" not in name]
        if any(os.path.isfile(folder / name) for name in tried):  # noqa: PTH113 - a name that is too long is no error
            return folder, names
        if any(os.path.isfile(folder / name.rsplit("/", 1)[-1]) for name in tried):  # noqa: PTH113
            return folder, [name.rsplit("/", 1)[-1] for name in names]
    return folders[0], names
