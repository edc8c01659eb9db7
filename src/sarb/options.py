"""Options: keyword arguments and dataclass fields, converted from text and checked by their type hints.

The same rules apply to settings, methods, networks, backbones and readers. A hint is ``bool``, ``int``,
``float``, ``str``, ``Path``, ``Literal[...]``, ``list[...]``, ``tuple[...]``, ``dict[str, ...]``,
``Annotated[float, AtLeast(0)]``, or a union of these and ``None``. Any other class is checked with
``isinstance``; an option without a hint accepts any value.
"""

from __future__ import annotations

import dataclasses
import functools
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
#: what messages call a type; other types go by their Python name
PYTHON_WORDS: Mapping[Any, str] = {
    type(None): "None",
    list: "a list of {}",
    tuple: "a list of {count} values ({})",
    dict: "a dict of {}",
}
#: the same for values typed at a shell
TEXT_WORDS: Mapping[Any, str] = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "text",
    Path: "a path",
    list: "values separated by commas, each {}",
    tuple: "{count} values separated by commas ({})",
    dict: "name=value pairs separated by commas, each value {}",
}


@dataclass(frozen=True)
class AtLeast:
    """A lower bound, for ``Annotated[float, AtLeast(0)]``; the number must be finite too."""

    bound: float


@dataclass(frozen=True)
class AtMost:
    """An upper bound, for ``Annotated[int, AtMost(100)]``."""

    bound: float


# Which options there are


def hints_of(made: Callable[..., Any], keyword_only: bool = False) -> dict[str, Any]:
    """Return the resolved type hint of each option of a function, a class or a dataclass.

    Args:
        made: the function or class.
        keyword_only: leave out parameters that can be passed by position.
    """
    if dataclasses.is_dataclass(made):
        hints = typing.get_type_hints(made, include_extras=True)
        return {field.name: hints[field.name] for field in dataclasses.fields(made)}
    inner = made.func if isinstance(made, functools.partial) else made
    function = inspect.unwrap(inner.__init__ if isinstance(inner, type) else inner)  # type: ignore[misc]
    names = getattr(function, "__globals__", {})
    return {
        parameter.name: _resolve(parameter.annotation, names)
        for parameter in inspect.signature(made).parameters.values()
        if parameter.kind is parameter.KEYWORD_ONLY
        or (parameter.kind is parameter.POSITIONAL_OR_KEYWORD and not keyword_only)
    }


def _resolve(annotation: Any, names: dict[str, Any]) -> Any:
    """Return the type of an annotation, or Any if it uses a name that is imported for type checkers only.

    Each annotation is resolved by itself, so that such a name in one does not hide the types of the others.
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
    """Convert text to the hinted type; return it unchanged if it cannot be converted.

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
    """Try the members in order, but None first: ``str | None`` would keep the word "none" otherwise."""
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
    """Convert a NumPy number to a Python number, which JSON can hold; return anything else unchanged."""
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
    words: Mapping[Any, str] = PYTHON_WORDS,
) -> list[str]:
    """Check options by name and return one message per problem.

    Args:
        values: option -> value.
        hints: option -> type hint, see :func:`hints_of`.
        unknown: the message for an option that does not exist.
        label: what a message calls an option.
        choice_label: the same in "unknown ... 'value'", for a wrong choice; ``label`` by default.
        words: type -> what a message calls it.
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
    """Return whether a value has the hinted type.

    An int is accepted as a float, but a bool is not a number. Text and paths are interchangeable, and so are
    lists and tuples, since JSON and TOML have neither paths nor tuples.
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
    """Check the bounds of a hint, or of those members of a union that the value matches."""
    if _is_union(hint):
        members = [member for member in typing.get_args(hint) if matches(value, member)]
        return [problem for member in members for problem in _bound_problems(label, value, member)]
    bounds = [note.bound for note in getattr(hint, "__metadata__", ()) if isinstance(note, AtLeast)]
    if bounds and not math.isfinite(value):
        return [f"{label} must be finite, got {value}"]
    problems = [f"{label} must be at least {bound:g}, got {value}" for bound in bounds if value < bound]
    bounds = [note.bound for note in getattr(hint, "__metadata__", ()) if isinstance(note, AtMost)]
    return problems + [f"{label} must be at most {bound:g}, got {value}" for bound in bounds if value > bound]


def _choices(hint: Any) -> list[str]:
    """Return the choices if the hint is ``Literal[...]`` or ``Literal[...] | None``, else an empty list."""
    members = [member for member in _members(hint) if member is not type(None)]
    if any(typing.get_origin(member) is not Literal for member in members):
        return []
    return [str(choice) for member in members for choice in typing.get_args(member)]


def describe(hint: Any, words: Mapping[Any, str] = PYTHON_WORDS) -> str:
    """Return what a message calls a type.

    >>> describe(float | str | None), describe(list[int] | None, TEXT_WORDS)
    ('float, str or None', 'values separated by commas, each a whole number')
    """
    members = [member for member in _members(hint) if member is not type(None) or member in words]
    return _any_of([_describe_one(member, words) for member in members])


def _describe_one(hint: Any, words: Mapping[Any, str]) -> str:
    origin = typing.get_origin(hint)
    arguments = typing.get_args(hint)
    if origin is Literal:
        return _any_of([repr(choice) for choice in arguments])
    if origin is tuple and arguments[-1] is not ...:
        items = ", ".join(describe(argument, words) for argument in arguments)
        return words[tuple].format(items, count=len(arguments))
    if origin in (list, tuple):
        return words[list].format(describe(arguments[0], words))
    if origin is dict:
        return words[dict].format(describe(arguments[1], words))
    if hint in (list, tuple, dict):  # without the types of the items
        return f"a {hint.__name__}"
    return words[hint] if hint in words else str(getattr(hint, "__name__", hint))


def _any_of(names: list[str]) -> str:
    """``["a", "b", "c"]`` -> "a, b or c"."""
    return " or ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))


# Type hints


def bare(hint: Any) -> Any:
    """``Annotated[X, ...]`` -> X."""
    return typing.get_args(hint)[0] if typing.get_origin(hint) is Annotated else hint


def _is_union(hint: Any) -> bool:
    return typing.get_origin(hint) in (typing.Union, types.UnionType)


def _members(hint: Any) -> list[Any]:
    """Return the types of a union, or the type itself in a list."""
    hint = bare(hint)
    return [bare(member) for member in typing.get_args(hint)] if _is_union(hint) else [hint]
