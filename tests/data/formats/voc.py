"""VOC 2007 in its official layout, with difficult objects unknown and parts of persons with names."""

from pathlib import Path

from tests.data.fixtures import _voc_xml, write_image
from tests.data.formats import Example

CATEGORIES = [
    "aeroplane",
    "bicycle",
    "bird",
    "boat",
    "bottle",
    "bus",
    "car",
    "cat",
    "chair",
    "cow",
    "diningtable",
    "dog",
    "horse",
    "motorbike",
    "person",
    "pottedplant",
    "sheep",
    "sofa",
    "train",
    "tvmonitor",
]
#: list -> image -> (name, difficult) of its objects
SHOWN = {
    "trainval": {
        "000005": [("chair", 0), ("chair", 1), ("tvmonitor", 1)],
        "000007": [("car", 0), ("person", 0)],
        "000009": [("horse", 1), ("horse", 0), ("person", 1)],
    },
    "test": {"000001": [("dog", 0), ("person", 0)], "000002": [("train", 1)]},
}


def example(root: Path) -> Example:
    home = root / "VOCdevkit" / "VOC2007"
    for folder in ("ImageSets/Main", "Annotations"):
        (home / folder).mkdir(parents=True, exist_ok=True)
    for split, images in SHOWN.items():
        (home / "ImageSets" / "Main" / f"{split}.txt").write_text("".join(f"{name}\n" for name in images))
        for name, objects in images.items():
            write_image(home / "JPEGImages" / f"{name}.jpg", int(name), (8, 8))
            (home / "Annotations" / f"{name}.xml").write_text(_voc_xml(name, objects))
    return Example(
        source=f"voc:{root}",
        options={"difficult": "unknown"},
        categories=CATEGORIES,
        splits={
            "train": {
                "000005.jpg": row(chair=1, tvmonitor=0),
                "000007.jpg": row(car=1, person=1),
                "000009.jpg": row(horse=1, person=0),
            },
            "test": {"000001.jpg": row(dog=1, person=1), "000002.jpg": row(train=0)},
        },
        files=[
            home / "ImageSets" / "Main" / "trainval.txt",
            home / "ImageSets" / "Main" / "test.txt",
            *(home / "Annotations" / f"{name}.xml" for images in SHOWN.values() for name in images),
        ],
    )


def row(**labels: int) -> list[int]:
    return [labels.get(category, -1) for category in CATEGORIES]
