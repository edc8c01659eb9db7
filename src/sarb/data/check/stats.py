"""``stats``: what a data set holds, counted per split, per category, per image and per pair of categories."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sarb.data.dataset import Data
from sarb.errors import DataError
from sarb.files import atomic_write
from sarb.labels import PRESENT, LabelMatrix

Counts = NDArray[np.int64]

#: entries (images × categories) looked at in one go: bounds the memory of the masks
CHUNK = 1 << 24
#: pairs are counted among this many categories, the most frequent ones: a full table of 10,000 would need
#: gigabytes
PAIRED_CATEGORIES = 2000
#: pairs that are kept, and bins of the known share of an image
PAIRS = 50
BINS = 10


def stats(data: Data) -> Stats:
    """Count everything about a data source from its labels; no image is opened.

    Pairs are counted in the training split, whose graph a network is given (if it is empty, in the next one).
    """
    parts = {"train": data.train, "valid": data.valid, "test": data.test}
    labels = {name: part.labels for name, part in parts.items() if part is not None}
    for name, matrix in labels.items():
        if matrix.categories != data.categories:
            raise DataError(f"{data.name}: the splits train and {name} do not have the same categories")
    splits = [SplitStats.of(name, matrix) for name, matrix in labels.items()]
    main = next((split for split in splits if split.images), splits[0])
    return Stats(data.name, data.categories, tuple(splits), Together.of(main, labels[main.name]), data)


@dataclass(frozen=True, eq=False)
class SplitStats:
    """Counts of one split of N images and C categories; all numbers follow from four tables.

    Attributes:
        name: train, valid or test.
        images: N.
        present: (C,) images known to show each category.
        absent: (C,) images known not to show it.
        by_positives: entry k is the number of images with k known positives.
        by_known: (C + 1,), entry k is the number of images with k known labels.
    """

    name: str
    images: int
    present: Counts
    absent: Counts
    by_positives: Counts
    by_known: Counts

    @classmethod
    def of(cls, name: str, labels: LabelMatrix) -> SplitStats:
        """Count labels (N, C), some images at a time."""
        images, categories = labels.shape
        present = np.zeros(categories, np.int64)
        known = np.zeros(categories, np.int64)
        by_positives, by_known = (np.zeros(categories + 1, np.int64) for _ in range(2))
        step = max(1, CHUNK // max(1, categories))
        for start in range(0, images, step):
            part = labels.values[start : start + step]
            shown = part == PRESENT
            present += np.count_nonzero(shown, axis=0)
            known += np.count_nonzero(part, axis=0)
            by_positives += np.bincount(np.count_nonzero(shown, axis=1), minlength=categories + 1)
            by_known += np.bincount(np.count_nonzero(part, axis=1), minlength=categories + 1)
        return cls(name, images, present, known - present, np.trim_zeros(by_positives, "b"), by_known)

    @property
    def known(self) -> Counts:
        """(C,) images about which each category is known."""
        return self.present + self.absent

    @property
    def unknown(self) -> Counts:
        """(C,) images about which each category is not known."""
        return self.images - self.known

    @property
    def known_share(self) -> float | None:
        """Share of known labels, 0 to 1; None, as all undefined numbers here, without an image."""
        return _ratio(int(self.known.sum()), self.images * len(self.present))

    @property
    def rate(self) -> NDArray[np.float64]:
        """(C,) share of presence among the known labels of each category; nan where none is known."""
        rate: NDArray[np.float64] = np.full(len(self.present), math.nan)
        return np.divide(self.present, self.known, out=rate, where=self.known > 0)

    @property
    def mean_positives(self) -> float | None:
        """Known positives of an image, mean."""
        return _ratio(int(self.present.sum()), self.images)

    @property
    def median_positives(self) -> float | None:
        """Known positives of an image, median."""
        if not self.images:
            return None
        middle = [(self.images - 1) // 2, self.images // 2]
        return float(self.by_positives.cumsum().searchsorted(middle, side="right").mean())

    @property
    def max_positives(self) -> int:
        """Known positives of an image, most."""
        return max(0, len(self.by_positives) - 1)

    @property
    def estimated_positives(self) -> float | None:
        """Estimate of the positives of an image if all labels were known: the sum of ``rate`` over
        categories.

        Right if labels are known or not by chance. A category without a known label adds nothing.
        """
        return float(np.nansum(self.rate)) if self.known.any() else None

    @property
    def without_known(self) -> int:
        """Images without any known label."""
        return int(self.by_known[0])

    @property
    def without_positive(self) -> int:
        """Images without a known positive."""
        return int(self.by_positives[0]) if len(self.by_positives) else 0

    @property
    def share_histogram(self) -> Counts:
        """(10,) images by the share of their labels that is known: 0-10 %, … 90-100 % (100 % is in the
        last).
        """
        categories = len(self.present)
        place = np.minimum(BINS * np.arange(categories + 1) // max(1, categories), BINS - 1)
        return np.bincount(place, self.by_known, minlength=BINS).astype(np.int64)


@dataclass(frozen=True)
class Pair:
    """Of ``support`` images that show ``given`` and know ``other``, ``both`` show it; ``overall``: its
    rate.
    """

    given: str
    other: str
    probability: float
    both: int
    support: int
    overall: float


@dataclass(frozen=True, eq=False)
class Together:
    """What appears together in one split, among its K most frequent categories, most frequent first.

    Attributes:
        split: its name.
        order: (K,) numbers of the categories.
        both: (K, K) images that are known to show row and column.
        given: (K, K) images that are known to show the row and where the column is known.
    """

    split: str
    order: NDArray[np.int64]
    both: Counts
    given: Counts

    @classmethod
    def of(cls, split: SplitStats, labels: LabelMatrix) -> Together:
        """Count pairs, a category at a time, in the images that show it: these are few."""
        order = np.argsort(-split.present, kind="stable")[:PAIRED_CATEGORIES]
        values = np.ascontiguousarray(labels.values[:, order])
        shown = np.asfortranarray(values == PRESENT)
        both, given = (np.zeros((len(order), len(order)), np.int64) for _ in range(2))
        for place in range(len(order)):
            images = values[shown[:, place]]
            both[place] = np.count_nonzero(images == PRESENT, axis=0)
            given[place] = np.count_nonzero(images, axis=0)
        return cls(split.name, order, both, given)

    def graph(self, count: int | None = None) -> NDArray[np.float64]:
        """P(column | row) of the ``count`` most frequent, as :meth:`LabelMatrix.cooccurrence` defines it."""
        both = self.both[:count, :count]
        given = self.given[:count, :count]
        graph = np.eye(len(both))
        return np.divide(both, given, out=graph, where=given > 0)

    def strongest(self, count: int) -> list[tuple[int, int]]:
        """Pairs of places, surest first: by the lower end of Wilson's 95 % interval, so that 1 of 1 does not
        lead.
        """
        square = 1.96**2
        share = self.graph()
        support = np.maximum(self.given, 1)
        spread = np.sqrt(square * (share * (1 - share) + square / (4 * support)) / support)
        lower = (share + square / (2 * support) - spread) / (1 + square / support)
        lower[self.both == 0] = -1
        np.fill_diagonal(lower, -1)
        best = np.argsort(-lower, axis=None, kind="stable")[:count]
        rows, columns = np.unravel_index(best, lower.shape)
        return [(int(i), int(j)) for i, j in zip(rows, columns, strict=True) if lower[i, j] >= 0]


@dataclass(frozen=True, eq=False)
class Stats:
    """What a data source holds; made by :func:`stats`. Prints itself, and saves itself as JSON or as a
    page.
    """

    name: str
    categories: tuple[str, ...]
    splits: tuple[SplitStats, ...]
    together: Together
    data: Data | None = field(default=None, repr=False)

    @property
    def main(self) -> SplitStats:
        """The split that orders categories and gives the pairs: train, unless it is empty."""
        return next(split for split in self.splits if split.name == self.together.split)

    @cached_property
    def pairs(self) -> list[Pair]:
        """The surest pairs, see :meth:`Together.strongest`."""
        pairs = []
        rate = self.main.rate
        for places in self.together.strongest(PAIRS):
            given, other = self.together.order[list(places)]
            both = int(self.together.both[places])
            support = int(self.together.given[places])
            names = self.categories[given], self.categories[other]
            pairs.append(Pair(*names, both / support, both, support, float(rate[other])))
        return pairs

    def missing(self, split: SplitStats, counts: Counts) -> list[str]:
        """Names of the categories of a split that have none of ``counts``; none for a split without
        images.
        """
        return [self.categories[index] for index in np.flatnonzero(counts == 0)] if split.images else []

    def __str__(self) -> str:
        from sarb.report.data_text import render

        return render(self)

    def to_json(self) -> str:
        """Return every number as JSON; what is undefined is ``null``."""
        content = {
            "name": self.name,
            "categories": list(self.categories),
            "splits": {split.name: self._split(split) for split in self.splits},
            "cooccurrence": {
                "split": self.together.split,
                "categories_counted": len(self.together.order),
                "pairs": [asdict(pair) for pair in self.pairs],
            },
        }
        return _writable(json.dumps(content, indent=2, ensure_ascii=False)) + "\n"

    def _split(self, split: SplitStats) -> dict[str, Any]:
        counts = zip(self.categories, split.present.tolist(), split.absent.tolist(), strict=True)
        return {
            "images": split.images,
            "known_share": split.known_share,
            "known_positives_per_image": {
                "mean": split.mean_positives,
                "median": split.median_positives,
                "max": split.max_positives,
                "images_by_count": split.by_positives.tolist(),
            },
            "estimated_positives_per_image": split.estimated_positives,
            "images_without_known_label": split.without_known,
            "images_without_known_positive": split.without_positive,
            "images_by_known_share": split.share_histogram.tolist(),
            "categories_without_known_positive": self.missing(split, split.present),
            "categories_without_known_negative": self.missing(split, split.absent),
            "per_category": [
                {
                    "category": name,
                    "present": present,
                    "absent": absent,
                    "unknown": split.images - present - absent,
                    "known_share": _ratio(present + absent, split.images),
                    "rate": _ratio(present, present + absent),
                }
                for name, present, absent in counts
            ],
        }

    def save(self, path: str | Path, *, samples: int = 24, seed: int = 0, images: bool = True) -> Path:
        """Write ``.json``, or ``.html``: a page with ``samples`` seeded random images (none with
        ``images=False``).
        """
        from sarb.report.data_page import data_page

        path = Path(path)
        if path.suffix.lower() == ".json":
            text = self.to_json()
        elif path.suffix.lower() in (".html", ".htm"):
            text = data_page(self, samples=samples, seed=seed, images=images)
        else:
            raise DataError(
                f"{path}: statistics are written as .html or .json; end the name with one of these"
            )
        with atomic_write(path) as file:
            file.write(_writable(text))
        return path


def _ratio(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def _writable(text: str) -> str:
    """Replace half characters, which a file name in another encoding leaves and UTF-8 cannot spell."""
    return text.encode("utf-8", "replace").decode("utf-8")
