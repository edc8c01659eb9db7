"""The list of fastai's PASCAL_2007: ``fname,labels,is_valid`` with labels separated by spaces."""

from pathlib import Path

from tests.data.fixtures import write_image
from tests.data.formats import Example

TEXT = """fname,labels,is_valid
000005.jpg,chair,True
000007.jpg,car,False
000009.jpg,horse person,True
000012.jpg,,False
000016.jpg,person car,False
"""


def example(root: Path) -> Example:
    for number, line in enumerate(TEXT.splitlines()[1:]):
        write_image(root / "images" / line.split(",")[0], number, (8, 8))
    (root / "train.csv").write_text(TEXT)
    return Example(
        source=f"list:{root / 'train.csv'}",
        options={"unlisted": "unknown", "label_delimiter": "space", "is_valid": "test"},
        categories=["car", "chair", "horse", "person"],
        splits={
            "train": {"000007.jpg": [1, 0, 0, 0], "000012.jpg": [0, 0, 0, 0], "000016.jpg": [1, 0, 0, 1]},
            "test": {"000005.jpg": [0, 1, 0, 0], "000009.jpg": [0, 0, 1, 1]},
        },
        files=[root / "train.csv"],
        ambiguous={
            "unlisted": [
                "-o unlisted=absent: 6 present, 14 absent, 0 unknown",
                "-o unlisted=unknown: 6 present, 0 absent, 14 unknown",
            ],
            "label_delimiter": [
                "-o label_delimiter=space: 4 categories: car, chair, horse, person",
                "-o label_delimiter=none: 4 categories: car, chair, horse person, ",
            ],
        },
    )
