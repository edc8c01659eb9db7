"""``Finding`` and ``Audit``: what was found, as CSV, text and JSON."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sarb.data.parse.messages import counted
from sarb.files import atomic_write, csv_text
from sarb.labels import LabelMatrix


class Kind(NamedTuple):
    """A kind of finding: its heading on the page, and what to do about it."""

    heading: str
    remedy: str


KINDS = {
    "exact_duplicate": Kind("Exact duplicates", "The files have the same bytes. Remove one of each pair."),
    "near_duplicate": Kind(
        "Near duplicates",
        "The same picture, resized, cropped, recompressed or mirrored, or two photos of one moment. Remove "
        "one, or at least keep both in one split.",
    ),
    "label": Kind(
        "Labels that look wrong",
        "A model that was not trained on these labels contradicts them. Look at the photo and correct the "
        "label in your table, or leave it.",
    ),
    "blurry": Kind("Blurry images", "No sharp edge anywhere. Replace the image, or keep it if it is real."),
    "dark": Kind("Dark images", "Nearly everything is dark. Replace the image, or keep it if it is real."),
    "bright": Kind("Overexposed images", "Nearly everything is white. Replace the image."),
    "blank": Kind("Blank images", "The image shows a single tone. Remove it."),
    "tiny": Kind("Tiny images", "Much smaller than the others. Find a larger version."),
    "odd": Kind("Odd images", "They resemble no other image. See whether they belong to this data set."),
    "same_category": Kind(
        "Categories that are the same",
        "Wherever both labels are known, one is present just where the other is. Merge them, unless they mean "
        "different things.",
    ),
    "contained_category": Kind(
        "Categories that contain one another",
        "Wherever both labels are known, the first is never or hardly ever present without the second. If "
        "that follows from their meaning, unknown labels can be filled in by this rule.",
    ),
    "similar_name": Kind(
        "Categories with nearly equal names", "Probably one category spelt in two ways. Merge them."
    ),
}
COLUMNS = ("file_name", "split", "kind", "score", "label", "other_file", "other_split", "detail")


class Finding(NamedTuple):
    """One thing to fix.

    Attributes:
        kind: one of ``KINDS``.
        score: 0..1, how sure it is; to be compared within a kind.
        detail: what was measured, in words.
        file_name: the image, as named in the source; empty for a category.
        split: of the image.
        label: the category.
        other_file: the other image of a pair.
        other_split: its split.
    """

    kind: str
    score: float
    detail: str
    file_name: str = ""
    split: str = ""
    label: str = ""
    other_file: str = ""
    other_split: str = ""

    @property
    def leaks(self) -> bool:
        """Whether the same picture is in two splits."""
        return bool(self.other_file) and self.split != self.other_split


@dataclass(frozen=True, eq=False)
class Images:
    """The N readable images of all splits, in the order of the splits.

    Attributes:
        names: as written in the source.
        files: where they are.
        splits: train, valid or test.
        labels: (N, C); unknown ones are 0.
    """

    names: Sequence[str]
    files: Sequence[Path]
    splits: Sequence[str]
    labels: LabelMatrix

    def __len__(self) -> int:
        return len(self.names)

    def finding(self, kind: str, row: int, score: float, detail: str, *, label: str = "") -> Finding:
        """A finding about one image."""
        return Finding(kind, score, detail, self.names[row], self.splits[row], label)

    def pair(self, kind: str, row: int, other: int, score: float, detail: str) -> Finding:
        """A finding about two images."""
        where = self.names[row], self.splits[row], "", self.names[other], self.splits[other]
        return Finding(kind, score, detail, *where)

    def contradictions(self, row: int, other: int) -> list[str]:
        """Categories that are known to be present in one image and absent in the other."""
        product: NDArray[np.int8] = self.labels.values[row] * self.labels.values[other]
        return [self.labels.categories[column] for column in np.flatnonzero(product < 0)]


@dataclass(frozen=True, eq=False)
class Audit:
    """What :func:`sarb.audit` found.

    Attributes:
        name: of the data set.
        images: the readable images.
        findings: by kind, the surest first.
        skipped: (file name, reason) of the images that could not be read.
        notes: what could not be judged, in sentences.
    """

    name: str
    images: Images
    findings: Sequence[Finding]
    skipped: Sequence[tuple[str, str]] = ()
    notes: Sequence[str] = field(default=())

    def of(self, kind: str) -> list[Finding]:
        """The findings of one kind."""
        return [finding for finding in self.findings if finding.kind == kind]

    @property
    def leaks(self) -> list[Finding]:
        """Duplicates that are in two splits."""
        return [finding for finding in self.findings if finding.leaks]

    def counts(self) -> dict[str, int]:
        """Number of findings of each kind."""
        found = Counter(finding.kind for finding in self.findings)
        return {kind: found[kind] for kind in KINDS}

    def __str__(self) -> str:
        lines = [
            f"{self.name}: {len(self.images):,} images audited, {counted(len(self.findings), 'finding')}"
        ]
        for kind, count in self.counts().items():
            across = sum(finding.leaks for finding in self.of(kind))
            more = f", {across:,} of them in two splits (leakage)" if across else ""
            lines += [f"  {count:>7,}  {KINDS[kind].heading.lower()}{more}"] if count else []
        lines += [f"  not judged: {note}" for note in self.notes]
        return "\n".join(lines)

    def to_csv(self, path: str | Path | None = None) -> str:
        """Return one row per finding as CSV text, and write it to ``path`` if given."""
        rows = ({**item._asdict(), "score": f"{item.score:.4f}"} for item in self.findings)
        text = csv_text(COLUMNS, rows)
        if path is not None:
            with atomic_write(path) as file:
                file.write(text)
        return text

    def to_json(self) -> str:
        """Return the counts as JSON."""
        content = {
            "images": len(self.images),
            "skipped": len(self.skipped),
            "leaks": len(self.leaks),
            "findings": self.counts(),
            "not_judged": list(self.notes),
        }
        return json.dumps(content, indent=2, ensure_ascii=False)
