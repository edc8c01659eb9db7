"""Hints for a wrong command line: which option was probably meant."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from typing import Any


def usage_hint(error: Any, words: Sequence[str]) -> str:
    """Return a hint if a data option was given without ``-o`` or data without ``--data``; else "".

    Args:
        error: the parser's usage error.
        words: the command line.
    """
    command = getattr(getattr(error, "ctx", None), "command", None)
    flags = {flag for parameter in getattr(command, "params", []) for flag in parameter.opts}
    option = getattr(error, "option_name", None)
    if option is not None and "-o" in flags:
        return _option_hint(option, words)
    extra = re.search(r"unexpected extra argument\S* \((\S+?)[ )]", getattr(error, "message", ""))
    if extra is None:
        return ""
    if "=" in extra[1] and "-o" in flags:
        return f"Options of the data source go after -o: -o {extra[1]}"
    return f"Give the data source as an option: --data {extra[1]}" if "--data" in flags else ""


def _option_hint(option: str, words: Sequence[str]) -> str:
    """``--encoding binary`` -> ``-o encoding=binary``, if some reader has such an option."""
    from sarb.data.loading import DATASETS, option_names

    name = option.lstrip("-").replace("-", "_")
    if not any(name in option_names(reader) for reader in DATASETS):
        return ""
    return f"This is an option of the data source: -o {name}={_value_of(option, words)}"


def _value_of(option: str, words: Sequence[str]) -> str:
    for word, following in itertools.zip_longest(words, words[1:], fillvalue="VALUE"):
        flag, equals, value = word.partition("=")
        if flag == option:
            return value if equals else following
    return "VALUE"
