"""Everything wrong with a data source at once: what its reader finds, and what shows in labels, splits and
images.
"""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from sarb.data import load
from sarb.data.check.images import check_images
from sarb.data.check.problems import LEVELS, LIMIT, Finding, Findings, Problems, gather
from sarb.data.dataset import Data, Dataset
from sarb.data.parse.text import watch
from sarb.errors import DataError
from sarb.progress import Progress


@dataclass
class Checked:
    """What ``sarb data check`` found; prints itself.

    Args:
        source: as given.
        findings: with exact counts; the first of each kind as text.
        data: what could be read, None when nothing could.
        opened: number of images that were decoded.
        options: of the data source.
    """

    source: str
    findings: Findings
    data: Data | None
    opened: int = 0
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        """Whether one may train on it."""
        return not self.findings.count("error")

    def __str__(self) -> str:
        parts = [self._head()]
        for level in LEVELS:
            for kind in dict.fromkeys(finding.kind for finding in self.findings.of(level)):
                parts.append(self._group(level, kind))
        return "\n\n".join([*parts, self._summary(), *([f"next: {self.command}"] if self.ok else [])])

    @property
    def command(self) -> str:
        """The command that trains on it."""
        options = [word for key, value in self.options.items() for word in ("-o", f"{key}={value}")]
        return shlex.join(["sarb", "train", "--data", self.source, *options])

    def to_json(self) -> str:
        """Return everything as JSON."""
        counts = {level: self.findings.count(level) for level in LEVELS}
        kinds = [
            {"level": level, "kind": kind, "count": times}
            for (level, kind), times in self.findings.counts.items()
        ]
        images = {name: len(dataset) for name, dataset in self.data.splits.items()} if self.data else {}
        shown = [asdict(finding) for level in LEVELS for finding in self.findings.of(level)]
        content = {
            "source": self.source,
            "ok": self.ok,
            "images": images,
            "images_opened": self.opened,
            "categories": list(self.data.categories) if self.data else [],
            "counts": counts,
            "kinds": kinds,
            "findings": shown,
            "summary": self._summary(),
        }
        return json.dumps(content, indent=2, ensure_ascii=False)

    def _head(self) -> str:
        if self.data is None:
            return f"{self.source}: could not be read"
        splits = ", ".join(f"{name} {len(dataset):,}" for name, dataset in self.data.splits.items())
        known = sum(int(np.count_nonzero(part.labels.values)) for part in self.data.splits.values())
        size = sum(part.labels.values.size for part in self.data.splits.values())
        share = (
            ""
            if self.data.notes.get("undecoded")
            else f", {100 * known / max(1, size):.1f} % of the labels known"
        )
        images = sum(map(len, self.data.splits.values()))
        return f"{self.source}: {images:,} images ({splits}), {len(self.data.categories):,} categories{share}"

    def _group(self, level: str, kind: str) -> str:
        shown = [finding for finding in self.findings.of(level) if finding.kind == kind]
        count = self.findings.counts[level, kind]
        more = [f"  … and {count - len(shown):,} more"] if count > len(shown) else []
        return "\n".join([f"{level} {kind} ({count:,})", *(f"  {finding}" for finding in shown), *more])

    def _summary(self) -> str:
        counts = {level: self.findings.count(level) for level in LEVELS}
        said = ", ".join(f"{count:,} {level}{'s' * (count != 1)}" for level, count in counts.items() if count)
        if not self.ok:
            return f"{said}: training would be wrong or impossible; mend the errors first"
        return f"{said or 'nothing found'}: ready to train"


def check(
    source: str | Path,
    *,
    open_images: bool = True,
    limit: int = LIMIT,
    progress: bool = False,
    **options: Any,
) -> Checked:
    """Check a data source without stopping at the first fault.

    Args:
        source: as for :func:`sarb.load`.
        open_images: decode every image file; False only looks whether they exist.
        limit: findings of a kind to keep as text; all are counted.
        progress: talk to stderr.
        options: of the data source.
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
            _check_paths(data)
            _check_overlap(data)
            if open_images:
                opened = check_images(data, talk)
    return Checked(str(source), findings, data, opened, options)


def _check_labels(data: Data) -> None:
    train = data.train.labels
    problems = Problems(data.train.source or data.name)
    if not len(train):
        problems.add("no image to train on", kind="no-training-image")
    elif not train.positives.any() or not train.negatives.any():
        word = "present" if not train.positives.any() else "absent"
        problems.add(
            f"no label of any training image is known to be {word}: there is nothing to tell apart",
            kind=f"no-{word}",
        )
    for split, dataset in data.splits.items():
        labels = dataset.labels
        for word, counts in (("present", labels.positives), ("absent", labels.negatives)):
            _note_categories(
                problems, split, word, [labels.categories[i] for i in np.flatnonzero(counts == 0)]
            )
        _note_unlabelled(problems, split, dataset)
    problems.raise_any()


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
    rows = np.flatnonzero(~dataset.labels.known.any(axis=1))
    for number, row in enumerate(rows[: problems.limit].tolist()):
        last = number == problems.limit - 1
        problems.add(
            f"image '{dataset.labels.paths[row]}' ({split}) has no known label",
            kind="image-without-label",
            level="warning",
            file=dataset.source,
            line=dataset.line(row),
            value=dataset.labels.paths[row],
            times=1 + (len(rows) - problems.limit if last else 0),
        )


def _check_paths(data: Data) -> None:
    """Warn of names that leave the folder of the images: they work here and nowhere else."""
    problems = Problems(data.train.source or data.name)
    for dataset in data.splits.values():
        for row, name in enumerate(dataset.labels.paths):
            suspicious = name[:1] in ("/", "\\", "~") or ".." in name or name[1:2] == ":"
            reason = _leaves(name) if suspicious else ""
            if reason:
                problems.add(
                    f"'{name}' {reason}",
                    kind="path-outside-root",
                    level="warning",
                    file=dataset.source,
                    line=dataset.line(row),
                    column="file_name",
                    value=name,
                )
    problems.raise_any()


def _leaves(name: str) -> str:
    plain = name.replace("\\", "/")
    if plain.startswith("/") or (plain[1:3] == ":/" and plain[0].isalpha()):
        return "is an absolute path; use one relative to the folder of the images"
    if os.path.normpath(plain).split("/")[0] == "..":
        return "leaves the folder of the images by '..'"
    return ""


def _check_overlap(data: Data) -> None:
    """Note files that are in two splits: a test on training images says nothing."""
    problems = Problems(data.train.source or data.name)
    if len(data.splits) > 1:
        seen: dict[str, tuple[str, int]] = {}
        for split, dataset in data.splits.items():
            for row, path in enumerate(_places(dataset)):
                other, first = seen.setdefault(path, (split, row))
                if other != split:
                    lines = [data.splits[other].line(first), dataset.line(row)]
                    places = f" (lines {lines[0]} and {lines[1]})" if all(lines) else ""
                    problems.add(
                        f"image '{dataset.labels.paths[row]}' is in {other} and in {split}{places}",
                        kind="split-overlap",
                        file=dataset.source,
                        line=lines[1],
                        value=dataset.labels.paths[row],
                    )
    problems.raise_any()


def _places(dataset: Dataset) -> Iterable[str]:
    root = str(dataset.root)
    return (os.path.normpath(f"{root}/{name}") if name[:1] != "/" else name for name in dataset.labels.paths)
