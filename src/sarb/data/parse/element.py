"""One element of a JSON array, with methods that check the fields they return."""

from __future__ import annotations

import reprlib
from typing import Any, NamedTuple

#: most files identify images and categories by integers, some by strings
Identity = int | str


class Element(NamedTuple):
    """One element of an array.

    Args:
        key: key of the array, empty for a top-level array.
        value: the decoded element.
        number: its index in the array, from 0.
        line: the line of the file on which it starts, from 1.
    """

    key: str
    value: Any
    number: int
    line: int

    @property
    def location(self) -> str:
        """``annotations[7]``, for messages: many annotation files are one long line."""
        return f"{self.key}[{self.number}]"

    def field(self, name: str) -> Any:
        """Return a field; raise ValueError if the element is not an object or lacks the field."""
        if not isinstance(self.value, dict):
            raise ValueError(f"is not an object: {reprlib.repr(self.value)}")
        if name not in self.value:
            raise ValueError(f"has no '{name}'")
        return self.value[name]

    def identity(self, name: str) -> Identity:
        """Return a field that must be an id."""
        return checked_identity(name, self.field(name))

    def identities(self, name: str) -> list[Identity]:
        """Return a field that must be a list of ids."""
        value = self.field(name)
        if not isinstance(value, list):
            raise ValueError(f"{name} is {reprlib.repr(value)}; expected a list of ids")
        return [checked_identity(f"{name}[{number}]", item) for number, item in enumerate(value)]

    def text(self, name: str) -> str:
        """Return a field that must be a non-empty string."""
        value = self.field(name)
        if not isinstance(value, str) or not value.strip() or "\0" in value:
            raise ValueError(f"{name} is {reprlib.repr(value)}; expected a string")
        return value


def checked_identity(name: str, value: Any) -> Identity:
    """Return ``value`` if it can be an id; raise ValueError otherwise."""
    # not isinstance: True is an int
    if type(value) is int or (type(value) is str and value):
        return value
    raise ValueError(f"{name} is {reprlib.repr(value)}; expected an integer or a string")


def identity_order(identity: Identity) -> tuple[bool, int, str]:
    """Return the sort key of an id: integers by value, then strings in alphabetical order."""
    return (True, 0, identity) if isinstance(identity, str) else (False, identity, "")
