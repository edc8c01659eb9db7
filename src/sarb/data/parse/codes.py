"""Turn a table of codes into labels, once the user has declared what the codes mean."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from sarb.data.check.problems import Problems, fault
from sarb.data.parse.messages import counted, option
from sarb.labels import ENCODINGS, UNKNOWN, encoding_table, normalise_code, own_spelling, readings

#: a table with more distinct values cannot hold label codes, and would fill the memory
MOST_SPELLINGS = 10_000


class Codes:
    """The cells (N, C) of a table: ``flat[n * C + c]`` is the number of the cell's spelling.

    A table has many cells but few distinct spellings, so a cell takes only 4 bytes.
    """

    def __init__(self, problems: Problems, categories: Sequence[str]) -> None:
        self.problems = problems
        self.categories = list(categories)
        self.lines: list[int] = []
        self.flat: array[int] = array("i")
        self.spellings: dict[str, int] = _Numbered()

    def append(self, line: int, cells: Iterable[str]) -> None:
        """Add one row of C cells."""
        self.lines.append(line)
        self.flat.extend(map(self.spellings.__getitem__, cells))
        if len(self.spellings) > MOST_SPELLINGS:
            last = next(reversed(self.spellings))[:40]
            raise fault(
                self.problems.source,
                f"more than {MOST_SPELLINGS:,} different values, such as {last!r}: these are not label "
                "codes; exclude columns that are not categories with -o ignore=NAME,NAME",
                line=line,
                kind="bad-value",
            )

    def decode(self, encoding: str | None) -> tuple[NDArray[np.int8], dict[str, object]]:
        """Return labels (N, C), and notes: the encoding and the user's spelling of its codes.

        Without an encoding only words are decoded; for any other code the error lists what it can mean.
        """
        if encoding is not None:
            encoding_table(encoding)
        chosen = encoding or self._guess()
        if chosen is None:  # only while gathering problems: go on with labels that are all unknown
            return np.full(self._cells().shape, UNKNOWN, np.int8), {"undecoded": True}
        values = self.translate(encoding_table(chosen), f"{_codes(chosen)} (encoding {chosen})")
        return values, {"encoding": chosen, "codes": own_spelling(chosen, self.times())}

    def translate(self, meaning: Mapping[str, int], expected: str) -> NDArray[np.int8]:
        """Return labels (N, C), given a table code -> label; report every cell with another code."""
        cells = self._cells()
        codes = [normalise_code(spelling) for spelling in self.spellings]
        self._note([code not in meaning for code in codes], cells, expected)
        labels = np.array([meaning.get(code, UNKNOWN) for code in codes], np.int8)
        return labels[cells] if cells.size else np.zeros(cells.shape, np.int8)

    def _cells(self) -> NDArray[np.int32]:
        return np.asarray(self.flat, np.int32).reshape(len(self.lines), len(self.categories))

    def times(self) -> dict[str, int]:
        """Return how often each spelling occurs."""
        times = np.bincount(np.asarray(self.flat, np.int32), minlength=len(self.spellings)).tolist()
        return {spelling: times[number] for spelling, number in self.spellings.items()}

    def _guess(self) -> str | None:
        """Return ``words`` if the cells hold words; otherwise report what the codes can mean."""
        codes: Counter[str] = Counter()
        for spelling, times in self.times().items():
            codes[normalise_code(spelling)] += times
        if not set(codes) - {""} or any(code and code in ENCODINGS["words"] for code in codes):
            return "words"
        numeric = {code for name, table in ENCODINGS.items() if name != "words" for code in table}
        strange = [normalise_code(spelling) not in numeric for spelling in self.spellings]
        self._note(strange, self._cells(), "1, 0, -1, blank, or present/absent/unknown")
        self.problems.add(_readings(codes, numeric), kind="undeclared-encoding")
        self.problems.raise_any()
        return None

    def _note(self, strange: Sequence[bool], cells: NDArray[np.int32], expected: str) -> None:
        """Report the cells with a strange spelling: the first with line and column, the rest as a count."""
        if not any(strange):
            return
        bad = np.array(strange)[cells]
        spelled = list(self.spellings)
        limit = self.problems.limit
        rows = np.flatnonzero(bad.any(axis=1))[
            :limit
        ]  # the positions of all cells would take too much memory
        positions = [(row, column) for row in rows.tolist() for column in np.flatnonzero(bad[row]).tolist()]
        for number, (row, column) in enumerate(positions[:limit]):
            self.problems.add(
                kind="bad-value",
                line=self.lines[row],
                column=self.categories[column],
                value=spelled[cells[row, column]][:60],
                expected=expected,
                times=1 + (int(np.count_nonzero(bad)) - limit if number == limit - 1 else 0),
            )


class _Numbered(dict[str, int]):
    """Gives every new key the next number."""

    def __missing__(self, key: str) -> int:
        self[key] = number = len(self)
        return number


def _readings(codes: Mapping[str, int], numeric: Collection[str]) -> str:
    """Return a message that lists what the codes can mean, each meaning with its option and counts."""
    possible = readings({code: times for code, times in codes.items() if code in numeric})
    if possible:
        shown = "".join(
            f"\n  {option('encoding', name)}: {_counts(count)}" for name, count in possible.items()
        )
        return f"declare what the label codes mean:{shown}"
    seen = ", ".join(f"{code or 'blank'} ({counted(count, 'time')})" for code, count in codes.items())
    encodings = [name for name in ENCODINGS if name != "words"]
    shown = "".join(f"\n  {option('encoding', name)}: {_codes(name)}" for name in encodings)
    return f"no encoding covers all codes in it: {seen}; declare one to see which cells do not fit:{shown}"


def _counts(count: dict[str, int]) -> str:
    return ", ".join(f"{number} {meaning}" for meaning, number in count.items())


def _codes(encoding: str) -> str:
    *codes, last = (repr(code) if code else "blank" for code in ENCODINGS[encoding])
    return f"{', '.join(codes)} or {last}"
