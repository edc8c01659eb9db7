"""LabelMatrix and Targets: what is known about each image and category.

A label is **+1 present, -1 absent, 0 unknown**. Only this module converts the codes of other formats to and
from these three, and only this module turns them into targets for a loss.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sarb.counts import pair_counts, rates
from sarb.errors import ConfigError, DataError, check_choice, check_share, unknown_name
from sarb.files import atomic_write
from sarb.handover.cleanlab import class_lists
from sarb.handover.datasets import to_dataset
from sarb.handover.fiftyone import to_samples
from sarb.matrix import checked_names, chosen_rows, packed, row_blocks, unpacked

if TYPE_CHECKING:
    from torch import Tensor

PRESENT = 1
ABSENT = -1
UNKNOWN = 0

#: code in a file -> label; the empty string is a blank cell
ENCODINGS: dict[str, dict[str, int]] = {
    "signed": {"1": PRESENT, "-1": ABSENT, "0": UNKNOWN},
    "binary": {"1": PRESENT, "0": ABSENT, "": UNKNOWN},
    "minus_one_unknown": {"1": PRESENT, "0": ABSENT, "-1": UNKNOWN},
    "words": {
        "present": PRESENT,
        "absent": ABSENT,
        "unknown": UNKNOWN,
        "yes": PRESENT,
        "no": ABSENT,
        "?": UNKNOWN,
        "": UNKNOWN,
        "true": PRESENT,
        "false": ABSENT,
    },
}

#: the value of an option such as ``difficult=unknown`` -> label
MEANINGS: dict[str, int] = {"present": PRESENT, "absent": ABSENT, "unknown": UNKNOWN}
#: words used together: a file that writes "yes" also writes "no" and "?"
_FAMILIES = (("present", "absent", "unknown"), ("yes", "no", "?"), ("true", "false", ""))


def encoding_table(encoding: str) -> dict[str, int]:
    """Return the code table of a named encoding, or of the user's own words.

    Own words are written ``PRESENT/ABSENT`` or ``PRESENT/ABSENT/UNKNOWN``, for example ``Ja/Nein``. A blank and
    ``?`` are unknown unless they have another meaning: in ``x/`` a blank is absent.
    """
    if "/" in encoding:
        return _own_table(encoding)
    if encoding not in ENCODINGS:
        hint = "or your own words, PRESENT/ABSENT[/UNKNOWN]"
        raise DataError(f"{unknown_name('encoding', encoding, ENCODINGS)}; {hint}")
    return ENCODINGS[encoding]


def _own_table(encoding: str) -> dict[str, int]:
    words = [normalise_code(word) for word in encoding.split("/", 2)]
    if not words[0] or len(set(words)) < len(words):
        raise DataError(
            f"encoding '{encoding}': expected different words for present, absent and unknown, such as Ja/Nein"
        )
    table = dict(zip(words, MEANINGS.values(), strict=False))
    return {**table, **{code: UNKNOWN for code in ("", "?") if code not in table}}


def normalise_code(text: str) -> str:
    """Rewrite a cell the way ``ENCODINGS`` writes it: ``' +1.0 '`` -> ``'1'``."""
    text = text.strip().lower()
    if text in ("1", "0", "-1", ""):
        return text
    try:
        number = float(text)
    except ValueError:
        return text
    return str(int(number)) if number in (-1, 0, 1) else text


def meaning(option: str, word: str, allowed: Sequence[str] = tuple(MEANINGS)) -> int:
    """Return the label that the value of an option means: ``meaning("difficult", "unknown")`` is 0."""
    check_choice(f"value of option {option}:", word, allowed)
    return MEANINGS[word]


def word_of(label: int) -> str:
    """Return the word for a label: present, absent or unknown."""
    return next(word for word, meant in MEANINGS.items() if meant == label)


def not_a_label(value: Any) -> str:
    """Return the message for a value that is none of the three labels."""
    return (
        f"a label must be 1 (present), -1 (absent) or 0 (unknown), got {value}; "
        "convert other codes with LabelMatrix.from_codes"
    )


def code_table(encoding: str, **changes: int) -> dict[str, int]:
    """Return a named encoding with some codes changed; ``blank`` is the code '' and ``minus_one`` is '-1'."""
    codes = {"blank": "", "minus_one": "-1"}
    return {**encoding_table(encoding), **{codes[name]: label for name, label in changes.items()}}


def own_spelling(encoding: str, times: Mapping[str, int]) -> dict[str, str]:
    """Return how a file writes present, absent and unknown.

    Args:
        encoding: of the file.
        times: text in the file -> how often it occurs. The most frequent text of a label is chosen; a label
            that does not occur gets the text that goes with the others.
    """
    table = encoding_table(encoding)
    codes: dict[int, Counter[str]] = {label: Counter() for label in MEANINGS.values()}
    for text, count in times.items():
        if count and (label := table.get(normalise_code(text))) is not None:
            codes[label][text] += count
    seen = {label: texts.most_common(1)[0][0] for label, texts in codes.items() if texts}
    usual = _usual_codes(encoding, [normalise_code(text) for text in seen.values()])
    model = next((text for label, text in seen.items() if text and label != UNKNOWN), "")
    return {
        word: seen[label] if label in seen else _in_the_style_of(model, usual[label])
        for word, label in MEANINGS.items()
    }


def _usual_codes(encoding: str, seen: Sequence[str]) -> dict[int, str]:
    """Return label -> code for labels that do not occur in a file."""
    table = encoding_table(encoding)
    codes = {
        label: next(code for code, meant in table.items() if meant == label) for label in MEANINGS.values()
    }
    if encoding == "words":
        family = next((words for words in _FAMILIES if set(words[:2]) & set(seen)), _FAMILIES[0])
        return dict(zip(codes, family, strict=True))
    if "/" in encoding:  # as the user wrote them
        return {**codes, **dict(zip(codes, encoding.split("/", 2), strict=False))}
    return codes


def _in_the_style_of(model: str, code: str) -> str:
    """Write a code like another one of the same file: ``Yes`` goes with ``No``, ``1.0`` with ``0.0``.

    >>> _in_the_style_of("YES", "no"), _in_the_style_of("1.0", "0"), _in_the_style_of("yes", "")
    ('NO', '0.0', '')
    """
    text = model.strip()
    if code.lstrip("-").isdigit():
        return f"{code}.0" if text.endswith(".0") else code
    if not code.islower():
        return code
    if text.isupper():
        return code.upper()
    return code.capitalize() if text.istitle() else code


def readings(codes: Mapping[str, int]) -> dict[str, dict[str, int]]:
    """Count the labels that normalised codes would mean in each encoding that has all of them.

    ``codes`` maps code -> how often it occurs. The error for a file without a declared encoding shows these
    counts.
    """
    meanings: dict[str, dict[str, int]] = {}
    for name, table in ENCODINGS.items():
        if all(code in table for code in codes):
            count = {PRESENT: 0, ABSENT: 0, UNKNOWN: 0}
            for code, times in codes.items():
                count[table[code]] += times
            meanings[name] = {"present": count[PRESENT], "absent": count[ABSENT], "unknown": count[UNKNOWN]}
    return meanings


class Targets(NamedTuple):
    """Targets of a loss: ``value`` in [0, 1] and ``weight`` >= 0, both (B, C). Weight 0 gives no loss.

    Methods work on targets and weights instead of label codes, so a blended target 1-alpha cannot be mistaken
    for "unknown" or "absent".
    """

    value: Tensor
    weight: Tensor

    @classmethod
    def of(cls, labels: Tensor | LabelMatrix | ArrayLike, dtype: Any = None) -> Targets:
        """Convert labels (B, C) in {-1, 0, +1}: present (1, 1), absent (0, 1), unknown (0, 0).

        Accepts a tensor, a :class:`LabelMatrix` or anything that NumPy can convert to an array.
        """
        import torch

        if isinstance(labels, LabelMatrix):
            labels = labels.values
        tensor = labels if isinstance(labels, torch.Tensor) else torch.from_numpy(np.array(labels))
        if dtype is None:
            dtype = tensor.dtype if tensor.is_floating_point() else torch.float32
        return cls((tensor > 0).to(dtype), (tensor != 0).to(dtype))

    @property
    def present(self) -> Tensor:
        """(B, C) mask of the entries known to be present; blended targets do not count."""
        return (self.value == 1) & (self.weight > 0)


def _one_positive(values: NDArray[np.int8], lots: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Mask of the known positive with the largest lot of each image (n, C)."""
    lots = np.where(values == PRESENT, lots, -1.0)
    largest = lots.max(axis=1, keepdims=True, initial=-1.0)
    mask: NDArray[np.bool_] = (lots == largest) & (largest >= 0)
    return mask


