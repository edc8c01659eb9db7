"""Tiny data sets in the published schemas; every writer returns split -> image -> categories shown."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
from PIL import Image

from sarb.data.readers.voc import CATEGORIES as VOC_CATEGORIES

Shown = dict[str, dict[str, set[str]]]

_COCO_NAMES = """
person,bicycle,car,motorcycle,airplane,bus,train,truck,boat,traffic light,fire hydrant,
stop sign,parking meter,bench,bird,cat,dog,horse,sheep,cow,elephant,bear,zebra,giraffe,
backpack,umbrella,handbag,tie,suitcase,frisbee,skis,snowboard,sports ball,kite,baseball bat,
baseball glove,skateboard,surfboard,tennis racket,bottle,wine glass,cup,fork,knife,spoon,bowl,
banana,apple,sandwich,orange,broccoli,carrot,hot dog,pizza,donut,cake,chair,couch,
potted plant,bed,dining table,toilet,tv,laptop,mouse,remote,keyboard,cell phone,microwave,
oven,toaster,sink,refrigerator,book,clock,vase,scissors,teddy bear,hair drier,toothbrush
"""
_COCO_GAPS = (12, 26, 29, 30, 45, 66, 68, 69, 71, 83)
_COCO_IDS = [number for number in range(1, 91) if number not in _COCO_GAPS]
#: the official id -> name
COCO_CATEGORIES = dict(zip(_COCO_IDS, _COCO_NAMES.replace("\n", "").split(","), strict=True))

VG_NAMES = [
    *("tree", "man", "window", "shirt", "building", "person"),
    *("sign", "sky", "ground", "head", "light", "hair"),
]


def write_image(path: Path, seed: int = 0, size: tuple[int, int] = (64, 48)) -> Path:
    """Write a small picture of random coloured blocks; the suffix gives the format."""
    path.parent.mkdir(parents=True, exist_ok=True)
    blocks = np.random.RandomState(seed).randint(0, 256, (4, 4, 3)).astype(np.uint8)
    Image.fromarray(blocks).resize(size, Image.Resampling.NEAREST).save(path)
    return path


def write_wide_csv(root: Path, train: int = 6, test: int = 3, folder: str = "images") -> Shown:
    """``labels.csv`` in encoding ``binary`` beside ``images/``, with a split column and five categories."""
    categories = ["cat", "dog", "hot dog", "tree", "car"]
    shown: Shown = {"train": {}, "test": {}}
    root.mkdir(parents=True, exist_ok=True)
    with (root / "labels.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["file_name", "split", *categories])
        for number in range(train + test):
            split = "train" if number < train else "test"
            name = f"{number:03d}.jpg"
            write_image(root / folder / name, number)
            names = {category for place, category in enumerate(categories) if (number + place) % 3 == 0}
            shown[split][name] = names
            writer.writerow([name, split, *(int(category in names) for category in categories)])
    return shown


def write_coco(root: Path, train: int = 6, test: int = 3, year: int = 2014) -> Shown:
    """``annotations/instances_{train,val}YEAR.json`` with 80 categories; every fourth image is empty."""
    shown: Shown = {}
    (root / "annotations").mkdir(parents=True, exist_ok=True)
    for split, count in (("train", train), ("val", test)):
        images = []
        annotations = []
        written = {}
        for number in range(count):
            image_id = 1000 * count - 7 * number  # neither contiguous nor ascending
            file = f"COCO_{split}{year}_{image_id:012d}.jpg"
            write_image(root / f"{split}{year}" / file, number)
            images.append({"id": image_id, "file_name": file, "width": 64, "height": 48, "license": 1})
            ids = [list(COCO_CATEGORIES)[(number * 7 + step * 13) % 80] for step in range(number % 4)]
            for category in [*ids, *ids[:1]]:  # the first twice: two objects, one label
                annotations.append(_coco_annotation(len(annotations), image_id, category))
            written[file] = {COCO_CATEGORIES[category] for category in ids}
        # the list of categories is written backwards: readers must go by id
        categories = [
            {"id": i, "name": n, "supercategory": "any"} for i, n in reversed(COCO_CATEGORIES.items())
        ]
        licenses = [{"id": 1, "name": "none", "url": ""}]
        parts = {"info": {"year": year}, "images": images, "licenses": licenses}
        text = json.dumps({**parts, "annotations": annotations, "categories": categories})
        (root / "annotations" / f"instances_{split}{year}.json").write_text(text)
        shown["train" if split == "train" else "test"] = written
    return shown


def _coco_annotation(number: int, image: int, category: int) -> dict[str, object]:
    crowd = number % 2
    shape = {"counts": [10, 20, 3042], "size": [48, 64]} if crowd else [[1.0, 1.0, 9.0, 1.0, 9.0, 9.0]]
    place = {"bbox": [1.0, 1.0, 8.0, 8.0], "area": 32.0, "segmentation": shape, "iscrowd": crowd}
    return {"id": number, "image_id": image, "category_id": category, **place}


def write_voc(root: Path, train: int = 6, test: int = 3, xml: bool = True) -> Shown:
    """``VOCdevkit/VOC2007`` with lists, per-class lists and annotations.

    A name ends in ``?`` when all its objects are marked difficult. Every image has a person with a part
    ``head``.
    """
    home = root / "VOCdevkit" / "VOC2007"
    (home / "ImageSets" / "Main").mkdir(parents=True, exist_ok=True)
    shown: Shown = {"trainval": {}, "test": {}}
    for number in range(train + test):
        split = "trainval" if number < train else "test"
        name = f"{number + 1:06d}"
        write_image(home / "JPEGImages" / f"{name}.jpg", number)
        plain = VOC_CATEGORIES[number % 20]
        hard = VOC_CATEGORIES[(number + 5) % 20]
        # the plain one is also there as a difficult object, before and after
        objects = [(plain, 1), (plain, 0), (plain, 1), (hard, 1), ("person", 0)]
        if xml:
            (home / "Annotations").mkdir(exist_ok=True)
            (home / "Annotations" / f"{name}.xml").write_text(_voc_xml(name, objects))
        shown[split][name] = {plain, "person"} | ({f"{hard}?"} - {"person?"})
    for split, images in shown.items():
        lists = home / "ImageSets" / "Main"
        (lists / f"{split}.txt").write_text("".join(f"{name}\n" for name in images))
        for category in VOC_CATEGORIES:
            codes = {n: 1 if category in s else 0 if f"{category}?" in s else -1 for n, s in images.items()}
            (lists / f"{category}_{split}.txt").write_text(
                "".join(f"{n} {code:2d}\n" for n, code in codes.items())
            )
    return shown


def _voc_xml(name: str, objects: list[tuple[str, int]]) -> str:
    box = "<bndbox><xmin>2</xmin><ymin>2</ymin><xmax>20</xmax><ymax>20</ymax></bndbox>"
    part = f"<part><name>head</name>{box}</part>"
    things = "".join(
        f"\t<object>\n\t\t<name>{category}</name>\n\t\t<pose>Left</pose>\n\t\t<truncated>0</truncated>\n"
        f"\t\t<difficult>{hard}</difficult>\n\t\t{box}{part if category == 'person' else ''}\n\t</object>\n"
        for category, hard in objects
    )
    size = "<size><width>64</width><height>48</height><depth>3</depth></size><segmented>0</segmented>"
    source = "<source><database>The VOC2007 Database</database></source>"
    head = f"<annotation>\n\t<folder>VOC2007</folder>\n\t<filename>{name}.jpg</filename>\n\t{source}{size}\n"
    return f"{head}{things}</annotation>\n"


def write_visual_genome(root: Path, images: int = 9, categories: int = 12) -> dict[int, set[str]]:
    """``objects.json`` and ``image_data.json``, pictures in both folders; return image id -> names shown.

    Name number j is in the images whose number is divisible by j % 4 + 1; spelling varies in case and spaces.
    """
    names = VG_NAMES[:categories] + [f"thing {number}" for number in range(len(VG_NAMES), categories)]
    shown: dict[int, set[str]] = {}
    data = []
    objects = []
    for number in reversed(range(images)):
        image = 107900 + number
        folder = ("VG_100K", "VG_100K_2")[number % 2]
        write_image(root / folder / f"{image}.jpg", number)
        url = f"https://cs.stanford.edu/people/rak248/{folder}/{image}.jpg"
        data.append(
            {"image_id": image, "width": 64, "height": 48, "url": url, "coco_id": None, "flickr_id": None}
        )
        shown[image] = {name for place, name in enumerate(names) if number % (place % 4 + 1) == 0}
        spelled = [*sorted(shown[image]), *(f" {name.upper()} " for name in sorted(shown[image]))]
        objects.append(
            {
                "image_id": image,
                "image_url": url,
                "objects": [_vg_object(i, n) for i, n in enumerate(spelled)],
            }
        )
    (root / "image_data.json").write_text(json.dumps(data))
    (root / "objects.json").write_text(json.dumps(objects))
    return shown


def _vg_object(number: int, name: str) -> dict[str, object]:
    box = {"x": 1, "y": 2, "w": 30, "h": 40}
    return {"object_id": number, "names": [name], "synsets": ["entity.n.01"], "merged_object_ids": [], **box}
