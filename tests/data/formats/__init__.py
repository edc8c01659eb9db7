"""One example per format: a small data set in the true published schema, and the exact matrix it must give.

A module of this package has ``example(root) -> Example``: it writes the files and says what they mean.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

#: every format that is read, by the name of its module here
FORMATS = (
    "wide_csv",
    "wide_parquet",
    "wide_jsonl",
    "list_csv",
    "metadata_csv",
    "metadata_jsonl",
    "npy",
    "coco",
    "lvis",
    "voc",
    "visual_genome",
    "open_images",
    "chexpert",
    "nus_wide",
    "label_studio",
    "cvat",
)


@dataclass
class Example:
    """A data set on disk.

    Args:
        source: what to give to ``sarb.load``.
        options: its options.
        categories: expected, in order.
        splits: split -> image name -> expected labels, in order; all rows of the matrix.
        files: label files, the ones that mutations damage.
        ambiguous: options without which loading must stop, and the words the error must contain, e.g.
            ``{"encoding": ["-o encoding=signed", "-o encoding=binary"]}``.
    """

    source: str
    categories: list[str]
    splits: dict[str, dict[str, list[int]]]
    files: list[Path]
    options: dict[str, Any] = field(default_factory=dict)
    ambiguous: dict[str, list[str]] = field(default_factory=dict)


def write_example(name: str, root: Path) -> Example:
    """Write the example of a format into a folder."""
    example: Example = importlib.import_module(f"tests.data.formats.{name}").example(root)
    return example
