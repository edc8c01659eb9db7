"""Scores: the predictions of a model for every image and category. Works without torch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sarb.errors import DataError
from sarb.files import atomic_write, csv_text
from sarb.handover.cleanlab import BinaryProblem, binary_problems
from sarb.handover.datasets import to_dataset
from sarb.handover.fiftyone import to_samples
from sarb.matrix import checked_names, chosen_rows, packed, unpacked

if TYPE_CHECKING:
    from sarb.labels import LabelMatrix


@dataclass(frozen=True, eq=False)
class Scores:
    """Logits of N images and C categories.

    Args:
        logits: (N, C); stored as float32 and read-only. Probability 0.5 is logit 0.
        categories: C distinct names.
        paths: N image paths as the user wrote them; ``"0"``, ``"1"`` … by default.
        skipped: (path, reason) of images that could not be read and so have no row here.

    >>> Scores([[0.0, 2.0]], ["cat", "dog"], ["a.jpg"]).top(1)
    [[('dog', 0.8807970779778823)]]
    """

    logits: NDArray[np.float32]
    categories: tuple[str, ...]
    paths: tuple[str, ...] = field(default=())
    skipped: tuple[tuple[str, str], ...] = field(default=())

    def __init__(
        self,
        logits: ArrayLike,
        categories: Sequence[str],
        paths: Sequence[str | Path] | None = None,
        skipped: Sequence[tuple[str, str]] = (),
    ) -> None:
        array = np.asarray(logits, np.float32).view()
        names, file_names = checked_names("scores", array, categories, paths)
        array.setflags(write=False)
        object.__setattr__(self, "logits", array)
        object.__setattr__(self, "categories", names)
        object.__setattr__(self, "paths", file_names)
        object.__setattr__(self, "skipped", tuple(skipped))

    @property
    def probabilities(self) -> NDArray[np.float64]:
        """(N, C) sigmoid(logits) = 1 / (1 + exp(−x))."""
        # exp of negative numbers only, so nothing overflows
        decay = np.exp(-np.abs(self.logits.astype(np.float64)))
        return np.where(self.logits >= 0, 1 / (1 + decay), decay / (1 + decay))

    @property
    def shape(self) -> tuple[int, int]:
        """(N, C)."""
        return self.logits.shape[0], self.logits.shape[1]

    def __len__(self) -> int:
        return len(self.logits)

    def __repr__(self) -> str:
        return f"Scores({self.shape[0]} images × {self.shape[1]} categories)"

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Scores)
            and self.categories == other.categories
            and self.paths == other.paths
            and np.array_equal(self.logits, other.logits)
        )

    def __hash__(self) -> int:
        return hash((self.categories, self.paths, self.logits.tobytes()))

    def take(self, index: ArrayLike) -> Scores:
        """Return the rows ``index`` (integers or a mask), in that order."""
        rows = chosen_rows(len(self), index)
        return Scores(self.logits[rows], self.categories, [self.paths[row] for row in rows])

    def top(self, k: int) -> list[list[tuple[str, float]]]:
        """Return the ``k`` most probable categories of each image as ``(name, probability)``, best first."""
        if k < 1:
            raise DataError(f"top k must be at least 1, got {k}")
        order = np.argsort(-self.logits, axis=1, kind="stable")[:, :k]
        chosen = np.take_along_axis(self.probabilities, order, axis=1)
        return [
            [(self.categories[column], float(value)) for column, value in zip(columns, values, strict=True)]
            for columns, values in zip(order, chosen, strict=True)
        ]

    def to_csv(
        self, path: str | Path | None = None, top_k: int | None = None, threshold: float | None = None
    ) -> str:
        """Return the probabilities as CSV text, and write it to ``path`` if given.

        By default the table is wide: ``file_name`` and one column per category. With ``top_k`` or
        ``threshold`` (a probability) it is long: ``file_name,label,probability``, one row per label that
        passes both.
        """
        if top_k is None and threshold is None:
            table = zip(self.paths, self.probabilities, strict=True)
            rows = ([name, *(f"{value:.6g}" for value in row)] for name, row in table)
            text = csv_text(["file_name", *self.categories], rows)
        else:
            text = csv_text(["file_name", "label", "probability"], self._passing(top_k, threshold))
        if path is not None:
            with atomic_write(path) as file:
                file.write(text)
        return text

    def _passing(self, top_k: int | None, threshold: float | None) -> list[tuple[str, str, str]]:
        """Return the rows of the long table."""
        if threshold is not None and not 0 <= threshold <= 1:
            raise DataError(f"threshold must be a probability between 0 and 1, got {threshold}")
        least = 0.0 if threshold is None else threshold
        ranked = self.top(max(1, len(self.categories)) if top_k is None else top_k)
        return [
            (file_name, name, f"{value:.6g}")
            for file_name, row in zip(self.paths, ranked, strict=True)
            for name, value in row
            if value >= least
        ]

    def to_cleanlab(self, labels: LabelMatrix) -> dict[str, BinaryProblem]:
        """Return category -> a binary problem for cleanlab over the entries whose label is known.

        Unknown labels are left out rather than taken for absent. Give scores by models that have not seen the
        labels (out-of-fold), as cleanlab requires.

        Args:
            labels: of the same images and categories.
        """
        if labels.categories != self.categories or labels.paths != self.paths:
            raise DataError("the labels are not those of the same images and categories, in the same order")
        return binary_problems(labels.values, self.probabilities, self.categories)

    def to_datasets(self, root: str | Path | None = None) -> Any:
        """Return a Hugging Face ``datasets.Dataset`` with the columns ``file_name`` and ``probability``.

        ``probability`` has a number per category, by name. With ``root``, the folder of the images, there is a
        column ``image`` as well.
        """
        return to_dataset(self.paths, self.categories, numbers={"probability": self.probabilities}, root=root)

    def to_fiftyone(self, threshold: float = 0.5, root: str | Path | None = None) -> list[Any]:
        """Return a ``fiftyone.Sample`` per image; field ``predictions`` has the categories from ``threshold`` on.

        Each has its probability as confidence. ``root`` is the folder of the images.
        """
        fields = {"predictions": self.probabilities >= threshold}
        return to_samples(self.paths, self.categories, fields, self.probabilities, root)

    def to_bytes(self) -> bytes:
        """Return the content of an ``.npz`` file that can be read without pickle."""
        return packed("logits", self.logits, self.categories, self.paths)

    def save(self, path: str | Path) -> None:
        """Write an ``.npz`` file that can be read without pickle."""
        with atomic_write(path, "wb") as file:
            file.write(self.to_bytes())

    @classmethod
    def load(cls, path: str | Path) -> Scores:
        """Read what :meth:`save` wrote; a score that is not finite is an error."""
        logits, categories, paths = unpacked(path, "logits", "f")
        if not np.isfinite(logits).all():
            raise DataError(f"{path}: 'logits' holds numbers that are not finite (NaN or infinity)")
        return cls(logits, categories, paths)
