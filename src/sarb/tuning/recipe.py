"""Settings as a recipe, so that ``sarb train best.toml`` repeats a trial."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from sarb.settings import Settings

#: table of a recipe -> field of :class:`Settings`
OPTIONS = {
    "method": "method_options",
    "network": "network_options",
    "backbone": "backbone_options",
    "lr": "lr_scale",
}


def recipe_text(settings: Settings, data: Mapping[str, Any], head: str) -> str:
    """Return all settings as TOML; what is None is left out, because a recipe has no word for it.

    Args:
        settings: of the run.
        data: options of the data source.
        head: comment above it.
    """
    values = settings.as_dict()
    tables = {"train": {key: value for key, value in values.items() if key not in OPTIONS.values()}}
    tables |= {name: values[key] for name, key in OPTIONS.items()} | {"data": dict(data)}
    parts = ["\n".join(f"# {line}".rstrip() for line in head.splitlines())]
    for name, table in tables.items():
        lines = [f"{_key(key)} = {toml(value)}" for key, value in table.items() if value is not None]
        if lines:
            parts.append("\n".join([f"[{name}]", *lines]))
    return "\n\n".join(parts) + "\n"


def toml(value: Any) -> str:
    """A value in TOML.

    >>> toml(1e-05), toml(True), toml({"a": [1, "b"]})
    ('1e-05', 'true', '{a = [1, "b"]}')
    """
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_key(key)} = {toml(entry)}" for key, entry in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(toml, value)) + "]"
    if isinstance(value, (int, float)):
        return repr(value)
    return json.dumps(str(value), ensure_ascii=False).replace("\x7f", "\\u007f")


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else toml(name)
