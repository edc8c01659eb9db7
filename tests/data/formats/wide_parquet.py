"""The native table as Parquet, encoding ``binary``: int8, float and dictionary columns with nulls and NaN."""

from pathlib import Path

import pyarrow as arrow
from pyarrow import parquet

from tests.data.fixtures import write_image
from tests.data.formats import Example


def example(root: Path) -> Example:
    names = ["a.jpg", "b.jpg", "c.jpg", "d.jpg"]
    for number, name in enumerate(names):
        write_image(root / "images" / name, number, (8, 8))
    columns = {
        "file_name": arrow.array(names),
        "split": arrow.array(["train", "train", "test", "valid"]).dictionary_encode(),
        "cat": arrow.array([1, None, 0, 1], arrow.int8()),
        "hot dog, plain": arrow.array([0.0, 1.0, float("nan"), 1.0]),
        "tree": arrow.array([None, 0, 1, 0], arrow.int64()),
    }
    parquet.write_table(arrow.table(columns), root / "labels.parquet")
    return Example(
        source=str(root / "labels.parquet"),
        options={"encoding": "binary"},
        categories=["cat", "hot dog, plain", "tree"],
        splits={
            "train": {"a.jpg": [1, -1, 0], "b.jpg": [0, 1, -1]},
            "test": {"c.jpg": [-1, 0, 1]},
            "valid": {"d.jpg": [1, 1, -1]},
        },
        files=[root / "labels.parquet"],
    )
