"""Errors a user can cause. The command line prints them as one clear message and exits with code 2."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from typing import Any


class SarbError(Exception):
    """Bad input or usage: the message says what was wrong, where, and what to do."""


class DataError(SarbError):
    """A data source that cannot be read, or can be read in more than one way.

    ``findings`` holds the same as :class:`sarb.data.check.problems.Finding` objects, where the reader knows
    the place.
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
    """Return ``' Did you mean X?'`` for the nearest choice, or an empty string.

    >>> did_you_mean("sabr", ["sarb", "partial_bce"])
    " Did you mean 'sarb'?"
    """
    near = near_name(name, choices)
    return f" Did you mean '{near}'?" if near is not None else ""


def near_name(name: str, choices: Iterable[str]) -> str | None:
    """Return the choice that is spelled most like ``name``, or None."""
    lowered = {choice.lower(): choice for choice in choices}
    near = difflib.get_close_matches(name.lower(), list(lowered), n=1, cutoff=0.5)
    return lowered[near[0]] if near else None


def unknown_name(kind: str, name: str, choices: Iterable[str]) -> str:
    """Return the one message used everywhere for a name that is not in a registry."""
    choices = sorted(choices)
    return f"unknown {kind} '{name}'.{did_you_mean(name, choices)} Available: {', '.join(choices)}"


def check_choice(kind: str, name: str, choices: Iterable[str]) -> None:
    """Raise the message of :func:`unknown_name` unless ``name`` is one of ``choices``."""
    choices = list(choices)
    if name not in choices:
        raise ConfigError([unknown_name(kind, name, choices)])


def check_share(name: str, value: float) -> None:
    """Raise unless ``value`` is a share between 0 and 1; a percentage is recognised."""
    if not 0 <= value <= 1:
        near = f"; did you mean {value / 100:g}?" if 1 < value <= 100 else ""
        raise ConfigError([f"{name} is a share between 0 and 1, got {value:g}{near}"])
