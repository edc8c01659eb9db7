"""LVIS v1: annotated or not exhaustive = present, looked for in vain = absent, anything else unknown."""

import json
from pathlib import Path
from typing import Any, NamedTuple

from tests.data.fixtures import write_image
from tests.data.formats import Example


class Described(NamedTuple):
    folder: str
    annotated: list[int]
    negative: list[int]
    not_exhaustive: list[int]


NAMES = {3: "air_conditioner", 1: "aerosol_can", 2: "bow_(weapon)"}
#: file -> image id -> what is said; the validation file has images of both folders
SHOWN = {
    "train": {
        391895: Described("train2017", [1, 1], [3], []),
        522418: Described("train2017", [], [1, 2, 3], []),
        184613: Described("train2017", [3], [], [3, 2]),
    },
    "val": {
        397133: Described("val2017", [2], [1], []),
        37777: Described("train2017", [], [], [1]),
    },
}


def example(root: Path) -> Example:
    for split, shown in SHOWN.items():
        write(root / f"lvis_v1_{split}.json", shown)
        for image, described in shown.items():
            write_image(root / described.folder / f"{image:012d}.jpg", image % 97, (8, 8))
    return Example(
        source=f"lvis:{root}",
        categories=["aerosol_can", "bow_(weapon)", "air_conditioner"],
        splits={
            "train": {
                "train2017/000000391895.jpg": [1, 0, -1],
                "train2017/000000522418.jpg": [-1, -1, -1],
                "train2017/000000184613.jpg": [0, 1, 1],
            },
            "test": {"val2017/000000397133.jpg": [-1, 1, 0], "train2017/000000037777.jpg": [1, 0, 0]},
        },
        files=[root / f"lvis_v1_{split}.json" for split in SHOWN],
    )


def write(path: Path, shown: dict[int, Described]) -> None:
    content = {
        "info": {"description": "LVIS v1", "version": "1.0", "year": 2020, "date_created": "2020-06-24"},
        "images": [image_entry(image, described) for image, described in shown.items()],
        "annotations": [
            annotation(image, number, category)
            for image, described in shown.items()
            for number, category in enumerate(described.annotated)
        ],
        "categories": [category_entry(number, name) for number, name in NAMES.items()],
        "licenses": [{"id": 1, "name": "Attribution", "url": "http://creativecommons.org/licenses/by/2.0/"}],
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content).replace('}, {"', '},\n{"'))


def image_entry(image: int, described: Described) -> dict[str, Any]:
    return {
        "date_captured": "2013-11-14 16:28:13",
        "flickr_url": "http://farm4.staticflickr.com/3153/x_z.jpg",
        "height": 8,
        "width": 8,
        "id": image,
        "license": 1,
        "coco_url": f"http://images.cocodataset.org/{described.folder}/{image:012d}.jpg",
        "neg_category_ids": described.negative,
        "not_exhaustive_category_ids": described.not_exhaustive,
    }


def annotation(image: int, number: int, category: int) -> dict[str, Any]:
    return {
        "area": 18.5,
        "bbox": [1.0, 1.0, 6.0, 6.0],
        "category_id": category,
        "id": 10 * image + number,
        "image_id": image,
        "segmentation": [[1.5, 1.0, 7.0, 1.0, 7.0, 7.0]],
    }


def category_entry(number: int, name: str) -> dict[str, Any]:
    return {
        "id": number,
        "name": name,
        "def": "a thing",
        "frequency": "c",
        "image_count": 1,
        "instance_count": 1,
        "synonyms": [name],
        "synset": f"{name}.n.01",
    }
