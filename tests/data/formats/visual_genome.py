"""Visual Genome's two official files: three categories, two random test images, an image without objects."""

import json
from pathlib import Path

from tests.data.fixtures import _vg_object, write_image
from tests.data.formats import Example

#: image id -> names as spelled; None: no entry in objects.json
SHOWN = {
    61512: ["tree", "man", "Tree "],
    1: ["clock", "tree", "man"],
    107899: ["man", "window"],
    285795: None,
    2: ["tree", "window", " MAN"],
    5: [],
}


def example(root: Path) -> Example:
    data = []
    objects = []
    for number, (image, names) in enumerate(SHOWN.items()):
        folder = ("VG_100K", "VG_100K_2")[number % 2]
        write_image(root / folder / f"{image}.jpg", number, (8, 8))
        url = f"https://cs.stanford.edu/people/rak248/{folder}/{image}.jpg"
        data.append(
            {"width": 8, "url": url, "height": 8, "image_id": image, "coco_id": None, "flickr_id": None}
        )
        if names is not None:
            things = [_vg_object(100 * number + place, name) for place, name in enumerate(names)]
            objects.append({"image_id": image, "objects": things, "image_url": url})
    for name, content in (("image_data", data), ("objects", objects)):
        (root / f"{name}.json").write_text(json.dumps(content).replace('}, {"', '},\n{"'))
    # man is in four images, tree in three, window in two; ascending ids 1 2 5 61512 107899 285795,
    # of which RandomState(0).permutation(6) = 5 2 1 3 0 4 takes the last and the third for testing
    return Example(
        source=f"vg:{root}",
        options={"categories": 3, "test": 2},
        categories=["man", "tree", "window"],
        splits={
            "train": {
                "VG_100K_2/1.jpg": [1, 1, -1],
                "VG_100K/2.jpg": [1, 1, 1],
                "VG_100K/61512.jpg": [1, 1, -1],
                "VG_100K/107899.jpg": [1, -1, 1],
            },
            "test": {"VG_100K_2/5.jpg": [-1, -1, -1], "VG_100K_2/285795.jpg": [0, 0, 0]},
        },
        files=[root / "image_data.json", root / "objects.json"],
    )
