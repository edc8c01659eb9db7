"""An int8 array with encoding ``signed``, and text files with its row names, column names and splits."""

from pathlib import Path

import numpy as np

from tests.data.fixtures import write_image
from tests.data.formats import Example


def example(root: Path) -> Example:
    names = ["a.jpg", "b.jpg", "c.jpg", "d.jpg"]
    for number, name in enumerate(names):
        write_image(root / "images" / name, number, (8, 8))
    np.save(root / "labels.npy", np.array([[1, -1, 0], [0, 1, -1], [-1, 0, 1], [1, 1, -1]], np.int8))
    (root / "labels.files.txt").write_text("".join(f"{name}\n" for name in names))
    (root / "labels.categories.txt").write_text("cat\nhot dog, plain\ntree\n")
    (root / "labels.splits.txt").write_text("train\ntrain\ntest\nval\n")
    return Example(
        source=str(root / "labels.npy"),
        options={"encoding": "signed"},
        categories=["cat", "hot dog, plain", "tree"],
        splits={
            "train": {"a.jpg": [1, -1, 0], "b.jpg": [0, 1, -1]},
            "test": {"c.jpg": [-1, 0, 1]},
            "valid": {"d.jpg": [1, 1, -1]},
        },
        files=[root / f"labels.{end}" for end in ("npy", "files.txt", "categories.txt", "splits.txt")],
        ambiguous={
            "encoding": [
                "-o encoding=signed: 5 present, 4 absent, 3 unknown",
                "-o encoding=minus_one_unknown: 5 present, 3 absent, 4 unknown",
            ]
        },
    )
