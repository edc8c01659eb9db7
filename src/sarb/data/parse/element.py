"""One element of a JSON array, and its fields read with a check."""

from __future__ import annotations

import reprlib
from typing import Any, NamedTuple

#: files name their images and categories by whole numbers, some by text
Identity = int | str


class Element(NamedTuple):
    """One element of an array.

    Args:
        key: of the array, empty for a top-level array.
        value: the element, decoded.
        number: its place in the array, from 0.
        line: where it starts in the file, from 1.
    """

    key: str
    value: Any
    number: int
    line: int

    @property
    def location(self) -> str:
        """``annotations[7]``, for messages: most annotation files are one long line."""
        return f"{self.key}[{self.number}]"

    def field(self, name: str) -> Any:
        """Return a field of the element, which must be an object with it; ValueError says what it is
        instead.
        """
        if not isinstance(self.value, dict):
            raise ValueError(f"is not an object: {reprlib.repr(self.value)}")
        if name not in self.value:
            raise ValueError(f"has no '{name}'")
        return self.value[name]

    def identity(self, name: str) -> Identity:
        """Return a field that is an id."""
        return checked_identity(name, self.field(name))

    def identities(self, name: str) -> list[Identity]:
        """Return a field that is a list of ids."""
        value = self.field(name)
        if not isinstance(value, list):
            raise ValueError(f"{name} is {reprlib.repr(value)}; expected a list of ids")
        return [checked_identity(f"{name}[{number}]", item) for number, item in enumerate(value)]

    def text(self, name: str) -> str:
        """Return a field that is a text."""
        value = self.field(name)
        if not isinstance(value, str) or not value.strip() or "\0" in value:
            raise ValueError(f"{name} is {reprlib.repr(value)}; expected a text")
        return value


def checked_identity(name: str, value: Any) -> Identity:
    """Return ``value`` if it can be an id; ValueError says what it is instead."""
    # not isinstance: True is an int, and 1.0 would be taken for id 1
    if type(value) is int or (type(value) is str and value):
        return value
    raise ValueError(f"{name} is {reprlib.repr(value)}; expected a whole number or a text")


def identity_order(identity: Identity) -> tuple[bool, int, str]:
    """Return the sort key of ids: numbers by value, then texts by alphabet."""
    return (True, 0, identity) if isinstance(identity, str) else (False, identity, "")
