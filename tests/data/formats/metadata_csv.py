"""Hugging Face ImageFolder with ``metadata.csv`` in the folders train, validation and test, in words."""

from pathlib import Path

from tests.data.fixtures import write_image
from tests.data.formats import Example

FILES = {
    "train": "file_name,cat,dog\n0001.png,present,absent\nmore/0002.png,unknown,present\n",
    "validation": "file_name,dog,cat\n0001.png,absent,\n",
    "test": "file_name,cat,dog\n0001.png,absent,present\n",
}


def example(root: Path) -> Example:
    for folder, text in FILES.items():
        for number, line in enumerate(text.splitlines()[1:]):
            write_image(root / folder / line.split(",")[0], number, (8, 8))
        (root / folder / "metadata.csv").write_text(text)
    return Example(
        source=f"folder:{root}",
        categories=["cat", "dog"],
        splits={
            "train": {"0001.png": [1, -1], "more/0002.png": [0, 1]},
            "valid": {"0001.png": [0, -1]},
            "test": {"0001.png": [-1, 1]},
        },
        files=[root / folder / "metadata.csv" for folder in FILES],
    )
