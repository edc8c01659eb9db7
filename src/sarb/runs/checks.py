"""The words of which schemas are made: what a value in a JSON file must be, and where it is wrong.

A check is a function of a value and its place in the file; it raises :class:`WrongValueError`.

>>> table({"size": whole(1, 10)})({"size": 20}, "")
Traceback (most recent call last):
sarb.runs.checks.WrongValueError: 'size' must be a whole number from 1 to 10, got 20
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from sarb.errors import DataError

Check = Callable[[Any, str], None]

#: longest text in a file of ours: a command line with many paths
LONGEST = 1 << 20
#: deepest nesting of a value that we use, far below what Python can print again
DEEPEST = 40


class WrongValueError(ValueError):
    """A value that is not what its field must be."""

    def __init__(self, where: str, expected: str, value: Any) -> None:
        found = json.dumps(value, default=str) if _shallow(value) else "something nested too deeply"
        found = found if len(found) < 60 else f"{found[:57]}..."
        named = f"'{where}'" if where else "the content"
        super().__init__(f"{named} must be {expected}, got {found}")


def _shallow(value: Any, left: int = DEEPEST) -> bool:
    """Whether a value of JSON is nested no deeper than allowed."""
    if isinstance(value, dict):
        return left > 0 and all(_shallow(each, left - 1) for each in value.values())
    return not isinstance(value, list) or (left > 0 and all(_shallow(each, left - 1) for each in value))


def anything(value: Any, where: str) -> None:
    """Any value that is not nested too deeply."""
    if not _shallow(value):
        raise WrongValueError(where, f"nested at most {DEEPEST} levels deep", value)


def flag(value: Any, where: str) -> None:
    """True or false."""
    if not isinstance(value, bool):
        raise WrongValueError(where, "true or false", value)


def nothing(value: Any, where: str) -> None:
    """Null."""
    if value is not None:
        raise WrongValueError(where, "null", value)


def whole(least: int, most: int) -> Check:
    """A whole number within bounds."""

    def check(value: Any, where: str) -> None:
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise WrongValueError(where, f"a whole number from {least:,} to {most:,}", value)

    return check


def number(least: float = -math.inf, most: float = math.inf, *, finite: bool = True) -> Check:
    """A number within bounds; with ``finite=False`` also NaN and infinity."""
    words = "a number" if math.isinf(least) else f"a number from {least:g} to {most:g}"

    def check(value: Any, where: str) -> None:
        plain = isinstance(value, (int, float)) and not isinstance(value, bool)
        if not plain or (finite and not (abs(value) < 1e300 and least <= value <= most)):
            raise WrongValueError(where, words, value)

    return check


def text(longest: int = LONGEST, pattern: str = "") -> Check:
    """Text without zero bytes, of a limited length; ``pattern`` is a regular expression for all of it."""

    def check(value: Any, where: str) -> None:
        if not isinstance(value, str) or len(value) > longest or "\0" in value:
            raise WrongValueError(where, f"text of at most {longest:,} characters", value)
        if pattern and not re.fullmatch(pattern, value):
            raise WrongValueError(where, f"text like {pattern}", value)

    return check


def choice(*names: str) -> Check:
    """One of these names."""

    def check(value: Any, where: str) -> None:
        if not isinstance(value, str) or value not in names:
            raise WrongValueError(where, f"one of {', '.join(names)}", value)

    return check


def any_of(expected: str, *checks: Check) -> Check:
    """A value that passes one of the checks; ``expected`` says it in words."""

    def check(value: Any, where: str) -> None:
        for each in checks:
            try:
                return each(value, where)
            except WrongValueError:
                continue
        raise WrongValueError(where, expected, value)

    return check


def rows(item: Check, most: int, least: int = 0) -> Check:
    """A list of items."""

    def check(value: Any, where: str) -> None:
        if not isinstance(value, list) or not least <= len(value) <= most:
            raise WrongValueError(where, f"a list of {least:,} to {most:,} items", value)
        for place, each in enumerate(value):
            item(each, f"{where}[{place}]")

    return check


def names(most: int) -> Check:
    """A list of different, non-empty names."""
    each = rows(text(10_000, r"(?s).+"), most, 1)

    def check(value: Any, where: str) -> None:
        each(value, where)
        if len(set(value)) < len(value):
            raise WrongValueError(where, "different names", _twice(value))

    return check


def table(fields: Mapping[str, Check], needed: Collection[str] = (), rest: Check = anything) -> Check:
    """An object with these fields; the others pass the check ``rest``."""

    def check(value: Any, where: str) -> None:
        if not isinstance(value, dict):
            raise WrongValueError(where, "an object {…}", value)
        for name in needed:
            if name not in value:
                raise WrongValueError(where, f"an object with the field '{name}'", list(value)[:10])
        for name, each in value.items():
            fields.get(name, rest)(each, f"{where}.{name}" if where else name)

    return check


def read_checked(file: Path, schema: Check, most: int) -> Any:
    """Read a JSON file of at most so many bytes and check it; an error names file and field."""
    try:
        if file.stat().st_size > most:
            raise ValueError(f"it has {file.stat().st_size:,} bytes, and at most {most:,} are expected")
        value = parse(file.read_bytes())
        schema(value, "")
    except WrongValueError as error:
        raise DataError(f"{file}: {error}") from error
    except (OSError, ValueError) as error:
        raise DataError(f"{file}: cannot be read ({getattr(error, 'strerror', None) or error})") from error
    return value


def parse(content: bytes) -> Any:
    """JSON without a field that is there twice, without half characters; ValueError for anything else."""
    try:
        written = content.decode("utf-8")
        value = json.loads(written, object_pairs_hook=_once)
        if "\\ud" in written.lower():  # half of a character cannot be printed or written again
            json.dumps(value, ensure_ascii=False).encode()
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except UnicodeEncodeError:
        raise ValueError("it holds half a character (a lone surrogate)") from None
    return value


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError(f"field '{_twice([name for name, _ in pairs])}' is there twice")
    return found


def _twice(found: Sequence[str]) -> str:
    """The first name that is there a second time."""
    seen: set[str] = set()
    return next(name for name in found if name in seen or seen.add(name))  # type: ignore[func-returns-value]
