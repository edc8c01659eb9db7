"""In which settings runs differ, in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sarb.runs.folder import RunFolder

#: settings that say where a run computes, not what
HARMLESS = ("workers", "device", "cache", "checkpoint_every")
#: what a run without an entry has
MISSING = "not set"


def settings_told(runs: Sequence[tuple[str, RunFolder]]) -> str:
    """Say in one sentence which settings of these (name, run) differ; empty if a run does not say its own."""
    tables = [dict(_settings(run)) for _, run in runs]
    if not all(run.config.get("settings") for _, run in runs):
        return ""
    parts = []
    for key in dict.fromkeys(key for table in tables for key in table):
        values = [table.get(key, MISSING) for table in tables]
        if any(value != values[0] for value in values):
            each = zip(runs, values, strict=True)
            parts.append(f"{key} ({', '.join(f'{name} {_text(value)}' for (name, _), value in each)})")
    return f"Settings that differ: {'; '.join(parts)}." if parts else "All runs have the same settings."


def _settings(run: RunFolder) -> Iterator[tuple[str, Any]]:
    """Everything that was set, flat: ``method.claims``, ``image_size``, ``-o encoding`` and so on."""
    for key, value in run.config.get("settings", {}).items():
        if isinstance(value, Mapping):
            prefix = key.removesuffix("_options").removesuffix("_scale")
            yield from ((f"{prefix}.{name}", entry) for name, entry in value.items())
        elif key not in HARMLESS:
            yield key, value
    record = run.data_record
    yield from ((f"-o {key}", str(value)) for key, value in record.get("options", {}).items())
    if record.get("known", 1) < 1 or record.get("single_positive"):
        keys = ("single_positive", "mask_seed") if record.get("single_positive") else ("known", "mask_seed")
        yield from ((f"--{key.replace('_', '-')}", record.get(key)) for key in keys)


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
