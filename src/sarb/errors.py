"""Errors that a user can cause. The command line prints the message without a traceback and exits with 2."""

from __future__ import annotations

import difflib
import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any


class SarbError(Exception):
    """Bad input or usage; the message says what is wrong, where, and what to do about it."""


class DataError(SarbError):
    """A data source that cannot be read, or is ambiguous.

    ``findings`` holds the same problems as :class:`sarb.data.check.problems.Finding` objects, if the reader
    knows where in the files they are.
    """

    def __init__(self, message: str, findings: Sequence[Any] = ()) -> None:
        self.findings = list(findings)
        super().__init__(message)


class ImageError(SarbError):
    """An image file that cannot be decoded."""


class ConfigError(SarbError):
    """One or more wrong settings, all reported at once."""

    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = list(problems)
        super().__init__("\n".join(self.problems))


class StageError(SarbError):
    """A network × method × option combination that cannot work."""


class DataNote(UserWarning):
    """How a source was read that can be read in one way only; not an error, and printed without "warning"."""


#: what a terminal obeys instead of showing it, or what cannot be shown at all; line ends and tabs are text
UNPRINTABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def printable(text: str) -> str:
    r"""Write control characters, which a terminal would obey, as JSON writes them.

    >>> printable("red\x1b[2J"), printable("two\nlines")
    ('red\\u001b[2J', 'two\nlines')
    """
    return UNPRINTABLE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def did_you_mean(name: str, choices: Iterable[str]) -> str:
    """Return ``' Did you mean X?'`` for the most similar choice, or an empty string.

    >>> did_you_mean("sabr", ["sarb", "partial_bce"])
    " Did you mean 'sarb'?"
    """
    near = near_name(name, choices)
    return f" Did you mean '{near}'?" if near is not None else ""


def near_name(name: str, choices: Iterable[str]) -> str | None:
    """Return the choice most similar to ``name``, or None if none is similar."""
    lowered = {choice.lower(): choice for choice in choices}
    near = difflib.get_close_matches(name.lower(), list(lowered), n=1, cutoff=0.5)
    return lowered[near[0]] if near else None


def unknown_name(kind: str, name: str, choices: Iterable[str]) -> str:
    """Return the message for a name that does not exist, with the most similar one and all choices."""
    choices = sorted(choices)
    return f"unknown {kind} '{name}'.{did_you_mean(name, choices)} Available: {', '.join(choices)}"


def check_choice(kind: str, name: str, choices: Iterable[str]) -> None:
    """Raise ConfigError, with the message of :func:`unknown_name`, unless ``name`` is one of ``choices``."""
    choices = list(choices)
    if name not in choices:
        raise ConfigError([unknown_name(kind, name, choices)])


def check_share(name: str, value: float) -> None:
    """Raise ConfigError unless ``value`` is between 0 and 1; suggest the fraction for a percentage."""
    if not 0 <= value <= 1:
        near = f"; did you mean {value / 100:g}?" if 1 < value <= 100 else ""
        raise ConfigError([f"{name} must be between 0 and 1, got {value:g}{near}"])


def check_type(name: str, value: Any, kind: type | tuple[type, ...], expected: str) -> None:
    """Raise TypeError unless an argument has the right type.

    Args:
        name: of the argument.
        value: what was given.
        kind: type or types that are accepted.
        expected: the same in words, and how to get it.
    """
    if not isinstance(value, kind):
        raise TypeError(f"{name}: expected {expected}, got {type(value).__name__}")


# What to write to set an option: a flag for somebody at the command line, a keyword for somebody in Python

_flags = [False]


@contextmanager
def command_line() -> Iterator[None]:
    """While this lasts, messages name options by their flags."""
    _flags.append(True)
    try:
        yield
    finally:
        _flags.pop()


def either(at_command_line: str, in_python: str) -> str:
    """Return the words that the reader of the message can use."""
    return at_command_line if _flags[-1] else in_python


def setting(name: str, value: Any = True) -> str:
    """Return how to set an option of a function or command: ``--cache-views 4`` or ``cache_views=4``.

    >>> setting("cache_views", 4), setting("out", "DIR")
    ('cache_views=4', "out='DIR'")
    """
    flag = name.replace("_", "-")
    if isinstance(value, bool):
        return either(f"--{flag}" if value else f"--no-{flag}", f"{name}={value}")
    return either(f"--{flag} {shlex.quote(str(value))}", f"{name}={value!r}")


def named(name: str) -> str:
    """Return what an option is called: ``--cache-views`` or ``cache_views``."""
    return either(f"--{name.replace('_', '-')}", name)


def data_option(name: str, value: str | int) -> str:
    """Return how to set an option of a data source: ``-o unlisted=absent`` or ``unlisted="absent"``.

    >>> data_option("unlisted", "absent")
    'unlisted="absent"'
    """
    quoted = f'"{value}"' if isinstance(value, str) else value
    return either(f"-o {name}={shlex.quote(str(value))}", f"{name}={quoted}")


def part_option(part: str, name: str, value: Any) -> str:
    """Return how to set an option of the method, network or backbone: ``--set backbone.weights=none`` or
    ``backbone_options={'weights': None}``.

    >>> part_option("backbone", "weights", None)
    "backbone_options={'weights': None}"
    """
    text = {None: "none", True: "true", False: "false"}.get(value, value)
    return either(f"--set {part}.{name}={shlex.quote(str(text))}", f"{part}_options={{{name!r}: {value!r}}}")
