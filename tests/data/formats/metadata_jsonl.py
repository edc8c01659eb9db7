"""Hugging Face ImageFolder with one ``metadata.jsonl``; names start with the split, one column is ignored."""

from pathlib import Path

from tests.data.fixtures import write_image
from tests.data.formats import Example

LINES = {
    "train/0001.png": '"caption": {"en": "a cat"}, "cat": 1, "dog": 0',
    "train/0002.png": '"caption": null, "cat": null, "dog": 1',
    "val/0003.png": '"cat": 1',
    "test/0004.png": '"caption": ["two", "parts"], "cat": 0, "dog": 1',
}


def example(root: Path) -> Example:
    for number, name in enumerate(LINES):
        write_image(root / name, number, (8, 8))
    text = "".join(f'{{"file_name": "{name}", {cells}}}\n' for name, cells in LINES.items())
    (root / "metadata.jsonl").write_text(text)
    return Example(
        source=str(root),
        options={"encoding": "binary", "ignore": "caption"},
        categories=["cat", "dog"],
        splits={
            "train": {"train/0001.png": [1, -1], "train/0002.png": [0, 1]},
            "valid": {"val/0003.png": [1, 0]},
            "test": {"test/0004.png": [-1, 1]},
        },
        files=[root / "metadata.jsonl"],
        ambiguous={"ignore": ["column 'caption'", "-o ignore=caption"]},
    )
