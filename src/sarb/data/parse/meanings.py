"""What the codes of a table can mean, and the message that offers it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from sarb.data.parse.messages import counted, few
from sarb.errors import data_option
from sarb.labels import ENCODINGS, PRESENT, encoding_table, normalise_code, readings, word_of


def normalised(times: Mapping[str, int]) -> Counter[str]:
    """How often each code occurs, whatever its spelling; those that do not occur are left out."""
    codes: Counter[str] = Counter()
    for spelling, count in times.items():
        codes[normalise_code(spelling)] += count
    return +codes


def numeric_codes() -> set[str]:
    """The codes of all encodings of numbers."""
    return {code for name, table in ENCODINGS.items() if name != "words" for code in table}


def are_words(codes: Mapping[str, int]) -> bool:
    """Whether a table uses the words of ``words``: one of them, beside a blank and ``?``, which other words use too.

    A table whose only other words are Sí and no has words of its own.
    """
    table = ENCODINGS["words"]
    named = {code for code in codes if code in table and code not in ("", "?")}
    strange = {code for code in codes if code not in table}
    alone = all(table[code] != PRESENT for code in named) and len(strange) == 1 and len(named) == 1
    return (bool(named) and not alone) or not strange


def own_words(times: Mapping[str, int]) -> list[str]:
    """Return the two or three words of a table that writes its labels in words of its own, else nothing."""
    spelled: dict[str, Counter[str]] = {}
    for spelling, count in times.items():
        if count and spelling.strip() not in ("", "?"):
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


def offered(codes: Mapping[str, int], words: Sequence[str], only_in: Mapping[str, str]) -> str:
    """Return a message that lists what the codes can mean, each meaning with its option and counts.

    ``words`` are those of the user's own; ``only_in`` names the column of a word that no other column has.
    """
    place = {word: f" (only in column '{column}')" for word, column in only_in.items()}
    if len(words) == 2:
        shown = "".join(
            f"\n  {data_option('encoding', f'{present}/{absent}')}: {present} is present "
            f"({_times(codes, present)}), {absent} is absent ({_times(codes, absent)})"
            for present, absent in _rarer_first(codes, words)
        )
        where = "".join(f"\n  {word!r} occurs in column '{only_in[word]}' only" for word in only_in)
        return f"declare which word means present and which absent:{shown}{where}"
    if words:
        order = data_option("encoding", "PRESENT/ABSENT/UNKNOWN")
        seen = ", ".join(f"{word!r}{place.get(word, '')}" for word in words)
        ignore = sorted(set(only_in.values()))
        text = (
            f"; leave out a column that holds text with {data_option('ignore', ignore[0])}" if ignore else ""
        )
        return (
            f"the labels are the words {seen}; declare which of them means what, in this order: {order}{text}"
        )
    known = {code: times for code, times in codes.items() if code in numeric_codes()}
    possible = {name: count for name, count in readings(known).items() if count["present"] + count["absent"]}
    if possible:
        shown = "".join(
            f"\n  {data_option('encoding', name)}: {counts_of(count)}" for name, count in possible.items()
        )
        return f"declare what the label codes mean:{shown}"
    return _no_reading(codes)


def _no_reading(codes: Mapping[str, int]) -> str:
    seen = few([f"{code or 'blank'} ({counted(count, 'time')})" for code, count in codes.items()], most=20)
    encodings = [name for name in ENCODINGS if name != "words"]
    shown = "".join(f"\n  {data_option('encoding', name)}: {codes_of(name)}" for name in encodings)
    own = f"\n  {data_option('encoding', 'PRESENT/ABSENT')}: words of your own, such as Ja/Nein; blank is unknown"
    return (
        f"no encoding covers all codes in it: {seen}; declare one to see which cells do not fit:{shown}{own}"
    )


def counts_of(count: Mapping[str, int]) -> str:
    """Return ``2 present, 1 absent, 0 unknown``."""
    return ", ".join(f"{number} {meaning}" for meaning, number in count.items())


def codes_of(encoding: str) -> str:
    """Return the codes of an encoding as the user spelled them, ``'1', '0' or blank``."""
    spelled = {word.strip().lower(): word.strip() for word in encoding.split("/")}
    known = encoding_table(encoding)
    *codes, last = (repr(spelled.get(code, code)) if code else "blank" for code in known)
    return f"{', '.join(codes)} or {last}"


def meanings(encoding: str) -> str:
    """Return what each code means, ``1 present, 0 absent, blank unknown``."""
    return ", ".join(
        f"{code or 'blank'} {word_of(label)}" for code, label in encoding_table(encoding).items()
    )
