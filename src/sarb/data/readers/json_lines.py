"""Rows of a JSON lines file (one object per line), as text."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

from sarb.data.check.problems import fault
from sarb.data.parse.rows import Rows
from sarb.data.parse.text import survey, unreadable, wrong_charset
from sarb.data.readers.parquet import nested_column
from sarb.files import open_text

_SPACED = re.compile(r'"\s+:')
#: keep the spelling of numbers; NaN is blank
_JSON = json.JSONDecoder(
    parse_int=str, parse_float=str, parse_constant=lambda word: None if word == "NaN" else word
)
_TYPED: dict[Any, Any] = {None: "", True: "True", False: "False"}


def json_rows(path: Path, charset: str | None, ignore: Collection[str]) -> Rows:
    """Yield a header with the keys of all lines, then the lines; a missing key is a blank cell.

    The file is read twice, because a million objects take ten times the memory of their text.
    """
    codec = survey(path, charset)
    keys: dict[str, None] = {}
    for _, row in _json_lines(path, codec, ignore):
        if not row.keys() <= keys.keys():
            keys.update(dict.fromkeys(row))
    if keys:
        yield 1, list(keys)
    for number, row in _json_lines(path, codec, ignore):
        cells: list[Any] = [_TYPED.get(value, value) for value in map(row.get, keys)]
        yield number, cells


def _json_lines(path: Path, codec: str, ignore: Collection[str]) -> Iterator[tuple[int, dict[str, Any]]]:
    try:
        with open_text(path, codec, "\n") as file:
            for number, line in enumerate(file, 1):
                if line.strip():
                    yield number, _json_line(path, number, line, ignore)
    except UnicodeError as error:
        raise wrong_charset(path, codec, error) from None
    except OSError as error:
        raise unreadable(path, error) from None


def _json_line(path: Path, number: int, line: str, ignore: Collection[str]) -> dict[str, Any]:
    try:
        row = _JSON.decode(line.rstrip())
        # the checks below are slow, so run them only where the text suggests a problem
        if isinstance(row, dict) and (line.count('":') != len(row) or _SPACED.search(line)):
            json.loads(line, object_pairs_hook=_pairs)
        if "\\u" in line:
            json.dumps(row, ensure_ascii=False).encode()  # fails for half a surrogate pair
    except json.JSONDecodeError as error:
        text = f"not valid JSON: {error.msg}"
        raise fault(path, text, line=number, column=error.colno, kind="bad-json") from None
    except (RecursionError, ValueError) as error:
        reason = "nested too deeply" if isinstance(error, RecursionError) else str(error)[:200]
        raise fault(path, f"not valid JSON: {reason}", line=number, kind="bad-json") from None
    if not isinstance(row, dict):
        raise fault(path, "expected an object {…} on every line", line=number, kind="bad-json")
    for key, value in row.items() if "[" in line or line.count("{") > 1 else ():
        if isinstance(value, dict | list):
            if key not in ignore:
                raise nested_column(path, key, "a list or an object", line=number)
            row[key] = None
    return row


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Refuse an object in which a key occurs twice; the JSON decoder would keep the last one."""
    row = dict(pairs)
    if len(row) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"'{twice}' occurs twice in one object")
    return row
