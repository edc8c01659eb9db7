"""Find out what separates the labels in a cell."""

from __future__ import annotations

import re
from collections.abc import Sequence

from sarb.data.check.problems import Problems, fault
from sarb.data.parse.messages import few
from sarb.errors import ConfigError, data_option

#: delimiter between labels -> its name in option ``label_delimiter``
DELIMITERS = {";": ";", "|": "|", ",": ",", " ": "space", "\t": "tab"}
#: delimiters that need not be declared; a space or a tab may be part of a label
CLEAR = ";|,"


def find_delimiter(
    problems: Problems, cells: Sequence[str], declared: str | None, unlisted: str | None
) -> str:
    """Return the character between labels, or an empty string if a cell is one label; raise if in doubt."""
    if declared not in ("auto", "", None):
        return _declared(declared)
    marks = [mark for mark in DELIMITERS if any(mark in cell for cell in cells)]
    if marks and marks[0] in CLEAR:
        # in "cat, dog" the space belongs to the comma
        bare = [re.sub(f"\\s*{re.escape(marks[0])}\\s*", marks[0], cell) for cell in cells]
        marks = [mark for mark in marks if any(mark in cell for cell in bare)]
    if not marks:
        return ""
    if len(marks) == 1 and marks[0] in CLEAR:
        return marks[0]
    readings = "".join(_reading(cells, mark) for mark in (*marks, ""))
    text = f"declare what separates the labels:{readings}"
    if not unlisted:
        text += (
            f"\nand add {data_option('unlisted', 'unknown')} or {data_option('unlisted', 'absent')} for labels that "
            "are not listed"
        )
    problems.raise_any()
    raise fault(problems.source, text, kind="undeclared-delimiter")


def _declared(word: str) -> str:
    marks = {word: mark for mark, word in DELIMITERS.items()} | {"none": ""}
    if word not in marks and len(word) != 1:
        raise ConfigError([f"option label_delimiter must be one character, space, tab or none, got {word!r}"])
    return marks.get(word, word)


def _reading(cells: Sequence[str], mark: str) -> str:
    names = sorted({label for cell in cells for label in split_labels(cell, mark)})
    count = f"{len(names)} {'category' if len(names) == 1 else 'categories'}"
    word = DELIMITERS.get(mark, "none")
    return f"\n  {data_option('label_delimiter', word)}: {count}: {few(names, longest=30)}"


def split_labels(cell: str, mark: str) -> list[str]:
    """Return the labels in a cell; without a delimiter, the cell is one label."""
    return [label for part in (cell.split(mark) if mark else [cell]) if (label := part.strip())]
