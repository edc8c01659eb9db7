"""One label file of NUS-WIDE: a column of the label matrix."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sarb.data.parse.text import read_text
from sarb.labels import UNKNOWN, encoding_table, normalise_code


def read_column(path: Path, charset: str | None = None) -> tuple[NDArray[np.int8], dict[int, str]]:
    """Return labels (N,) of a file with 1 or 0 on each line, and line number -> text of any other line.

    The data set has 21 million such lines, so a clean file is read as bytes, and only others line by line.
    """
    text = read_text(path, charset)
    table = encoding_table("binary")
    compact = text.replace("\r\n", "\n").replace(" ", "").rstrip("\n") + "\n"
    characters = np.frombuffer(compact.encode(), np.uint8)
    codes = characters[::2]
    one = codes == ord("1")
    one_per_line = len(characters) % 2 == 0 and (characters[1::2] == ord("\n")).all()
    if one_per_line and (one | (codes == ord("0"))).all():
        return np.where(one, np.int8(table["1"]), np.int8(table["0"])), {}
    lines = all_lines(text)
    labels = [table.get(normalise_code(line) or "blank") for line in lines]
    strange = {number: lines[number - 1] for number, label in enumerate(labels, 1) if label is None}
    return np.array([UNKNOWN if label is None else label for label in labels], np.int8), strange


def all_lines(text: str) -> list[str]:
    """Return all lines, including blank ones, but without the blank lines at the end."""
    plain = text.replace("\r\n", "\n").replace("\r", "\n").rstrip()
    return plain.split("\n") if plain else []
