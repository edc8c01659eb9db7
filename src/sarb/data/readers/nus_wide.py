"""NUS-WIDE: one file of 0s and 1s per concept, with one line for every image of a list."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sarb.data.assemble import assemble
from sarb.data.check.problems import Problems, warn_size
from sarb.data.dataset import Data
from sarb.data.parse.text import text_lines
from sarb.data.readers.nus_wide_column import read_column
from sarb.data.readers.nus_wide_layout import (
    ENDS,
    LISTS,
    Files,
    Part,
    choose_parts,
    find_files,
    locate_images,
)
from sarb.errors import check_choice, data_option, did_you_mean
from sarb.labels import UNKNOWN, meaning

CONCEPTS = 81
SIZES = {"train": 161_789, "test": 107_859, "all": 269_648}


def load_nus_wide(
    path: Path,
    *,
    damaged: str | None = None,
    order: str | None = None,
    image_list: Path | None = None,
    root: Path | None = None,
    charset: str | None = None,
) -> Data:
    """Read NUS-WIDE: 1 is present, 0 absent.

    The 81 concepts are in the order of ``Concepts81.txt`` or, without it, in alphabetical order.
    ``TrainTestLabels`` with both image lists give the official split; otherwise ``AllLabels`` are read.

    Args:
        path: the folder with ``Groundtruth``, ``ImageList`` and ``ConceptsList``, or with their files.
        damaged: ``unknown`` reads an entry that is neither 1 nor 0 as unknown, with a warning; by default it
            is an error. The published ``Labels_lake_Train.txt`` contains ``-1130179``.
        order: ``train_first`` if there are labels for train and test but only one list of all images, with
            the training images first. This order is not documented, so you must confirm it.
        image_list: the list of all images, if it is not ``ImageList/Imagelist.txt``.
        root: folder of the images (default: ``Flickr``, ``images`` or ``path`` itself).
        charset: character set of the files, if not UTF-8.
    """
    if damaged is not None:
        meaning("damaged", damaged, ("unknown",))
    if order is not None:
        check_choice("value of option order:", order, ("train_first",))
    files = find_files(path, image_list, charset)
    parts = choose_parts(files, order)
    for part in parts:
        warn_size(f"NUS-WIDE {part.labels}", SIZES[part.labels], len(part.names), part.listing)
    concepts = _concepts(files, [part.labels for part in parts])
    matrices = [_matrix(files, part, concepts, damaged is not None) for part in parts]
    splits = _splits(files, parts)
    folder, names = locate_images(path, root, [name for part in parts for name in part.names])
    notes: dict[str, object] = {
        "labels": "AllLabels" if parts[0].labels == "all" else "TrainTestLabels",
        "order": order,
        "damaged": damaged,
        "damaged_entries": sum(broken for _, broken in matrices),
    }
    if "test" in splits:
        one_list = parts[0].listing == parts[-1].listing
        notes["test_split"] = "train first" if order and one_list else LISTS["test"]
    data = assemble(
        Problems(path),
        names,
        np.concatenate([values for values, _ in matrices]),
        concepts,
        root=folder,
        splits=splits,
        lines=[line for part in parts for line in part.lines],
        name="nus_wide",
        notes=notes,
    )
    train = replace(data.train, source=parts[0].listing)
    return replace(data, train=train, test=replace(data.test, source=parts[-1].listing))


def _concepts(files: Files, splits: list[str]) -> list[str]:
    """Return the concepts in order; report concepts without a file and files without a concept."""
    path = files.concepts
    concepts = sorted({concept for split in splits for concept in files.labels[split]})
    problems = Problems(path or files.folder)
    if path is not None:
        first: dict[str, int] = {}
        for line, text in text_lines(path, files.charset):
            name = text.strip()
            if first.setdefault(name, line) != line:
                problems.add(f"'{name[:60]}' is also on line {first[name]}", kind="duplicate-name", line=line)
        concepts = list(first)
    if len(concepts) != CONCEPTS:
        problems.add(
            f"{len(concepts)} concepts, but the official set has {CONCEPTS}: results cannot be compared",
            kind="official-size",
            level="warning",
            value=str(len(concepts)),
            expected=str(CONCEPTS),
        )
    for split in splits:
        _compare_concepts(problems, concepts, files.labels[split], ENDS[split])
    problems.raise_any()
    return concepts


def _compare_concepts(problems: Problems, concepts: list[str], files: dict[str, Path], end: str) -> None:
    """Report concepts without a label file, and label files without a concept."""
    unused = [name for name in files if name not in concepts]
    for name in (name for name in concepts if name not in files):
        text = f"no file Labels_{name[:60]}{end}.txt in {next(iter(files.values())).parent}"
        near = did_you_mean(name[:60], unused)
        problems.add(f"{text}.{near}", kind="missing-category", value=name[:60])
    for name in unused:
        text = f"'{name}' is not in {problems.source}.{did_you_mean(name, concepts)}"
        problems.add(text, kind="unknown-category", file=files[name], value=name)


def _matrix(files: Files, part: Part, concepts: list[str], forgiving: bool) -> tuple[NDArray[np.int8], int]:
    """Return labels (N, C) and the number of damaged entries.

    If a file has the wrong length, report it; its column is unknown.
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
            problems.add(
                f"has {len(codes):,} lines, but {part.listing} has {size:,} images", kind="bad-length"
            )
        problems.raise_any()
    return values, broken


def _note_strange(problems: Problems, strange: dict[int, str], size: int, forgiving: bool) -> None:
    # up to 1 % is damage; more must be another encoding, which should not be read as unknown
    few = len(strange) <= max(1, size // 100)
    for line, text in strange.items():
        value = text.strip()[:60]
        expected = "1 or 0"
        message = f"value {value!r}; expected {expected}"
        if forgiving and few:
            message += "; read as unknown"
            problems.add(message, kind="damaged", level="warning", line=line, value=value, expected=expected)
        else:
            message += f"; add {data_option('damaged', 'unknown')} to read it as unknown" if few else ""
            problems.add(message, kind="bad-value", line=line, value=value, expected=expected)


def _splits(files: Files, parts: list[Part]) -> list[str]:
    """Return the split of every image."""
    if parts[0].labels == "all":
        return _membership(files, parts[0].names)
    return [part.labels for part in parts for _ in part.names]


def _membership(files: Files, names: list[str]) -> list[str]:
    """Return the split of every image, from the lists for train and test; empty if either is missing."""
    problems = Problems(files.lists["all"])
    if not {"train", "test"} <= set(files.lists):
        lists = f"{LISTS['train']} or {LISTS['test']}"
        text = f"{lists} is missing, so the official test split is not known"
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
