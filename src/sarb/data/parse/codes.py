"""Turn a table of codes into labels, once the user has declared what the codes mean."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from sarb.data.check.problems import Problems, fault
from sarb.data.parse.meanings import (
    are_words,
    codes_of,
    counts_of,
    meanings,
    normalised,
    numeric_codes,
    offered,
    own_words,
)
from sarb.data.parse.messages import counted
from sarb.data.parse.text_columns import text_columns
from sarb.errors import data_option
from sarb.labels import ENCODINGS, UNKNOWN, encoding_table, normalise_code, own_spelling, readings

#: a table with more distinct values cannot hold label codes, and would fill the memory
MOST_SPELLINGS = 10_000
#: a word that occurs this often is not a typing error
NO_ERROR = 3


class Codes:
    """The cells (N, C) of a table: ``flat[n * C + c]`` is the number of the cell's spelling.

    A table has many cells but few distinct spellings, so a cell takes only 4 bytes.
    """

    def __init__(self, problems: Problems, categories: Sequence[str], ignored: Sequence[str] = ()) -> None:
        self.problems = problems
        self.categories = list(categories)
        self.ignored = list(ignored)
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
                "codes; exclude columns that are not categories with "
                f"{data_option('ignore', 'NAME,NAME')}",
                line=line,
                kind="bad-value",
            )

    def decode(self, encoding: str | None) -> tuple[NDArray[np.int8], dict[str, object]]:
        """Return labels (N, C), and notes: the encoding and the user's spelling of its codes.

        Without an encoding, words are decoded, and numbers if only one encoding has all of them. Otherwise the
        error lists what the codes can mean.
        """
        if encoding is not None:
            encoding_table(encoding)
        chosen = encoding or self._guess()
        if chosen is None:  # only while gathering problems: go on with labels that are all unknown
            return np.full(self._cells().shape, UNKNOWN, np.int8), {"undecoded": True}
        own = chosen if chosen.count("/") == 1 else ""
        values = self.translate(encoding_table(chosen), f"{codes_of(chosen)} (encoding {chosen})", own)
        return values, {"encoding": chosen, "codes": own_spelling(chosen, self.times())}

    def translate(self, meaning: Mapping[str, int], expected: str, own: str = "") -> NDArray[np.int8]:
        """Return labels (N, C), given a table code -> label; report every cell with another code.

        ``own`` is an encoding of two words of the user's own, to which a third word for unknown can be added.
        """
        cells = self._cells()
        codes = [normalise_code(spelling) for spelling in self.spellings]
        self._note([code not in meaning for code in codes], cells, expected, own)
        labels = np.array([meaning.get(code, UNKNOWN) for code in codes], np.int8)
        return labels[cells] if cells.size else np.zeros(cells.shape, np.int8)

    def _cells(self) -> NDArray[np.int32]:
        return np.asarray(self.flat, np.int32).reshape(len(self.lines), len(self.categories))

    def times(self, cells: NDArray[np.int32] | None = None) -> dict[str, int]:
        """Return how often each spelling occurs, in all cells or in some."""
        chosen = np.asarray(self.flat, np.int32) if cells is None else cells.reshape(-1)
        times = np.bincount(chosen, minlength=len(self.spellings)).tolist()
        return {spelling: times[number] for spelling, number in self.spellings.items()}

    def _guess(self) -> str | None:
        """Return the only encoding that fits the cells; report what the codes can mean if there are several.

        Columns of text are left out of the question.
        """
        cells = self._cells()
        table = {code for codes in ENCODINGS.values() for code in codes}
        strange = np.array([normalise_code(spelling) not in table for spelling in self.spellings], bool)[
            cells
        ]
        others = self._no_categories(strange, cells)
        times = self.times(np.delete(cells, others, axis=1))
        codes = normalised(times)
        if not set(codes) - {""} or are_words(codes):
            return "words"
        possible = readings(codes)
        if len(possible) == 1:
            ((name, count),) = possible.items()
            only = f"the only encoding that has all its codes ({meanings(name)})"
            self.problems.add(
                f"read with encoding={name}, {only}: {counts_of(count)}", kind="read-as", level="note"
            )
            return name
        words = own_words(times)
        numeric = numeric_codes()
        if words:  # words of the user's own need the option; the cells themselves are not wrong
            self._note_no_categories(others, strange, cells)
        else:
            spelled = [normalise_code(spelling) not in numeric for spelling in self.spellings]
            self._note(spelled, cells, "1, 0, -1, blank, or present/absent/unknown")
        self.problems.add(offered(codes, words, self._only_in(words, cells)), kind="undeclared-encoding")
        self.problems.raise_any()
        return None

    def _only_in(self, words: Sequence[str], cells: NDArray[np.int32]) -> dict[str, str]:
        """Words that occur in a single column, with the name of that column."""
        found: dict[str, str] = {}
        code = np.array([normalise_code(spelling) for spelling in self.spellings])
        for word in words:
            columns = np.flatnonzero((code == normalise_code(word))[cells].any(axis=0)).tolist()
            if len(columns) == 1 < len(self.categories):
                found[word] = self.categories[columns[0]]
        return found

    def _note(self, strange: Sequence[bool], cells: NDArray[np.int32], expected: str, own: str = "") -> None:
        """Report the cells with a strange spelling: the first with line and column, the rest as a count."""
        if not any(strange):
            return
        bad = np.array(strange)[cells]
        spelled = list(self.spellings)
        limit = self.problems.limit
        others = self._no_categories(bad, cells)
        self._note_no_categories(others, bad, cells)
        bad[:, others] = False
        if own and self._note_third_word(bad, cells, own):
            return
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

    def _no_categories(self, bad: NDArray[np.bool_], cells: NDArray[np.int32]) -> list[int]:
        """Return the columns that hold something other than codes, see :func:`text_columns`."""
        folded = _Numbered()
        number = np.array([folded[normalise_code(spelling)] for spelling in self.spellings], np.int32)
        lettered = np.array([any(map(str.isalpha, spelling)) for spelling in self.spellings], bool)
        return text_columns(number[cells], bad, lettered[cells], folded.get("", -1)) if cells.size else []

    def _note_third_word(self, bad: NDArray[np.bool_], cells: NDArray[np.int32], own: str) -> bool:
        """Report the only other word of a table in two words of the user's own; say whether there is one.

        A word that occurs once or twice is a typing error.
        """
        places = np.flatnonzero(bad)
        spelled = list(self.spellings)
        words = Counter(spelled[number].strip() for number in cells.reshape(-1)[places].tolist())
        if len(places) < NO_ERROR or len({normalise_code(word) for word in words}) != 1:
            return False
        word = words.most_common(1)[0][0]
        row, column = divmod(int(places[0]), len(self.categories))
        self.problems.add(
            f"the word {word!r}, here and in {counted(len(places) - 1, 'other cell')}, is not in encoding {own}; "
            f"if it means unknown, give it as the third word: {data_option('encoding', f'{own}/{word}')}",
            kind="bad-value",
            line=self.lines[row],
            column=self.categories[column],
            value=word[:60],
        )
        return True

    def _note_no_categories(
        self, columns: Sequence[int], bad: NDArray[np.bool_], cells: NDArray[np.int32]
    ) -> None:
        """Report columns of text; the option leaves out all of them, and what was left out already."""
        ignore = ",".join([*self.ignored, *(self.categories[column] for column in columns)])
        for column in columns:
            row = int(np.argmax(bad[:, column]))
            value = list(self.spellings)[cells[row, column]][:60]
            cells_with = counted(int(bad[:, column].sum()), "cell")
            self.problems.add(
                f"'{self.categories[column]}' holds {_sort(value)}, not labels ({cells_with}, the first is {value!r}): "
                f"leave it out with {data_option('ignore', ignore)}",
                kind="no-category",
                line=self.lines[row],
                column=self.categories[column],
                value=value,
            )


def _sort(value: str) -> str:
    return "text" if any(map(str.isalpha, value)) else "numbers"


class _Numbered(dict[str, int]):
    """Gives every new key the next number."""

    def __missing__(self, key: str) -> int:
        self[key] = number = len(self)
        return number
