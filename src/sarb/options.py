"""Options by name: keyword arguments and dataclass fields, read from text and checked by their type hints.

The same rules hold for settings, methods, networks, backbones and readers. A hint may be ``bool``, ``int``,
``float``, ``str``, ``Path``, ``Literal[...]``, ``list[...]``, ``tuple[...]``, ``dict[str, ...]``, a union of
these, ``None`` included, or ``Annotated[float, AtLeast(0)]``. Any other class is checked with ``isinstance``;
an option without a hint takes any value.
"""

from __future__ import annotations

import dataclasses
import inspect
import math
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from sarb.errors import unknown_name

YES = ("true", "yes", "on", "1")
NO = ("false", "no", "off", "0")
#: what a message calls a type where the value was typed at a shell
TEXT_WORDS: Mapping[Any, str] = {bool: "true or false", int: "a whole number", float: "a number"}


@dataclass(frozen=True)
class AtLeast:
    """A lower bound, for ``Annotated[float, AtLeast(0)]``; the number must be finite too."""

    bound: float


# Which options there are


def hints_of(made: Callable[..., Any], keyword_only: bool = False) -> dict[str, Any]:
    """Return the resolved type hint of each option of a function, a class or a dataclass.

    Args:
        made: what takes the options.
        keyword_only: leave out the parameters that can be given by position.
    """
    if dataclasses.is_dataclass(made):
        hints = typing.get_type_hints(made, include_extras=True)
        return {field.name: hints[field.name] for field in dataclasses.fields(made)}
    function = inspect.unwrap(made.__init__ if isinstance(made, type) else made)  # type: ignore[misc]
    names = getattr(function, "__globals__", {})
    return {
        parameter.name: _resolve(parameter.annotation, names)
        for parameter in inspect.signature(made).parameters.values()
        if parameter.kind is parameter.KEYWORD_ONLY
        or (parameter.kind is parameter.POSITIONAL_OR_KEYWORD and not keyword_only)
    }


def _resolve(annotation: Any, names: dict[str, Any]) -> Any:
    """Return the type that an annotation stands for.

    Each is resolved by itself: a name imported for type checkers only, in the hint of another parameter, must
    not get in the way.
    """
    if annotation is inspect.Parameter.empty:
        return Any

    def holder() -> None: ...

    holder.__annotations__ = {"option": annotation}
    try:
        return typing.get_type_hints(holder, names, include_extras=True)["option"]
    except NameError:
        return Any


# Text to values


def from_text(text: str, hint: Any) -> Any:
    """Convert text to the hinted type; text that cannot be converted is returned as it is.

    >>> from_text("0.1", float | None), from_text("none", float | None), from_text("1,2", list[int])
    (0.1, None, [1, 2])
    """
    try:
        return _read(text, hint)
    except ValueError:
        return text


def _read(text: str, hint: Any) -> Any:
    """Convert text to the hinted type, or raise ValueError."""
    hint = bare(hint)
    origin = typing.get_origin(hint)
    if _is_union(hint):
        return _read_union(text, hint)
    if origin is Literal:
        return _read_choice(text, hint)
    if origin in (list, tuple, dict):
        return _read_items(text, hint)
    if hint is type(None):
        return _read_choice(text, Literal[None])
    if hint is bool:
        if text.lower() not in YES + NO:
            raise ValueError(text)
        return text.lower() in YES
    return hint(text) if hint in (int, float, Path) else text


def _read_union(text: str, hint: Any) -> Any:
    """The first member that reads the text; None comes first, or ``str | None`` would keep the word "none"."""
    for member in sorted(typing.get_args(hint), key=lambda member: member is not type(None)):
        try:
            return _read(text, member)
        except ValueError:
            continue
    raise ValueError(text)


def _read_choice(text: str, hint: Any) -> Any:
    for choice in typing.get_args(hint):
        if text == str(choice) or (choice is None and text.lower() == "none"):
            return choice
    raise ValueError(text)


def _read_items(text: str, hint: Any) -> Any:
    """``1,2`` for a list or a tuple, ``a=1,b=2`` for a dict."""
    origin = typing.get_origin(hint)
    arguments = typing.get_args(hint)
    parts = [part.strip() for part in text.split(",")] if text.strip() else []
    if origin is dict:
        pairs = [part.partition("=") for part in parts]
        if not all(equals for _, equals, _ in pairs):
            raise ValueError(text)
        return {key.strip(): _read(value.strip(), arguments[1]) for key, _, value in pairs}
    if origin is tuple and arguments[-1] is not ...:
        return tuple(_read(part, item) for part, item in zip(parts, arguments, strict=True))
    return origin(_read(part, arguments[0]) for part in parts)


