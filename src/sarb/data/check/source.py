"""``sarb data check``: all problems of a data source, in its files, labels, splits and images."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from sarb.data import load
from sarb.data.check.entries import Entry, both_lines
from sarb.data.check.images import check_images
from sarb.data.check.outside import leaves
from sarb.data.check.problems import LEVELS, LIMIT, Finding, Findings, Problems, gather
from sarb.data.dataset import Data, Dataset
from sarb.data.parse.text import watch
from sarb.errors import DataError, data_option
from sarb.progress import Progress

#: more images without a label than this are one line for each split
FEW = 3


@dataclass
class Checked:
    """Result of ``sarb data check``; prints itself.

    Args:
        source: the source as the user wrote it.
        findings: exact counts, and the first findings of each kind as text.
        data: what could be read; None if nothing could.
        opened: number of images that were decoded.
        options: options of the data source.
    """

    source: str
    findings: Findings
    data: Data | None
    opened: int = 0
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        """Whether the data can be used for training."""
        return not self.findings.count("error")

    def __str__(self) -> str:
        paragraphs = [self._head()]
        for level in LEVELS:
            for kind in dict.fromkeys(finding.kind for finding in self.findings.of(level)):
                paragraphs.append(self._group(level, kind))
        paragraphs.append(self._summary())
        return "\n\n".join(paragraphs)

    @property
    def reading(self) -> dict[str, Any]:
        """The options that read this source: those given, and those found in the file."""
        return {**self.options, **(self.data.found_options if self.data else {})}

    def to_json(self) -> str:
        """Return everything as JSON."""
        splits = self.data.splits if self.data else {}
        content = {
            "source": self.source,
            "ok": self.ok,
            "images": {name: len(dataset) for name, dataset in splits.items()},
            "images_opened": self.opened,
            "categories": list(self.data.categories) if self.data else [],
            "counts": {level: self.findings.count(level) for level in LEVELS},
            "kinds": [
                {"level": level, "kind": kind, "count": times}
                for (level, kind), times in self.findings.counts.items()
            ],
            "findings": [asdict(finding) for level in LEVELS for finding in self.findings.of(level)],
            "summary": self._summary(),
        }
        return json.dumps(content, indent=2, ensure_ascii=False)

    def _head(self) -> str:
        if self.data is None:
            return f"{self.source}: could not be read"
        splits = self.data.splits
        images = sum(map(len, splits.values()))
        parts = ", ".join(f"{name} {len(dataset):,}" for name, dataset in splits.items())
        text = f"{self.source}: {images:,} images ({parts}), {len(self.data.categories):,} categories"
        if self.data.notes.get("undecoded"):
            return text
        known = sum(int(np.count_nonzero(dataset.labels.values)) for dataset in splits.values())
        entries = sum(dataset.labels.values.size for dataset in splits.values())
        return f"{text}, {100 * known / max(1, entries):.1f} % of the labels known"

    def _group(self, level: str, kind: str) -> str:
        shown = [finding for finding in self.findings.of(level) if finding.kind == kind]
        count = self.findings.counts[level, kind]
        rest = count - self.findings.told[level, kind]
        more = [f"  … and {rest:,} more"] if rest > 0 else []
        return "\n".join([f"{level} {kind} ({count:,})", *(f"  {finding}" for finding in shown), *more])

    def _summary(self) -> str:
        counts = {level: self.findings.count(level) for level in LEVELS}
        total = ", ".join(
            f"{count:,} {level}{'s' * (count != 1)}" for level, count in counts.items() if count
        )
        if not self.ok:
            return f"{total}: training would be wrong or impossible; fix the errors first"
        return f"{total or 'no problems found'}: ready to train"


def check(
    source: str | Path,
    *,
    open_images: bool = True,
    limit: int = LIMIT,
    progress: bool = False,
    **options: Any,
) -> Checked:
    """Check a data source without stopping at the first problem.

    Args:
        source: as for :func:`sarb.load`.
        open_images: decode every image file; False only checks that the files exist.
        limit: how many findings of a kind to keep as text; all are counted.
        progress: show progress on stderr.
        options: options of the data source.
    """
    talk = Progress(progress)
    data = None
    opened = 0
    with gather(limit) as findings:
        try:
            with talk.bar(f"reading {source}", None) as advance, watch(advance):
                data = load(source, **options)
        except DataError as error:
            for finding in error.findings or [Finding("error", "source", str(error))]:
                findings.add(finding)
        if data is not None:
            if not data.notes.get("undecoded"):
                _check_labels(data)
            if options.get("outside") != "refuse":  # those are errors already
                _check_paths(data)
            _check_overlap(data)
            if open_images:
                opened = check_images(data, talk)
    return Checked(str(source), findings, data, opened, options)


def _check_labels(data: Data) -> None:
    train = data.train.labels
    problems = Problems(data.train.source or data.name)
    if not len(train):
        problems.add("there are no training images", kind="no-training-image")
    elif not train.positives.any() or not train.negatives.any():
        word = "present" if not train.positives.any() else "absent"
        problems.add(
            f"no training label is known to be {word}, so there is nothing to learn",
            kind=f"no-{word}",
        )
    empty = _note_empty(problems, data)
    for split, dataset in data.splits.items():
        labels = dataset.labels
        for word, counts in (("present", labels.positives), ("absent", labels.negatives)):
            without = [name for name, count in zip(labels.categories, counts, strict=True) if not count]
            _note_categories(problems, split, word, [name for name in without if name not in empty])
        _note_unlabelled(problems, split, dataset)
    problems.raise_any()


def _note_empty(problems: Problems, data: Data) -> list[str]:
    """Report categories without any known label, in any split; return them."""
    known = sum(np.asarray(dataset.labels.known.sum(axis=0)) for dataset in data.splits.values())
    empty = [name for name, count in zip(data.categories, np.atleast_1d(known), strict=True) if not count]
    if len(empty) == len(data.categories):
        return []  # then no label is known at all, which is another problem
    # a table whose columns are the categories
    column = "file_column" in data.notes and "label_delimiter" not in data.notes
    hint = f"; if it is not a category, add {data_option('ignore', ','.join(empty))}" if column else ""
    for name in empty:
        problems.add(
            f"category '{name}' has neither a present nor an absent label, so it cannot be learned or measured{hint}",
            kind="category-without-label",
            level="warning",
            value=name,
        )
    return empty


def _note_categories(problems: Problems, split: str, word: str, names: list[str]) -> None:
    known = "show it" if word == "present" else "lack it"
    harm = "learned" if split == "train" else "measured"
    for name in names:
        problems.add(
            f"category '{name}': no {split} image is known to {known}, so it cannot be {harm}",
            kind=f"category-without-{word}",
            level="warning",
            value=name,
        )


def _note_unlabelled(problems: Problems, split: str, dataset: Dataset) -> None:
    rows = np.flatnonzero(~dataset.labels.known.any(axis=1)).tolist()
    together = len(rows) > FEW  # one cause: nobody has looked at them yet
    for row in rows[:1] if together else rows:
        entry = Entry(split, dataset, row)
        one = f"image '{entry.name}' ({split}) has no known label"
        all_of_them = (
            f"{len(rows):,} of {len(dataset):,} {split} images have no known label, first '{entry.name}'"
        )
        problems.add(
            all_of_them if together else one,
            kind="image-without-label",
            level="warning",
            times=len(rows) if together else 1,
            summed=together,
            **entry.where,
        )


def _check_paths(data: Data) -> None:
    """Warn about names that point outside the image folder: they do not work on another machine."""
    problems = Problems(data.train.source or data.name)
    found = [
        Entry(split, part, row)
        for split, part in data.splits.items()
        for row, name in enumerate(part.labels.paths)
        if leaves(name)
    ]
    # a table that was written to another folder: one line is enough
    everywhere = len(found) == sum(map(len, data.splits.values())) > 3
    for entry in found[:1] if everywhere else found:
        also = f"; so do all {len(found):,} names of this table" if everywhere else ""
        problems.add(
            f"'{entry.name}' {leaves(entry.name)}{also}",
            kind="path-outside-root",
            level="warning",
            column=str(data.notes.get("file_column", "file_name")),
            **entry.where,
        )
    problems.raise_any()


def _check_overlap(data: Data) -> None:
    """Report files that are in two splits: testing on training images is meaningless."""
    if len(data.splits) < 2:
        return
    problems = Problems(data.train.source or data.name)
    seen: dict[str, tuple[str, int]] = {}
    for split, dataset in data.splits.items():
        for row, path in enumerate(_files(dataset)):
            other, other_row = seen.setdefault(path, (split, row))
            if other != split:
                first = Entry(other, data.splits[other], other_row)
                second = Entry(split, dataset, row)
                problems.add(
                    f"image '{second.name}' is in {other} and in {split}{both_lines(first, second)}",
                    kind="split-overlap",
                    **second.where,
                )
    problems.raise_any()


def _files(dataset: Dataset) -> Iterable[str]:
    root = str(dataset.root)
    return (os.path.normpath(f"{root}/{name}") if name[:1] != "/" else name for name in dataset.labels.paths)
