"""``sarb train --on-top``: a method learns what the default leaves over."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sarb.errors import unknown_name
from sarb.registry import METHODS
from sarb.settings import option_types


def put_on_top(options: dict[str, Any], given: Mapping[str, Any]) -> list[str]:
    """Turn a training of a method into one of ``auto`` with that method as its residual; return what is wrong.

    Options that the method has go to the method, the others to ``auto``.
    """
    method = options.pop("method", None)
    options.pop("network", None)
    own = options.pop("network_options")
    if method in (None, "auto"):
        return [
            "--on-top needs the method that learns on top of the default: add --method NAME or --row NAME"
        ]
    if method not in METHODS:
        return [unknown_name("method", method, METHODS)]
    problems = [f"network.{name}: --on-top always trains network ssgrl of recipe auto" for name in own]
    if given.get("network") is not None:
        problems.append("--network: --on-top always trains network ssgrl of recipe auto; leave it out")
    mine = option_types("method", method)
    tables: dict[bool, dict[str, Any]] = {True: {}, False: {}}
    for name, value in options["method_options"].items():
        tables[name in mine][name] = value
    options["method"] = "auto"
    options["method_options"] = {**tables[False], "residual": method}
    if tables[True]:
        options["method_options"]["residual_options"] = tables[True]
    return problems
