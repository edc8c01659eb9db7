"""Turn a table of codes into labels, once the user has declared what the codes mean."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from sarb.data.check.problems import Problems, fault
from sarb.data.parse.messages import counted, few
from sarb.errors import data_option
from sarb.labels import ENCODINGS, UNKNOWN, encoding_table, normalise_code, own_spelling, readings, word_of

#: a table with more distinct values cannot hold label codes, and would fill the memory
MOST_SPELLINGS = 10_000
#: a column with this many different values that are not codes, more often than not, is not a category; and a word
#: that occurs this often is not a typing error
NO_CATEGORY = 3


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
        values = self.translate(encoding_table(chosen), f"{_codes(chosen)} (encoding {chosen})", own)
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
        """Return the only encoding that fits the cells; report what the codes can mean if there are several."""
        codes = _normalised(self.times())
        if not set(codes) - {""} or any(code and code in ENCODINGS["words"] for code in codes):
            return "words"
        possible = readings(codes)
        if len(possible) == 1:
            ((name, count),) = possible.items()
            only = f"the only encoding that has all its codes ({_meanings(name)})"
            self.problems.add(
                f"read with encoding={name}, {only}: {_counts(count)}", kind="read-as", level="note"
            )
            return name
        numeric = {code for name, table in ENCODINGS.items() if name != "words" for code in table}
        strange = np.array([normalise_code(spelling) not in numeric for spelling in self.spellings])
        cells = self._cells()
        others = self._no_categories(strange[cells], cells)
        times = self.times(np.delete(cells, others, axis=1))
        codes = _normalised(times)
        words = _own_words(times)
        if words:  # words of the user's own need the option; the cells themselves are not wrong
            for column in others:
                self._note_no_category(column, strange[cells], cells)
        else:
            self._note(strange.tolist(), cells, "1, 0, -1, blank, or present/absent/unknown")
        self.problems.add(_readings(codes, numeric, words), kind="undeclared-encoding")
        self.problems.raise_any()
        return None

    def _note(self, strange: Sequence[bool], cells: NDArray[np.int32], expected: str, own: str = "") -> None:
        """Report the cells with a strange spelling: the first with line and column, the rest as a count."""
        if not any(strange):
            return
        bad = np.array(strange)[cells]
        spelled = list(self.spellings)
        limit = self.problems.limit
        for column in self._no_categories(bad, cells):
            self._note_no_category(column, bad, cells)
            bad[:, column] = False
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
        """Return the columns that hold something other than codes, unless all of them do.

        Words that several columns share may be codes of the user's own.
        """
        blank = [not spelling.strip() for spelling in self.spellings]
        written = (~np.array(blank, bool)[cells]).sum(axis=0)
        folded = _Numbered()
        number = np.array([folded[normalise_code(spelling)] for spelling in self.spellings], np.int32)
        found = [np.unique(number[cells[bad[:, column], column]]) for column in range(len(self.categories))]
        columns_with = np.bincount(np.concatenate([*found, [0]]).astype(np.int64), minlength=len(folded))
        own = bad & (columns_with[number] < 2)[cells] if len(self.categories) > 1 else bad
        columns = [
            column
            for column in np.flatnonzero(2 * own.sum(axis=0) > written).tolist()
            if len(np.unique(cells[own[:, column], column])) >= NO_CATEGORY
        ]
        return columns if len(columns) < len(self.categories) else []

    def _note_third_word(self, bad: NDArray[np.bool_], cells: NDArray[np.int32], own: str) -> bool:
        """Report the only other word of a table in two words of the user's own; say whether there is one.

        A word that occurs once or twice is a typing error.
        """
        places = np.flatnonzero(bad)
        spelled = list(self.spellings)
        words = Counter(spelled[number].strip() for number in cells.reshape(-1)[places].tolist())
        if len(places) < NO_CATEGORY or len({normalise_code(word) for word in words}) != 1:
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

    def _note_no_category(self, column: int, bad: NDArray[np.bool_], cells: NDArray[np.int32]) -> None:
        row = int(np.argmax(bad[:, column]))
        value = list(self.spellings)[cells[row, column]][:60]
        name = self.categories[column]
        self.problems.add(
            f"{counted(int(bad[:, column].sum()), 'cell')} of this column are not label codes, the first is "
            f"{value!r}; if this is not a category, add {data_option('ignore', name)}",
            kind="no-category",
            line=self.lines[row],
            column=name,
            value=value,
        )


class _Numbered(dict[str, int]):
    """Gives every new key the next number."""

    def __missing__(self, key: str) -> int:
        self[key] = number = len(self)
        return number


def _normalised(times: Mapping[str, int]) -> Counter[str]:
    """How often each code occurs, whatever its spelling; those that do not occur are left out."""
    codes: Counter[str] = Counter()
    for spelling, count in times.items():
        codes[normalise_code(spelling)] += count
    return +codes


def _own_words(times: Mapping[str, int]) -> list[str]:
    """Return the two or three words of a table that writes its labels in words of its own, else nothing."""
    spelled: dict[str, Counter[str]] = {}
    for spelling, count in times.items():
        if count and spelling.strip():
            spelled.setdefault(normalise_code(spelling), Counter())[spelling.strip()] += count
    if len(spelled) not in (2, 3) or any(code[-1:].isdigit() for code in spelled):
        return []
    return [spellings.most_common(1)[0][0] for spellings in spelled.values()]


def _times(codes: Mapping[str, int], word: str) -> str:
    return counted(codes[normalise_code(word)], "cell")


def _rarer_first(codes: Mapping[str, int], words: Sequence[str]) -> list[Sequence[str]]:
    """Both orders of two words; first the one where the rarer word means present, as in most tables."""
    rarer = sorted(words, key=lambda word: codes[normalise_code(word)])
    return [rarer, rarer[::-1]]


def _readings(codes: Mapping[str, int], numeric: Collection[str], words: Sequence[str]) -> str:
    """Return a message that lists what the codes can mean, each meaning with its option and counts."""
    possible = readings({code: times for code, times in codes.items() if code in numeric})
    if len(words) == 2:
        shown = "".join(
            f"\n  {data_option('encoding', f'{present}/{absent}')}: {present} is present ({_times(codes, present)}), "
            f"{absent} is absent ({_times(codes, absent)})"
            for present, absent in _rarer_first(codes, words)
        )
        return f"declare which word means present and which absent:{shown}"
    if words:
        order = data_option("encoding", "PRESENT/ABSENT/UNKNOWN")
        seen = ", ".join(map(repr, words))
        return f"the labels are the words {seen}; declare which of them means what, in this order: {order}"
    if possible:
        shown = "".join(
            f"\n  {data_option('encoding', name)}: {_counts(count)}" for name, count in possible.items()
        )
        return f"declare what the label codes mean:{shown}"
    seen = few([f"{code or 'blank'} ({counted(count, 'time')})" for code, count in codes.items()], most=20)
    encodings = [name for name in ENCODINGS if name != "words"]
    shown = "".join(f"\n  {data_option('encoding', name)}: {_codes(name)}" for name in encodings)
    own = f"\n  {data_option('encoding', 'PRESENT/ABSENT')}: words of your own, such as Ja/Nein; blank is unknown"
    return (
        f"no encoding covers all codes in it: {seen}; declare one to see which cells do not fit:{shown}{own}"
    )


def _counts(count: dict[str, int]) -> str:
    return ", ".join(f"{number} {meaning}" for meaning, number in count.items())


def _codes(encoding: str) -> str:
    spelled = {word.strip().lower(): word.strip() for word in encoding.split("/")}
    known = encoding_table(encoding)
    *codes, last = (repr(spelled.get(code, code)) if code else "blank" for code in known)
    return f"{', '.join(codes)} or {last}"


def _meanings(encoding: str) -> str:
    """Return what each code means, ``1 present, 0 absent, blank unknown``."""
    return ", ".join(
        f"{code or 'blank'} {word_of(label)}" for code, label in encoding_table(encoding).items()
    )
