"""``stats``: label counts of a data set per split, category, image and pair of categories."""

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
from sarb.report.data_text import render

Counts = NDArray[np.int64]

#: entries (images × categories) to count at a time, to limit memory
CHUNK = 1 << 24
#: pairs are counted among this many of the most frequent categories: a full table of 10,000 takes gigabytes
PAIRED_CATEGORIES = 2000
#: how many pairs to keep
PAIRS = 50
#: number of bins for the share of known labels per image
BINS = 10


def stats(data: Data) -> Stats:
    """Count the labels of a data source; no image is opened.

    Pairs are counted in the training split, whose co-occurrence graph the networks use. If it is empty, they
    are counted in the first split with images.
    """
    parts = {"train": data.train, "valid": data.valid, "test": data.test}
    labels = {name: part.labels for name, part in parts.items() if part is not None}
    for name, matrix in labels.items():
        if matrix.categories != data.categories:
            raise DataError(f"{data.name}: the splits train and {name} have different categories")
    splits = [SplitStats.of(name, matrix) for name, matrix in labels.items()]
    main = next((split for split in splits if split.images), splits[0])
    return Stats(data.name, data.categories, tuple(splits), Together.of(main, labels[main.name]), data)


@dataclass(frozen=True, eq=False)
class SplitStats:
    """Label counts of one split with N images and C categories.

    Attributes:
        name: train, valid or test.
        images: N.
        present: (C,) number of known positives per category.
        absent: (C,) number of known negatives per category.
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
        """Count labels (N, C) in chunks of images."""
        images, categories = labels.shape
        present = np.zeros(categories, np.int64)
        known = np.zeros(categories, np.int64)
        by_positives = np.zeros(categories + 1, np.int64)
        by_known = np.zeros(categories + 1, np.int64)
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
        """(C,) number of known labels per category."""
        return self.present + self.absent

    @property
    def unknown(self) -> Counts:
        """(C,) number of unknown labels per category."""
        return self.images - self.known

    @property
    def known_share(self) -> float | None:
        """Share of known labels, 0 to 1; like all undefined numbers here, None without images."""
        return _ratio(int(self.known.sum()), self.images * len(self.present))

    @property
    def rate(self) -> NDArray[np.float64]:
        """(C,) share of positives among the known labels of each category; nan if none is known."""
        rate: NDArray[np.float64] = np.full(len(self.present), math.nan)
        return np.divide(self.present, self.known, out=rate, where=self.known > 0)

    @property
    def mean_positives(self) -> float | None:
        """Mean number of known positives per image."""
        return _ratio(int(self.present.sum()), self.images)

    @property
    def median_positives(self) -> float | None:
        """Median number of known positives per image."""
        if not self.images:
            return None
        middle = [(self.images - 1) // 2, self.images // 2]
        return float(self.by_positives.cumsum().searchsorted(middle, side="right").mean())

    @property
    def max_positives(self) -> int:
        """Largest number of known positives in an image."""
        return max(0, len(self.by_positives) - 1)

    @property
    def estimated_positives(self) -> float | None:
        """Estimated mean number of positives per image, known or not: the sum of ``rate`` over categories.

        Unbiased if labels are missing at random. A category without known labels adds nothing.
        """
        return float(np.nansum(self.rate)) if self.known.any() else None

    @property
    def without_known(self) -> int:
        """Number of images without a known label."""
        return int(self.by_known[0])

    @property
    def without_positive(self) -> int:
        """Number of images without a known positive."""
        return int(self.by_positives[0]) if len(self.by_positives) else 0

    @property
    def share_histogram(self) -> Counts:
        """(10,) number of images by their share of known labels: 0-10 %, … 90-100 % (incl. 100 %)."""
        categories = len(self.present)
        bins = np.minimum(BINS * np.arange(categories + 1) // max(1, categories), BINS - 1)
        return np.bincount(bins, self.by_known, minlength=BINS).astype(np.int64)


@dataclass(frozen=True)
class Pair:
    """P(``other`` present | ``given`` present), counted on known labels.

    Attributes:
        given: a category.
        other: another category.
        probability: both / support.
        both: number of images that show both.
        support: number of images that show ``given`` and in which ``other`` is known.
        overall: share of positives among all known labels of ``other``.
    """

    given: str
    other: str
    probability: float
    both: int
    support: int
    overall: float


@dataclass(frozen=True, eq=False)
class Together:
    """Co-occurrence counts of one split for its K most frequent categories, most frequent first.

    Attributes:
        split: name of the split.
        order: (K,) indices of the categories.
        both: (K, K) number of images known to show both the row's and the column's category.
        given: (K, K) number of images known to show the row's category in which the column's is known.
    """

    split: str
    order: NDArray[np.int64]
    both: Counts
    given: Counts

    @classmethod
    def of(cls, split: SplitStats, labels: LabelMatrix) -> Together:
        """Count pairs, one category at a time, in the few images that show it."""
        order = np.argsort(-split.present, kind="stable")[:PAIRED_CATEGORIES]
        values = np.ascontiguousarray(labels.values[:, order])
        shown = np.asfortranarray(values == PRESENT)
        both = np.zeros((len(order), len(order)), np.int64)
        given = np.zeros_like(both)
        for rank in range(len(order)):
            images = values[shown[:, rank]]
            both[rank] = np.count_nonzero(images == PRESENT, axis=0)
            given[rank] = np.count_nonzero(images, axis=0)
        return cls(split.name, order, both, given)

    def graph(self, count: int | None = None) -> NDArray[np.float64]:
        """Return P(column | row) of the ``count`` most frequent, as :meth:`LabelMatrix.cooccurrence` does."""
        both = self.both[:count, :count]
        given = self.given[:count, :count]
        return np.divide(both, given, out=np.eye(len(both)), where=given > 0)

    def strongest(self, count: int) -> list[tuple[int, int]]:
        """Return pairs of indices into ``order``, most reliable first.

        They are sorted by the lower end of Wilson's 95 % interval, so that 1 of 1 does not come first.
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
    """Label statistics of a data source, made by :func:`stats`."""

    name: str
    categories: tuple[str, ...]
    splits: tuple[SplitStats, ...]
    together: Together
    data: Data | None = field(default=None, repr=False)

    @property
    def main(self) -> SplitStats:
        """The split by which categories are sorted and pairs are counted: train, unless it is empty."""
        return next(split for split in self.splits if split.name == self.together.split)

    @cached_property
    def pairs(self) -> list[Pair]:
        """The most reliable pairs, see :meth:`Together.strongest`."""
        pairs = []
        rate = self.main.rate
        for ranks in self.together.strongest(PAIRS):
            given, other = self.together.order[list(ranks)]
            both = int(self.together.both[ranks])
            support = int(self.together.given[ranks])
            pairs.append(
                Pair(
                    given=self.categories[given],
                    other=self.categories[other],
                    probability=both / support,
                    both=both,
                    support=support,
                    overall=float(rate[other]),
                )
            )
        return pairs

    def missing(self, split: SplitStats, counts: Counts) -> list[str]:
        """Names of the categories whose ``counts`` are 0; an empty list for a split without images."""
        if not split.images:
            return []
        return [self.categories[index] for index in np.flatnonzero(counts == 0)]

    def __str__(self) -> str:
        return render(self)

    def to_json(self) -> str:
        """Return all numbers as JSON; undefined numbers are ``null``."""
        content = {
            "name": self.name,
            "categories": list(self.categories),
            "splits": {split.name: self._split_content(split) for split in self.splits},
            "cooccurrence": {
                "split": self.together.split,
                "categories_counted": len(self.together.order),
                "pairs": [asdict(pair) for pair in self.pairs],
            },
        }
        return writable(json.dumps(content, indent=2, ensure_ascii=False)) + "\n"

    def _split_content(self, split: SplitStats) -> dict[str, Any]:
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

    def save(self, path: str | Path) -> Path:
        """Write the JSON; :func:`sarb.workflows.statistics.save_stats` can also write a page."""
        path = Path(path)
        if path.suffix.lower() != ".json":
            raise DataError(f"{path}: statistics are saved as .json; use a name that ends in .json")
        with atomic_write(path) as file:
            file.write(self.to_json())
        return path


def _ratio(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def writable(text: str) -> str:
    """Replace lone surrogates (from file names in another encoding), which UTF-8 cannot encode."""
    return text.encode("utf-8", "replace").decode("utf-8")
