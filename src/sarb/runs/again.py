"""Train a run again on other labels: its own command, with another table and a new folder."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sarb.runs.folder import RunFolder

#: options of ``sarb train`` that describe data and folder, which are others now
REPLACED = ("--data", "-o", "--option", "--out")
#: and those that hide labels: for a study, so not on a table with answers
HIDING = ("--known", "--mask-seed")
HIDING_FLAG = "--single-positive"


def repeated(run: str | Path, *, hide: bool = False) -> list[str]:
    """Return the words of a run's command without its data and folder; none if it does not say them.

    With ``hide`` the new run hides labels like the old one.
    ``sarb train --data a.csv -o encoding=binary --out runs/a --image-size 224`` gives ``train --image-size 224``.
    """
    words = shlex.split(RunFolder(run).command or "")
    if words[:2] != ["sarb", "train"]:
        return []
    kept = ["train"]
    rest = iter(words[2:])
    for word in rest:
        if word in REPLACED or (word in HIDING and not hide):
            next(rest, None)
        elif word != HIDING_FLAG or hide:
            kept.append(word)
    return kept


def train_again(run: str | Path | None, source: str, options: Mapping[str, Any]) -> list[str]:
    """Return the words of a command that trains on ``source`` with the settings of a run, into a new folder.

    Without a run, or if it does not say how it was trained, the settings are the default ones and the folder is
    named after the source.
    """
    record = {} if run is None else RunFolder(run).data_record
    hidden = record.get("known", 1) < 1 or record.get("single_positive", False)
    hides = hidden and record.get("source") == source
    words = [] if run is None else repeated(run, hide=hides)
    out = free_folder(Path(run)) if run is not None and words else _named_after(source)
    data = ["--data", source, *(word for key, value in options.items() for word in ("-o", f"{key}={value}"))]
    return [*(words or ["train"]), *data, "--out", str(out)]


def free_folder(run: Path) -> Path:
    """Return the first of ``RUN-2``, ``RUN-3`` … that does not exist; after ``RUN-2`` comes ``RUN-3``."""
    name = re.sub(r"-\d+$", "", run.name)
    if not run.with_name(name).exists():  # the number is part of the name
        name = run.name
    number = 2
    while (folder := run.with_name(f"{name}-{number}")).exists():
        number += 1
    return folder


def _named_after(source: str) -> Path:
    """Return ``runs/labels`` for ``photos/labels.csv``, or a free name like it."""
    place = source.rpartition(":")[2]
    folder = Path("runs") / (Path(place).stem or "first")
    return free_folder(folder) if folder.exists() else folder
