"""Exact and near duplicates, within and across splits.

Exact: the files have the same bytes. Near: the features are similar, the small grey copies fit each other
(:mod:`sarb.health.alignment`), and the colours do not contradict; none would do alone. Of a pair in two splits, the
training image is the one to fix: the test images should stay what they are.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sarb.health.alignment import Match, compare
from sarb.health.findings import Finding, Images
from sarb.health.looks import Look
from sarb.health.neighbours import Nearest
from sarb.progress import Progress

#: least cosine of the features of a pair that is compared in pixels
SIMILAR = 0.5
#: least correlation of near duplicates
FITS = 0.75
#: two pictures whose colours are on average this strong, in levels of 255, must have a cosine of at least ALIKE
COLOURFUL = 8.0
ALIKE = 0.5
#: the image of a later split is the one to fix
ORDER = ("test", "valid", "train")
#: contradicting labels that are named
NAMED = 3


def exact_duplicates(images: Images, digests: Sequence[bytes]) -> list[Finding]:
    """Images with the bytes of an earlier one: each is paired with the first of its group."""
    groups: dict[bytes, list[int]] = {}
    for row, digest in enumerate(digests):
        groups.setdefault(digest, []).append(row)
    pairs = []
    for rows in groups.values():
        first, *copies = sorted(rows, key=lambda row: ORDER.index(images.splits[row]))
        pairs += [(copy, first) for copy in copies]
    return [
        images.pair("exact_duplicate", copy, first, 1.0, _detail(images, copy, first, "same bytes"))
        for copy, first in sorted(pairs)
    ]


def near_duplicates(images: Images, looks: Sequence[Look], similar: Nearest, talk: Progress) -> list[Finding]:
    """Pairs of different files that show the same picture, the surest first.

    Args:
        images: N images.
        looks: N looks at them; of several exact duplicates only the first is compared.
        similar: the neighbours of each image.
        talk: progress.
    """
    candidates = _candidates([look.digest for look in looks], similar)
    found = []
    with talk.bar("comparing pixels", len(candidates)) as advance:
        for (row, other), cosine in candidates.items():
            match = compare(looks[row].small, looks[other].small)
            if match.correlation >= FITS and not recoloured(looks[row], looks[other], match.mirrored):
                found.append(_near(images, row, other, cosine, match))
            advance(1)
    return sorted(found, key=lambda finding: -finding.score)


def recoloured(first: Look, second: Look, mirrored: bool) -> bool:
    """Whether two pictures of the same shapes have clearly different colours; a grey copy has none that differ."""
    one = first.colours.ravel()
    two = (second.colours[:, ::-1] if mirrored else second.colours).ravel()
    lengths = float(np.linalg.norm(one)), float(np.linalg.norm(two))
    if min(lengths) < COLOURFUL * np.sqrt(len(one)):
        return False
    return float(one @ two) < ALIKE * lengths[0] * lengths[1]


def _candidates(digests: Sequence[bytes], similar: Nearest) -> dict[tuple[int, int], float]:
    """Pairs with similar features and their cosine, the images of each in order."""
    first: dict[bytes, int] = {}
    for row, digest in enumerate(digests):
        first.setdefault(digest, row)
    rows, places = np.nonzero(similar.cosines >= SIMILAR)
    pairs: dict[tuple[int, int], float] = {}
    for row, place in zip(rows.tolist(), places.tolist(), strict=True):
        one, two = sorted((first[digests[row]], first[digests[int(similar.rows[row, place])]]))
        if one != two:
            pairs[one, two] = float(similar.cosines[row, place])
    return pairs


def _near(images: Images, row: int, other: int, cosine: float, match: Match) -> Finding:
    if ORDER.index(images.splits[row]) < ORDER.index(images.splits[other]):
        row, other = other, row
    what = "mirrored" if match.mirrored else "same picture"
    text = f"{what}, pixels {match.correlation:.2f}, features {cosine:.2f}"
    return images.pair("near_duplicate", row, other, match.correlation, _detail(images, row, other, text))


def _detail(images: Images, row: int, other: int, text: str) -> str:
    """What was measured, and what makes the pair worse than a mere repetition."""
    if images.splits[row] != images.splits[other]:
        text = f"in two splits (leakage); {text}"
    differ = images.contradictions(row, other)
    if differ:
        more = f" and {len(differ) - NAMED} more" if len(differ) > NAMED else ""
        text += f"; labels differ: {', '.join(differ[:NAMED])}{more}"
    return text
