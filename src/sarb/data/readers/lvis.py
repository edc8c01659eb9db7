"""LVIS v1: the format of COCO, plus the categories that annotators looked for and did not find."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from sarb.data.check.official import LVIS, compare
from sarb.data.dataset import Data, Dataset
from sarb.data.parse.element import Element
from sarb.data.readers.coco import annotation_files
from sarb.data.readers.image_files import first_holding, given_folder
from sarb.data.readers.instances import Instances
from sarb.labels import ABSENT, PRESENT, UNKNOWN


def load_lvis(
    path: Path,
    *,
    train_json: Path | None = None,
    test_json: Path | None = None,
    root: Path | None = None,
) -> Data:
    """Read LVIS: ``lvis_v1_train.json`` and ``lvis_v1_val.json``, or one such file; most labels are unknown.

    A category is present if it is annotated or in ``not_exhaustive_category_ids``, absent if it is in
    ``neg_category_ids``, and otherwise unknown. Categories (1,203) are sorted by id; images are in file
    order. An image name is the last two parts of the URL, ``train2017/000000391895.jpg``, because the
    validation file has images from both folders. Images are in ``path``, in its ``images/`` or ``coco/``, or
    next to it.

    Args:
        path: the folder of the files (or of ``annotations`` with the files), or one file without test split.
        train_json: another file, relative to ``path``; then only ``test_json`` gives a test split.
        test_json: file to test on, relative to ``path`` or, if that is a file, to its folder.
        root: folder that contains ``train2017`` and ``val2017``, if it is somewhere else.
    """
    below = "annotations/" if (path / "annotations" / "lvis_v1_train.json").is_file() else ""
    official = [f"{below}lvis_v1_{split}.json" for split in ("train", "val")]
    files = annotation_files(path, official, train_json, test_json, "train_json and test_json")
    parts: list[Dataset] = []
    for file in files:
        instances = _LvisInstances(file).read()
        if root is None:
            folder = _image_folder(path, file, instances.names)
        else:
            folder = given_folder(root, path.parent if path.is_file() else path)
        part = instances.dataset(UNKNOWN, folder, parts[0] if parts else None)
        compare(file, LVIS.get(file.name), len(part), part.labels, instances.annotations)
        parts.append(part)
    notes = {"unlisted": "unknown", "annotations": [file.name for file in files]}
    return Data(parts[0], parts[1] if len(parts) > 1 else parts[0].take([]), name="lvis", notes=notes)


class _LvisInstances(Instances):
    def image(self, element: Element) -> None:
        """Add an entry of ``images``, which also lists the categories that were looked for."""
        self.add(element, self.images, "file_name", _file_name(element))
        for field, label in (("neg_category_ids", ABSENT), ("not_exhaustive_category_ids", PRESENT)):
            for category in element.identities(field):
                self.say(element.identity("id"), category, label, element.line)


def _file_name(element: Element) -> str:
    """Return the last two parts of the URL; version 0.5 may have only a ``file_name``."""
    if isinstance(element.value, dict) and "coco_url" not in element.value and "file_name" in element.value:
        return element.text("file_name")
    parts = element.text("coco_url").split("/")
    if len(parts) < 2 or not all(parts[-2:]):
        raise ValueError(f"coco_url is '{element.value['coco_url'][:80]}'; expected …/FOLDER/NAME")
    return "/".join(parts[-2:])


def _image_folder(path: Path, file: Path, names: Sequence[str]) -> Path:
    home = path
    if path.is_file():
        home = file.parent.parent if file.parent.name == "annotations" else file.parent
    folders = [home, home / "images", home / "coco", home.parent, home.parent / "coco"]
    return first_holding(folders, names)
