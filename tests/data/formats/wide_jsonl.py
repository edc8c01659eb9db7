"""The native table as JSON lines, encoding ``minus_one_unknown``; keys in another order on one line."""

from pathlib import Path

from tests.data.fixtures import write_image
from tests.data.formats import Example

TEXT = """{"file_name": "a.jpg", "split": "train", "cat": 1, "hot dog, plain": 0, "tree": -1}
{"file_name": "b.jpg", "tree": 0, "split": "train", "cat": -1, "hot dog, plain": 1}
{"file_name": "c.jpg", "split": "test", "cat": 0, "hot dog, plain": -1, "tree": 1.0}
{"file_name": "d.jpg", "split": "valid", "cat": 1, "hot dog, plain": "1", "tree": 0}
"""


def example(root: Path) -> Example:
    for number, name in enumerate("abcd"):
        write_image(root / "images" / f"{name}.jpg", number, (8, 8))
    (root / "labels.jsonl").write_text(TEXT)
    return Example(
        source=str(root / "labels.jsonl"),
        options={"encoding": "minus_one_unknown"},
        categories=["cat", "hot dog, plain", "tree"],
        splits={
            "train": {"a.jpg": [1, -1, 0], "b.jpg": [0, 1, -1]},
            "test": {"c.jpg": [-1, 0, 1]},
            "valid": {"d.jpg": [1, 1, -1]},
        },
        files=[root / "labels.jsonl"],
        ambiguous={"encoding": ["-o encoding=minus_one_unknown", "-o encoding=signed"]},
    )
