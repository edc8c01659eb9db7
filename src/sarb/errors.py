"""Errors that a user can cause. The command line prints the message without a traceback and exits with 2."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
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
