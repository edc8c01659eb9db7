"""Categories that are the same, contain one another or have nearly equal names.

Counted on known labels only: an image counts for a pair if both labels are known. P(b | a) is judged by the
lower end of Wilson's 95 % interval, so a few images prove nothing.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sarb.counts import pair_counts, rates
from sarb.health.findings import Finding
from sarb.labels import LabelMatrix

Floats = NDArray[np.float64]

#: a is contained in b if P(b | a) is surely above this
CONTAINED = 0.9
#: and if b is missing this many times more seldom than in other images
LIFT = 4.0
#: letters a name needs so that one differing letter may be a slip
LONG = 6


class Implied(NamedTuple):
    """Of ``known`` images that show a and in which b is known, ``both`` show b; ``lower`` is the bound."""

    both: int
    known: int
    lower: float


def related_categories(labels: LabelMatrix) -> list[Finding]:
    """Findings about pairs of categories: the same, contained, and nearly equal names."""
    implied = dict(_implications(labels.values))
    findings = []
    for (first, second), count in implied.items():
        a, b = labels.categories[first], labels.categories[second]
        back = implied.get((second, first))
        if back is None:
            text = f"'{b}' is present in {count.both:,} of {count.known:,} images that show '{a}'"
            findings.append(Finding("contained_category", count.lower, text, label=a))
        elif first < second:
            text = f"'{b}' is present in {count.both:,} of {count.known:,} images that show '{a}', and "
            text += f"'{a}' in {back.both:,} of {back.known:,} that show '{b}'"
            findings.append(Finding("same_category", min(count.lower, back.lower), text, label=a))
    findings += [
        Finding("similar_name", score, f"'{a}' and '{b}' {why}", label=a)
        for a, b, score, why in similar_names(labels.categories)
    ]
    return sorted(findings, key=lambda finding: -finding.score)


def _implications(values: NDArray[np.int8]) -> Iterator[tuple[tuple[int, int], Implied]]:
    """Pairs (a, b) such that images which show a surely show b."""
    rate = rates(values)
    for rows, both, given in pair_counts(values):
        lower = wilson_lower(both, given)
        wanted = (lower >= CONTAINED) & (LIFT * (1 - lower) <= 1 - rate)
        for place, second in zip(*np.nonzero(wanted), strict=True):
            first = int(rows.start + place)
            if first != second:
                counts = int(both[place, second]), int(given[place, second])
                yield (first, int(second)), Implied(*counts, float(lower[place, second]))


def wilson_lower(hits: Floats, count: Floats) -> Floats:
    """Lower end of Wilson's 95 % interval of hits / count, any shape; 0 where there is no count."""
    square = 1.96**2
    number = np.maximum(count, 1)
    share = hits / number
    spread = np.sqrt(square * (share * (1 - share) + square / (4 * number)) / number)
    lower = (share + square / (2 * number) - spread) / (1 + square / number)
    return np.where(count > 0, lower, 0.0)


def similar_names(names: Sequence[str]) -> list[tuple[str, str, float, str]]:
    """Pairs of names (a, b, score, difference) that are probably two spellings of one."""
    found: dict[tuple[str, str], tuple[float, str]] = {}
    for pair in _meeting(names, lambda name: [_letters(name)]):
        found.setdefault(pair, (1.0, "differ only in case, spaces or signs"))
    for pair in _meeting(names, lambda name: [_letters(name).removesuffix("s")]):
        found.setdefault(pair, (0.9, "are singular and plural"))
    for pair in _meeting(names, _one_less):
        if _one_letter(*pair):
            found.setdefault(pair, (0.8, "differ in one letter"))
    return [(a, b, *judged) for (a, b), judged in found.items()]


def _meeting(names: Sequence[str], keys: Callable[[str], list[str]]) -> Iterator[tuple[str, str]]:
    """Pairs of names that share a key."""
    seen: dict[str, list[str]] = {}
    for name in names:
        for key in keys(name):
            yield from ((other, name) for other in seen.get(key, ()) if other != name)
            seen.setdefault(key, []).append(name)


def _letters(name: str) -> str:
    """Letters and digits in one case; the signs themselves if there is nothing else."""
    plain = unicodedata.normalize("NFKC", name).casefold()
    return "".join(sign for sign in plain if sign.isalnum()) or plain


def _one_less(name: str) -> list[str]:
    """The name and all names with one letter less: those of two names that differ in one letter meet."""
    letters = _letters(name)
    if len(letters) < LONG:
        return []
    return [*{letters, *(letters[:place] + letters[place + 1 :] for place in range(len(letters)))}]


def _one_letter(first: str, second: str) -> bool:
    """Whether two names differ in one letter: replaced, added or left out; digits tell things apart."""
    a, b = sorted((_letters(first), _letters(second)), key=len)
    start = next((place for place, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), len(a))
    changed = a[start : start + 1] if len(a) == len(b) else ""
    rest_same = a[start + len(changed) :] == b[start + 1 :]
    return rest_same and not any(sign.isdigit() for sign in changed + b[start : start + 1])
