"""Phrases that the error messages of the readers share."""

from __future__ import annotations

from collections.abc import Collection
from itertools import islice


def counted(count: int, noun: str) -> str:
    """Return a number with its noun.

    >>> counted(1, "task"), counted(2000, "task")
    ('1 task', '2,000 tasks')
    """
    return f"{count:,} {noun if count == 1 else noun + 's'}"


def few(names: Collection[str], most: int = 5, longest: int = 40) -> str:
    """Return the first names, each cut to ``longest`` characters, and an ellipsis if there are more.

    >>> few(["a", "b", "c"], most=2)
    'a, b, …'
    """
    return ", ".join(name[:longest] for name in islice(names, most)) + (", …" if len(names) > most else "")


def first_here(times: int) -> str:
    """Return the suffix for a problem that is reported once but occurs ``times`` times."""
    return f" ({times} times, first here)" if times > 1 else ""
