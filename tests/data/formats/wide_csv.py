"""The native table as CSV, encoding ``binary``, with a quoted name, a split column and all three labels."""

from pathlib import Path

from tests.data.fixtures import write_image
from tests.data.formats import Example

TEXT = """file_name,split,cat,"hot dog, plain",tree
a.jpg,train,1,0,
b.jpg,train,,1,0
c.jpg,test,0,,1
d.jpg,valid,1,1,0
"""


def example(root: Path) -> Example:
    for number, name in enumerate("abcd"):
        write_image(root / "images" / f"{name}.jpg", number, (8, 8))
    (root / "labels.csv").write_text(TEXT)
    return Example(
        source=str(root / "labels.csv"),
        options={"encoding": "binary"},
        categories=["cat", "hot dog, plain", "tree"],
        splits={
            "train": {"a.jpg": [1, -1, 0], "b.jpg": [0, 1, -1]},
            "test": {"c.jpg": [-1, 0, 1]},
            "valid": {"d.jpg": [1, 1, -1]},
        },
        files=[root / "labels.csv"],
    )
