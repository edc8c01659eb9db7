"""What is new in the rows of one label file: labels that differ, and names that lead elsewhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from sarb.data.dataset import Dataset
from sarb.labels import MEANINGS, UNKNOWN, encoding_table, normalise_code, own_spelling


class Edits:
    """New labels and names of the rows of a file, by their line.

    Args:
        parts: the images that come from this file.
        names: their names in the new file, for each part.
        splits: the split of each part.
        notes: of the data: encoding, and spelling of its codes.

    Attributes:
        spelled: label -> text.
        splits: line -> split.
    """

    def __init__(
        self,
        parts: Sequence[Dataset],
        names: Sequence[Sequence[str]],
        splits: Sequence[str],
        notes: Mapping[str, Any],
    ) -> None:
        self.categories = parts[0].categories
        self.values = np.concatenate([part.labels.values for part in parts])
        self.names = [name for part in names for name in part]
        lines = [line for part in parts for line in (part.lines if part.lines is not None else ())]
        self.rows = {int(line): row for row, line in enumerate(lines)}
        words = [split for split, part in zip(splits, parts, strict=True) for _ in range(len(part))]
        self.splits = {int(line): word for line, word in zip(lines, words, strict=True)}
        encoding = str(notes.get("encoding", "words"))
        codes = notes.get("codes") or own_spelling(encoding, {})
        self.spelled = {label: str(codes[word]) for word, label in MEANINGS.items()}
        self.meaning = _Meaning(encoding_table(encoding))

    def labels(self, line: int, cells: Sequence[str]) -> dict[int, int]:
        """Return category -> new label, where it differs from the cells (C,) of a line."""
        row = self.rows.get(line)
        if row is None:
            return {}
        old = [self.meaning[cell] for cell in cells]
        new = self.values[row].tolist()
        return {} if old == new else {place: label for place, label in enumerate(new) if label != old[place]}

    def name(self, line: int, cell: str) -> str | None:
        """Return the new name of an image, None if it stays."""
        row = self.rows.get(line)
        return None if row is None or self.names[row] == cell else self.names[row]


class _Meaning(dict[str, int]):
    """Text of a cell -> label; each text is normalised once."""

    def __init__(self, table: Mapping[str, int]) -> None:
        super().__init__()
        self.table = table

    def __missing__(self, text: str) -> int:
        self[text] = label = self.table.get(normalise_code(text), UNKNOWN)
        return label
