"""The classes of Open Images: ids such as ``/m/0bt9lr``, and their display names."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from sarb.data.check.problems import Problems, fault
from sarb.data.parse.text import csv_rows
from sarb.errors import DataError, did_you_mean


def class_names(path: Path, charset: str | None) -> dict[str, str]:
    """Return id -> display name, in order; a name of several ids gets the id: ``Bishop (/m/01b7b)``."""
    problems = Problems(path)
    names: dict[str, str] = {}
    lines: dict[str, int] = {}
    for line, row in csv_rows(path, charset=charset):
        if line == 1 and row[0].strip() == "LabelName":
            continue
        label, name = map(str.strip, row) if len(row) == 2 else ("", "")
        if not label.startswith("/") or not name:
            problems.add(
                f"{row!r:.60}; expected an id and a name, such as /m/0bt9lr,Dog", kind="bad-row", line=line
            )
        elif names.setdefault(label, name) != name:
            text = f"'{label[:60]}' is '{name[:60]}' here and '{names[label][:60]}' on line {lines[label]}"
            problems.add(text, kind="conflict", line=line)
        lines.setdefault(label, line)
    problems.raise_any()
    if not names:
        raise fault(path, "contains no class; expected lines such as /m/0bt9lr,Dog", kind="empty")
    times = Counter(names.values())
    return {label: f"{name} ({label})" if times[name] > 1 else name for label, name in names.items()}


def chosen_names(names: list[str] | None, shown: dict[str, str]) -> list[str] | None:
    """Return the display names of categories given by name or id; raise for unknown ones."""
    known = dict.fromkeys([*shown, *shown.values()])
    wrong: list[str] = []
    for name in (name for name in names or () if name not in known):
        several = " or ".join(text for label, text in shown.items() if text == f"{name} ({label})")
        near = f" Choose {several}." if several else did_you_mean(name, known)
        wrong.append(f"option categories: '{name[:60]}' is not in the class descriptions.{near}")
    result = [shown.get(name, name) for name in names or ()]
    if wrong:
        raise DataError("\n".join(wrong))
    if len(set(result)) < len(result):
        raise DataError("option categories: a category is listed twice, by its id and by its name")
    return None if names is None else result
