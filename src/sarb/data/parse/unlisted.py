"""Formats that only list what is there: what they do not list is absent or unknown, and only the user knows
which.
"""

from __future__ import annotations

from sarb.data.check.problems import Problems
from sarb.data.parse.messages import option
from sarb.labels import ABSENT, PRESENT, UNKNOWN, meaning, word_of

CHOICES = ("unknown", "absent")


def check_unlisted(unlisted: str | None) -> None:
    """Raise unless the option is left out or a word it may have, before a long file is read."""
    if unlisted is not None:
        meaning("unlisted", unlisted, CHOICES)


def rest_label(problems: Problems, unlisted: str | None, present: int, rest: int, unknown: int = 0) -> int:
    """Return the label of what is not listed; without the option, note the readings with their counts.

    Args:
        problems: of the file being read; the caller raises them.
        unlisted: the option, ``unknown`` or ``absent``.
        present: number of entries listed.
        rest: number of entries that are not.
        unknown: number of entries that are unknown under both readings.
    """
    if unlisted is not None:
        return meaning("unlisted", unlisted, CHOICES)
    shown = ""
    for word in ("absent", "unknown"):
        count = {PRESENT: present, ABSENT: 0, UNKNOWN: unknown}
        count[meaning("unlisted", word)] += rest
        counts = ", ".join(f"{number} {word_of(label)}" for label, number in count.items())
        shown += f"\n  {option('unlisted', word)}: {counts}"
    problems.add(
        f"say what it means that a category is not listed for an image, it can be read as{shown}",
        kind="undeclared-unlisted",
    )
    return UNKNOWN
