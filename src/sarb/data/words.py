"""Word vectors for category names, from a file in GloVe text format."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sarb.errors import DataError
from sarb.files import open_regular

#: names that VOC writes as one word and GloVe as two
COMPOUNDS = {"diningtable": "dining table", "pottedplant": "potted plant", "tvmonitor": "tv monitor"}


def word_vectors(
    path: str | Path, categories: Sequence[str]
) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
    """Look up the vector of each category name.

    The whole name is looked up first, with ``_`` for spaces, as written and then in lower case. If the file
    has neither, the result is the mean vector of those lower-case words of the name (split at spaces,
    underscores and hyphens) that the file has. The file is read once, line by line. It may start with a
    word2vec header ``count dim`` and contain tokens with spaces; if a token appears twice, the first wins.

    Args:
        path: file of lines ``token number number …``.
        categories: C names.

    Returns:
        vectors (C, W), zero where nothing was found, and a mask (C,) of the names that were found.

    Raises:
        DataError: the file is missing or a line is malformed; the message has the line number.
    """
    path = Path(path)
    whole = [(_underscored(name), _underscored(name).lower()) for name in categories]
    words = [_words(name) for name in categories]
    wanted = {token.encode() for tokens in (*whole, *words) for token in tokens}
    vectors, width = _collect(path, wanted)
    table = np.zeros((len(categories), width), np.float32)
    has_vector = np.zeros(len(categories), np.bool_)
    for row in range(len(categories)):
        hits = [vectors[token.encode()] for token in whole[row] if token.encode() in vectors][:1]
        hits = hits or [vectors[token.encode()] for token in words[row] if token.encode() in vectors]
        if hits:
            table[row] = np.mean(hits, axis=0)
            has_vector[row] = True
    return table, has_vector


def _underscored(name: str) -> str:
    return "_".join(name.split())


def _words(name: str) -> list[str]:
    name = name.lower()
    return [word for word in re.split(r"[\s_-]+", COMPOUNDS.get(name, name)) if word]


def _collect(path: Path, wanted: set[bytes]) -> tuple[dict[bytes, NDArray[np.float64]], int]:
    """Return the vectors of the wanted tokens, and the width W of the file."""
    vectors: dict[bytes, NDArray[np.float64]] = {}
    width = 0
    for number, line in _lines(path):
        if not width:
            fields = line.split(b" ")
            width = len(fields) - 1
            if number == 1 and width == 1 and all(field.isdigit() for field in fields):
                width = int(fields[1])
                continue
        if line.count(b" ") < width or not width:
            raise _wrong_width(path, number, line, width)
        # split only the lines that can match: a full GloVe file has two million
        if line.split(b" ", 1)[0] in wanted:
            token, *numbers = line.rsplit(b" ", width)
            if token in wanted and token not in vectors:
                vectors[token] = _parse(path, number, numbers)
            elif token not in wanted and all(_is_fraction(field) for field in token.split(b" ")[1:]):
                raise _wrong_width(path, number, line, width)
    if not width:
        raise DataError(f"{path}: the file is empty; expected lines 'word number number …'")
    return vectors, width


def _wrong_width(path: Path, number: int, line: bytes, width: int) -> DataError:
    count = line.count(b" ")
    expected = width or "at least 1, as in GloVe: 'word number number …'"
    return DataError(f"{path}, line {number}: {count} numbers after the word, expected {expected}")


def _lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield (number, line) as bytes: tokens may contain any character, and only a plain space separates."""
    try:
        with open_regular(path) as file:
            if file.read(4) == b"PK\x03\x04":
                raise DataError(f"{path}: this is a zip archive; unpack it and pass the .txt file")
            file.seek(0)
            for number, line in enumerate(file, 1):
                if stripped := line.rstrip(b" \r\n"):
                    yield number, stripped
    except OSError as error:
        raise DataError(f"{path}: word vectors cannot be read ({error.strerror})") from None


def _parse(path: Path, number: int, fields: Sequence[bytes]) -> NDArray[np.float64]:
    try:
        vector = np.array([float(field) for field in fields])
    except ValueError as error:
        raise DataError(f"{path}, line {number}: {error}") from None
    if not np.isfinite(vector).all():
        raise DataError(f"{path}, line {number}: expected finite numbers, got nan or inf")
    return vector


def _is_fraction(field: bytes) -> bool:
    """Return whether a field is a vector entry (``-0.25``) and not part of a token (``top 10``)."""
    return re.fullmatch(rb"[-+]?\d*\.\d+(e[-+]?\d+)?", field) is not None