def plain_number(value: Any) -> Any:
    """Return a NumPy number as a Python number, which JSON can hold; anything else as it is."""
    if hasattr(value, "dtype") and getattr(value, "ndim", None) == 0:
        return value.item()
    return value


# Checks


def check(
    values: Mapping[str, Any],
    hints: Mapping[str, Any],
    *,
    unknown: Callable[[str], str],
    label: Callable[[str], str] = str,
    choice_label: Callable[[str], str] | None = None,
    words: Mapping[Any, str] | None = None,
) -> list[str]:
    """Return everything that is wrong with these options, one message each.

    Args:
        values: option -> value.
        hints: option -> type hint, see :func:`hints_of`.
        unknown: the message for an option that does not exist.
        label: what a message calls an option.
        choice_label: the same before a value that is none of the choices; ``label`` if left out.
        words: type -> what a message calls it; its Python name if left out.
    """
    problems = []
    for name, value in values.items():
        if name not in hints:
            problems.append(unknown(name))
        elif matches(value, hints[name]):
            problems += _bound_problems(label(name), value, hints[name])
        elif choices := _choices(hints[name]):
            problems.append(unknown_name((choice_label or label)(name), str(value), choices))
        else:
            problems.append(f"{label(name)} must be {describe(hints[name], words)}, got {value!r}")
    return problems


def matches(value: Any, hint: Any) -> bool:
    """Whether a value is of the hinted type.

    An int is a float, a bool is no number. Text is a path and a path is text. A list is a tuple, since JSON
    and TOML have no tuples.
    """
    hint = bare(hint)
    if hint is Any:
        return True
    if _is_union(hint):
        return any(matches(value, member) for member in typing.get_args(hint))
    origin = typing.get_origin(hint)
    if origin is Literal:
        return any(type(value) is type(choice) and value == choice for choice in typing.get_args(hint))
    if origin in (list, tuple, dict):
        return _items_match(value, hint)
    if hint in (int, float):
        return isinstance(value, (int, hint)) and not isinstance(value, bool)
    if hint in (str, Path):
        return isinstance(value, (str, Path))
    try:
        return isinstance(value, origin or hint)
    except TypeError:  # a hint that cannot be checked, such as a protocol
        return True


def _items_match(value: Any, hint: Any) -> bool:
    origin = typing.get_origin(hint)
    arguments = typing.get_args(hint)
    if origin is dict:
        return isinstance(value, dict) and all(
            matches(key, arguments[0]) and matches(item, arguments[1]) for key, item in value.items()
        )
    if not isinstance(value, (list, tuple)):
        return False
    if origin is tuple and arguments[-1] is not ...:
        return len(value) == len(arguments) and all(map(matches, value, arguments))
    return all(matches(item, arguments[0]) for item in value)


def _bound_problems(label: str, value: Any, hint: Any) -> list[str]:
    """Bounds of the hint itself, or of the members of a union that the value matches."""
    if _is_union(hint):
        members = [member for member in typing.get_args(hint) if matches(value, member)]
        return [problem for member in members for problem in _bound_problems(label, value, member)]
    bounds = [note.bound for note in getattr(hint, "__metadata__", ()) if isinstance(note, AtLeast)]
    if bounds and not math.isfinite(value):
        return [f"{label} must be finite, got {value}"]
    return [f"{label} must be at least {bound:g}, got {value}" for bound in bounds if value < bound]


def _choices(hint: Any) -> list[str]:
    """The words of ``Literal[...]`` or ``Literal[...] | None``; none where other types are allowed as well."""
    members = [member for member in _members(hint) if member is not type(None)]
    if any(typing.get_origin(member) is not Literal for member in members):
        return []
    return [str(choice) for member in members for choice in typing.get_args(member)]


def describe(hint: Any, words: Mapping[Any, str] | None = None) -> str:
    """Return what a message calls a type.

    >>> describe(float | None), describe(float | None, TEXT_WORDS)
    ('float | None', 'a number')
    """
    members = _members(hint)
    if words is None:
        return " | ".join(_type_name(member) for member in members)
    given = [member for member in members if member is not type(None)]
    return " or ".join(words.get(member, _type_name(member)) for member in given)


def _type_name(hint: Any) -> str:
    if hint is type(None):
        return "None"
    return inspect.formatannotation(hint).removeprefix("pathlib.")


# Type hints


def bare(hint: Any) -> Any:
    """``Annotated[X, ...]`` -> X."""
    return typing.get_args(hint)[0] if typing.get_origin(hint) is Annotated else hint


def _is_union(hint: Any) -> bool:
    return typing.get_origin(hint) in (typing.Union, types.UnionType)


def _members(hint: Any) -> list[Any]:
    """The types of a union, or the one type."""
    hint = bare(hint)
    return [bare(member) for member in typing.get_args(hint)] if _is_union(hint) else [hint]
