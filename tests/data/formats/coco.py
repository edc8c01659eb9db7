"""COCO 2014 in its official layout: ids with gaps, categories written backwards, a crowd, an empty image."""

import json
from pathlib import Path
from typing import Any

from tests.data.fixtures import write_image
from tests.data.formats import Example

CATEGORIES = [
    {"supercategory": "indoor", "id": 90, "name": "toothbrush"},
    {"supercategory": "outdoor", "id": 13, "name": "stop sign"},
    {"supercategory": "person", "id": 1, "name": "person"},
]
#: file -> (image id -> its annotated categories)
SHOWN = {
    "train2014": {57870: [1, 1, 13], 384029: [90], 222016: []},
    "val2014": {391895: [1, 90], 522418: [13]},
}


def example(root: Path) -> Example:
    for split, shown in SHOWN.items():
        write(root / "annotations" / f"instances_{split}.json", split, shown)
        for image in shown:
            write_image(root / split / file_name(split, image), image % 97, (8, 8))
    return Example(
        source=f"coco:{root}",
        categories=["person", "stop sign", "toothbrush"],
        splits={
            "train": {
                "COCO_train2014_000000057870.jpg": [1, 1, -1],
                "COCO_train2014_000000384029.jpg": [-1, -1, 1],
                "COCO_train2014_000000222016.jpg": [-1, -1, -1],
            },
            "test": {
                "COCO_val2014_000000391895.jpg": [1, -1, 1],
                "COCO_val2014_000000522418.jpg": [-1, 1, -1],
            },
        },
        files=[root / "annotations" / f"instances_{split}.json" for split in SHOWN],
    )


def file_name(split: str, image: int) -> str:
    return f"COCO_{split}_{image:012d}.jpg"


def write(path: Path, split: str, shown: dict[int, list[int]]) -> None:
    content = {
        "info": INFO,
        "images": [image_entry(split, image) for image in shown],
        "licenses": [
            {"url": "http://creativecommons.org/licenses/by-nc-sa/2.0/", "id": 1, "name": "Attribution"}
        ],
        "annotations": [
            *(
                annotation(image, category, crowd)
                for image, categories in shown.items()
                for crowd, category in enumerate(categories[:2])
            ),
            *(
                annotation(image, category, 0) | {"id": 100 * image + 9}
                for image, categories in shown.items()
                for category in categories[2:]
            ),
        ],
        "categories": CATEGORIES,
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    # the official file is one line; lines make places in messages visible
    path.write_text(json.dumps(content).replace('}, {"', '},\n{"'))


INFO = {
    "description": "COCO 2014 Dataset",
    "url": "http://cocodataset.org",
    "version": "1.0",
    "year": 2014,
    "contributor": "COCO Consortium",
    "date_created": "2017/09/01",
}


def image_entry(split: str, image: int) -> dict[str, Any]:
    return {
        "license": 5,
        "file_name": file_name(split, image),
        "height": 8,
        "width": 8,
        "id": image,
        "coco_url": f"http://images.cocodataset.org/{split}/{file_name(split, image)}",
        "date_captured": "2013-11-14 16:28:13",
        "flickr_url": "http://farm4.staticflickr.com/3153/x_z.jpg",
    }


def annotation(image: int, category: int, crowd: int) -> dict[str, Any]:
    mask = {"counts": [10, 20, 34], "size": [8, 8]}
    polygon = [[1.5, 1.0, 7.0, 1.0, 7.0, 7.0]]
    return {
        "segmentation": mask if crowd else polygon,
        "area": 18.5,
        "iscrowd": crowd,
        "image_id": image,
        "bbox": [1.0, 1.0, 6.0, 6.0],
        "category_id": category,
        "id": 100 * image + crowd,
    }