@dataclass(frozen=True)
class LabelMatrix:
    """Labels of N images and C categories.

    Args:
        values: (N, C) integers in {-1, 0, +1}; stored as int8 and read-only.
        categories: C distinct names.
        paths: N image paths as the user wrote them; ``"0"``, ``"1"`` … by default.

    >>> LabelMatrix([[1, 0], [-1, 1]], ["cat", "dog"]).known_share
    0.75
    """

    values: NDArray[np.int8]
    categories: tuple[str, ...]
    paths: tuple[str, ...] = field(default=())

    def __init__(
        self, values: ArrayLike, categories: Sequence[str], paths: Sequence[str] | None = None
    ) -> None:
        array = np.asarray(values)
        names, file_names = checked_names("labels", array, categories, paths)
        for rows in row_blocks(array):
            wrong = rows[(rows != PRESENT) & (rows != ABSENT) & (rows != UNKNOWN)]
            if wrong.size:
                raise DataError(not_a_label(wrong[0]))
        array = array.astype(np.int8)
        array.setflags(write=False)
        object.__setattr__(self, "values", array)
        object.__setattr__(self, "categories", names)
        object.__setattr__(self, "paths", file_names)

    @classmethod
    def from_codes(
        cls, codes: ArrayLike, encoding: str, categories: Sequence[str], paths: Sequence[str] | None = None
    ) -> LabelMatrix:
        """Convert a matrix of codes (numbers or text) in a named encoding."""
        table = encoding_table(encoding)
        array = np.asarray(codes)
        values = np.zeros(array.shape, np.int8)
        for code in np.unique(array.astype(str)):
            spelled = "" if code == "nan" else normalise_code(str(code))
            if spelled not in table:
                accepted = ", ".join(repr(key) for key in table)
                raise DataError(
                    f"code {code!r} is not part of encoding '{encoding}'; expected one of {accepted}"
                )
            values[array.astype(str) == code] = table[spelled]
        return cls(values, categories, paths)

    def to_codes(self, encoding: str, codes: Mapping[str, str] | None = None) -> NDArray[np.str_]:
        """Return the matrix as text (N, C) in a named encoding.

        Args:
            encoding: a key of ``ENCODINGS``.
            codes: the text for "present", "absent" and "unknown", for an encoding that allows several.
        """
        spelled = codes or own_spelling(encoding, {})
        words = np.array([spelled["absent"], spelled["unknown"], spelled["present"]])
        return words[self.values.astype(np.int8) + 1]

    def __len__(self) -> int:
        return len(self.values)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, LabelMatrix)
            and self.categories == other.categories
            and self.paths == other.paths
            and np.array_equal(self.values, other.values)
        )

    def __hash__(self) -> int:
        return hash((self.categories, self.paths, self.values.tobytes()))

    def __repr__(self) -> str:
        images, categories = self.values.shape
        return f"LabelMatrix({images} images × {categories} categories, {100 * self.known_share:.1f} % known)"

    @property
    def shape(self) -> tuple[int, int]:
        """(N, C)."""
        return self.values.shape[0], self.values.shape[1]

    @property
    def known(self) -> NDArray[np.bool_]:
        """(N, C) mask of the known entries."""
        known: NDArray[np.bool_] = self.values != UNKNOWN
        return known

    @property
    def known_share(self) -> float:
        """Fraction of known entries, 0 to 1 (0 for an empty matrix)."""
        return float(np.count_nonzero(self.values)) / max(1, self.values.size)

    @property
    def positives(self) -> NDArray[np.int64]:
        """(C,) number of images known to show each category."""
        return np.asarray((self.values == PRESENT).sum(0), np.int64)

    @property
    def negatives(self) -> NDArray[np.int64]:
        """(C,) number of images known not to show each category."""
        return np.asarray((self.values == ABSENT).sum(0), np.int64)

    def hide(self, known: float = 1.0, seed: int = 0, single_positive: bool = False) -> LabelMatrix:
        """Keep each entry with probability ``known``; make the others unknown.

        With ``single_positive`` instead, keep one known positive of each image, any with the same probability, and
        nothing else: the setting of the single-positive literature. An image without a known positive keeps
        nothing.

        The mask of ``known`` is ``numpy.random.RandomState(seed).random_sample((N, C)) < known`` over the whole
        matrix, as in the authors' code, so it can be compared with published masks. It is drawn block by block, which
        gives the same numbers without holding all N · C of them in memory.
        """
        check_share("known", known)
        if single_positive and known < 1:
            raise ConfigError(["known and single_positive are two ways to hide labels: give one of them"])
        random = np.random.RandomState(seed)
        hidden = LabelMatrix(self.values, self.categories, self.paths)
        hidden.values.setflags(write=True)  # a fresh copy that nobody else holds
        for rows in row_blocks(hidden.values):
            lots = random.random_sample(rows.shape)
            # 0 is unknown; twice as fast as indexing with a mask
            rows *= _one_positive(rows, lots) if single_positive else lots < known
        hidden.values.setflags(write=False)
        return hidden

    def take(self, index: ArrayLike) -> LabelMatrix:
        """Return the rows ``index`` (integers or a mask), in that order."""
        rows = chosen_rows(len(self), index)
        return LabelMatrix(self.values[rows], self.categories, [self.paths[row] for row in rows])

    def cooccurrence(self, smoothing: float = 0.0, counts: str = "known") -> NDArray[np.float64]:
        """Graph A (C, C): A_ij = P(j present | i present), diagonal 1, from known labels only.

        A_ij = (n_ij + κ π_j) / (d_ij + κ), where n_ij is the number of images in which i and j are known to
        be present; d_ij the number in which i is present and j is **known** (``counts="known"``) or in which
        i is present (``counts="plain"``, which underestimates when few labels are known); π_j the share of
        present among the known entries of j; and κ is ``smoothing``. 0/0 is 0; a category without a known
        positive gets an identity row.
        """
        if counts not in ("known", "plain"):
            raise DataError(unknown_name("counts rule", counts, ("known", "plain")))
        if smoothing < 0:
            raise DataError(f"smoothing must be at least 0, got {smoothing}")
        categories = self.shape[1]
        rate = rates(self.values) if smoothing else np.zeros(categories)
        graph = np.zeros((categories, categories))
        for rows, both, given in pair_counts(self.values):
            positives = np.diagonal(both, rows.start)[:, None]
            above = both + smoothing * rate
            below = (given if counts == "known" else positives) + smoothing
            np.divide(above, below, out=graph[rows], where=(below > 0) & (positives > 0))
        np.fill_diagonal(graph, 1)
        return graph

    def fingerprint(self) -> str:
        """Return a hash of values, categories and paths."""
        digest = hashlib.sha256(self.values.tobytes())
        digest.update("\0".join((*self.categories, "", *self.paths)).encode())
        return digest.hexdigest()[:16]

    def to_cleanlab(self) -> list[list[int]]:
        """Return cleanlab's multi-label form: for every image the numbers of its present categories.

        This form cannot say "unknown", so it is an error if a label is unknown. For partial labels use
        :meth:`sarb.Scores.to_cleanlab`.
        """
        return class_lists(self.values)

    def to_datasets(self, root: str | Path | None = None) -> Any:
        """Return a Hugging Face ``datasets.Dataset`` with the columns ``file_name``, ``present`` and ``absent``.

        A category that is in neither list is unknown. With ``root``, the folder of the images, there is a
        column ``image`` as well.
        """
        lists = {"present": self.values == PRESENT, "absent": self.values == ABSENT}
        return to_dataset(self.paths, self.categories, lists=lists, root=root)

    def to_fiftyone(self, root: str | Path | None = None) -> list[Any]:
        """Return a ``fiftyone.Sample`` per image, with the fields ``present`` and ``absent``.

        A category that is in neither field is unknown. ``root`` is the folder of the images.
        """
        fields = {"present": self.values == PRESENT, "absent": self.values == ABSENT}
        return to_samples(self.paths, self.categories, fields, root=root)

    def to_bytes(self) -> bytes:
        """Return the content of an ``.npz`` file that can be read without pickle."""
        return packed("values", self.values, self.categories, self.paths)

    def save(self, path: str | Path) -> None:
        """Write an ``.npz`` file that can be read without pickle."""
        with atomic_write(path, "wb") as file:
            file.write(self.to_bytes())

    @classmethod
    def load(cls, path: str | Path) -> LabelMatrix:
        """Read what :meth:`save` wrote."""
        values, categories, paths = unpacked(path, "values", "i")
        try:
            return cls(values, categories, paths)
        except DataError as error:
            raise DataError(f"{path}: {error}") from error
