"""Phrases that the messages of the readers share."""

from __future__ import annotations

import shlex
from collections.abc import Collection
from itertools import islice


def option(name: str, value: str | int) -> str:
    """Return how to set an option, on the command line and in Python.

    >>> option("unlisted", "absent")
    '-o unlisted=absent (Python: unlisted="absent")'
    """
    in_python = f'"{value}"' if isinstance(value, str) else value
    return f"-o {name}={shlex.quote(str(value))} (Python: {name}={in_python})"


def few(names: Collection[str], most: int = 5, longest: int = 40) -> str:
    """Return the first names, none longer than ``longest``, and an ellipsis if there are more.

    >>> few(["a", "b", "c"], most=2)
    'a, b, …'
    """
    return ", ".join(name[:longest] for name in islice(names, most)) + (", …" if len(names) > most else "")


def first_here(times: int) -> str:
    """Return what to append where something is reported once but occurs ``times`` times."""
    return f" ({times} times, first here)" if times > 1 else ""
