"""COCO instances: an annotated category is present, every other is absent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from sarb.data.checks import Problems, require_files, warn_size
from sarb.data.dataset import Data, Dataset
from sarb.data.stream import elements
from sarb.errors import DataError, check_choice
from sarb.labels import ABSENT, PRESENT, LabelMatrix

#: official numbers of images: (train, val) of COCO 2014, all and annotated
SIZES = {"all": (82_783, 40_504), "annotated": (82_081, 40_137)}


def load_coco(
    root: Path,
    *,
    images: str = "all",
    year: int = 2014,
    train_json: Path | None = None,
    test_json: Path | None = None,
    check_files: bool = True,
) -> Data:
    """Read COCO: ``annotations/instances_{train,val}2014.json``, images in ``train2014/``, ``val2014/`` or ``images/``.

    Categories are in ascending order of their ids (which have gaps), images in the order of the file.
    A crowd annotation (``iscrowd``) counts as present.

    Args:
        root: the folder that holds ``annotations``.
        images: ``all`` images (paper) or only the ``annotated`` ones.
        year: 2014 (paper) or 2017.
        train_json: another annotation file in COCO format, relative to ``root``.
        test_json: the same for testing.
        check_files: look for every image file.
    """
    check_choice("value of option images:", images, ("all", "annotated"))
    files = [_annotations(root, train_json, f"train{year}"), _annotations(root, test_json, f"val{year}")]
    train, test = (_dataset(root, file, images, check_files) for file in files)
    if train.categories != test.categories:
        differ = sorted(set(train.categories) ^ set(test.categories)) or "their order"
        raise DataError(f"{files[0]} and {files[1]} have different categories: {differ}")
    if year == 2014 and train_json is None and test_json is None:
        for part, size in zip((train, test), SIZES[images], strict=True):
            warn_size(f"COCO {part.name} ({images} images)", size, len(part))
    return Data(train, test, name="coco", notes={"images": images, "annotations": [file.name for file in files]})


@dataclass
class _Instances:
    """The parts of an instances file that say which category is in which image."""

    files: dict[int, str] = field(default_factory=dict)
    categories: dict[int, str] = field(default_factory=dict)
    pairs: dict[tuple[int, int], None] = field(default_factory=dict)  # an ordered set: many objects, one label

    def add(self, key: str, item: Mapping[str, Any]) -> None:
        if key == "annotations":
            self.pairs[item["image_id"], item["category_id"]] = None
            return
        names = self.files if key == "images" else self.categories
        if item["id"] in names:
            raise ValueError(f"repeats id {item['id']}")
        names[item["id"]] = str(item["file_name" if key == "images" else "name"])


def _annotations(root: Path, given: Path | None, split: str) -> Path:
    path = root / (given if given is not None else f"annotations/instances_{split}.json")
    if not path.is_file():
        others = sorted(file.name for file in path.parent.glob("instances_*.json"))
        hint = f" There is {', '.join(others)}: see options year, train_json and test_json." if others else ""
        raise DataError(f"{path}: no such annotation file.{hint}")
    return path


def _read(path: Path) -> _Instances:
    """Read an instances file and check that annotations name known images and categories."""
    found, problems = _Instances(), Problems(path)
    for key, item in elements(path, ("images", "annotations", "categories")):
        try:
            found.add(key, item)
        except (KeyError, TypeError, ValueError) as error:
            reasons = {KeyError: f"has no {error}", TypeError: "is not an object with plain ids"}
            problems.add(f"an entry of '{key}' {reasons.get(type(error), str(error))}: {str(item)[:80]}")
    problems.raise_any()
    if not found.files or not found.categories:
        raise DataError(f"{path}: 'images' or 'categories' is missing or empty; is this a COCO instances file?")
    for image, category in found.pairs:
        if image not in found.files:
            problems.add(f"an annotation names image id {image}, which is not in 'images'")
        if category not in found.categories:
            problems.add(f"an annotation names category id {category}, which is not in 'categories'")
    problems.raise_any()
    return found


def _dataset(root: Path, path: Path, images: str, check_files: bool) -> Dataset:
    found = _read(path)
    annotated = {image for image, _ in found.pairs}
    kept = [image for image in found.files if images == "all" or image in annotated]
    row = {image: number for number, image in enumerate(kept)}
    column = {category: number for number, category in enumerate(sorted(found.categories))}
    values = np.full((len(kept), len(column)), ABSENT, np.int8)
    for image, category in found.pairs:
        values[row[image], column[category]] = PRESENT
    names = [found.files[image] for image in kept]
    folder = _image_folder(root, path, names)
    if check_files:
        require_files(folder, names, path)
    labels = LabelMatrix(values, [found.categories[category] for category in column], names)
    return Dataset(labels, folder, path.stem.removeprefix("instances_"))


def _image_folder(root: Path, path: Path, names: list[str]) -> Path:
    """Return the folder where the first image is: ``train2014/``, ``images/train2014/``, ``images/`` or the root."""
    split = path.stem.removeprefix("instances_")
    places = [root / split, root / "images" / split, root / "images", root]
    return next((place for place in places if names and (place / names[0]).is_file()), places[0])
