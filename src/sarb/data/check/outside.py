"""Image names that lead out of their folder: counted, or refused with ``outside=refuse``."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from sarb.data.check.entries import Entry
from sarb.data.check.problems import READ_AS, Problems, gathering
from sarb.data.dataset import Data, Dataset
from sarb.errors import check_choice, data_option

#: values of option ``outside``
CHOICES = ("allow", "refuse")


def leaves(name: str) -> str:
    """Return how a name leaves its folder, in words; empty if it does not.

    >>> leaves("../a.jpg"), leaves("b/../a.jpg")
    ("points outside the image folder ('..')", '')
    """
    if not (name[:1] in ("/", "\\") or ".." in name or name[1:2] == ":"):
        return ""
    plain = name.replace("\\", "/")
    if plain.startswith("/") or (plain[1:3] == ":/" and plain[0].isalpha()):
        return "is an absolute path; use a path relative to the image folder"
    if os.path.normpath(plain).split("/")[0] == "..":
        return "points outside the image folder ('..')"
    return ""


def check_outside(problems: Problems, data: Data, outside: str) -> Data:
    """Count the images whose names are absolute or lead outside their folder, or refuse them.

    Args:
        problems: collects the line that counts them, or an error for each.
        data: from a reader.
        outside: ``allow`` or ``refuse``; the latter refuses symbolic links that lead outside as well.

    Returns:
        the data without what was refused, so that nobody opens it while problems are gathered.
    """
    check_choice("value of option outside:", outside, CHOICES)
    if outside == "refuse":
        kept: dict[str, Any] = {split: _inside(problems, part) for split, part in data.splits.items()}
        return replace(data, **kept)
    gathered = gathering()
    if gathered is None or not gathered.detailed:  # `sarb data check` names each of them
        _count(problems, list(data.splits.values()))
    return data


def _count(problems: Problems, datasets: Sequence[Dataset]) -> None:
    for root in dict.fromkeys(dataset.root for dataset in datasets):
        names = [name for dataset in datasets if dataset.root == root for name in dataset.labels.paths]
        count = sum(1 for name in names if leaves(name))
        if count:
            problems.add(
                f"{count:,} of {len(names):,} image paths are absolute or lead outside {root}; "
                f"{data_option('outside', 'refuse')} rejects them",
                kind=READ_AS,
                level="note",
            )


def _inside(problems: Problems, dataset: Dataset) -> Dataset:
    """Return the images that are inside the folder; report the others."""
    root = os.path.realpath(dataset.root)
    reasons = {row: leaves(name) or _linked(root, name) for row, name in enumerate(dataset.labels.paths)}
    found = [row for row, reason in reasons.items() if reason]
    for row, times in problems.counted(found):
        entry = Entry("", dataset, row)
        problems.add(
            f"'{entry.name}' {reasons[row]}, which {data_option('outside', 'refuse')} forbids",
            kind="path-outside-root",
            column="file_name",
            times=times,
            **entry.where,
        )
    return dataset.take([row for row in reasons if not reasons[row]]) if found else dataset


def _linked(root: str, name: str) -> str:
    """Return in words that a symbolic link leads outside; ``root`` has no link."""
    try:
        file = os.path.realpath(os.path.join(root, name))  # noqa: PTH118 - faster, for a million names
    except (OSError, ValueError):
        return ""  # no such file, which is reported elsewhere
    inside = file == root or file.startswith(root.rstrip(os.sep) + os.sep)
    return "" if inside else "is reached by a symbolic link that leads outside the image folder"
