"""Formats that list only what an image shows: the user must say if the rest is absent or unknown."""

from __future__ import annotations

from sarb.data.check.problems import Problems
from sarb.errors import data_option
from sarb.labels import ABSENT, PRESENT, UNKNOWN, meaning, word_of

CHOICES = ("unknown", "absent")


def check_unlisted(unlisted: str | None) -> None:
    """Raise if the option has a wrong value, before a long file is read."""
    if unlisted is not None:
        meaning("unlisted", unlisted, CHOICES)


def rest_label(problems: Problems, unlisted: str | None, present: int, rest: int, unknown: int = 0) -> int:
    """Return the label of what is not listed; without the option, report the choices with their counts.

    Args:
        problems: collects the problem; the caller raises it.
        unlisted: the option, ``unknown`` or ``absent``.
        present: number of entries that are listed.
        rest: number of entries that are not listed.
        unknown: number of entries that are unknown with either choice.
    """
    if unlisted is not None:
        return meaning("unlisted", unlisted, CHOICES)
    shown = ""
    for word in ("absent", "unknown"):
        count = {PRESENT: present, ABSENT: 0, UNKNOWN: unknown}
        count[meaning("unlisted", word)] += rest
        counts = ", ".join(f"{number} {word_of(label)}" for label, number in count.items())
        shown += f"\n  {data_option('unlisted', word)}: {counts}"
    problems.add(
        f"declare what it means if a category is not listed for an image:{shown}",
        kind="undeclared-unlisted",
    )
    return UNKNOWN
