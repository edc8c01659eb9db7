"""LVIS v1: COCO's layout, and for every image the categories somebody looked for and did not find."""

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

    A category that is annotated or in ``not_exhaustive_category_ids`` is present, one in
    ``neg_category_ids`` is absent, any other is unknown. Categories (1,203) are in ascending order of their
    ids, images in the order of the file. An image is named by the last two parts of its address,
    ``train2017/000000391895.jpg``: the validation file has images of both folders. They are looked for in
    ``path``, its ``images/`` and ``coco/``, and beside ``path``.

    Args:
        path: the folder of the files, or one that has them in ``annotations``, or one file, without test
            images.
        train_json: another file, relative to ``path``; without ``test_json`` there is no test file then.
        test_json: the same for testing; relative to the folder of ``path`` if that is a file.
        root: folder that holds ``train2017`` and ``val2017``, if it is another.
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
        """Take an entry of ``images``, which also says what was looked for."""
        self.add(element, self.images, "file_name", _file_name(element))
        for field, label in (("neg_category_ids", ABSENT), ("not_exhaustive_category_ids", PRESENT)):
            for category in element.identities(field):
                self.say(element.identity("id"), category, label, element.line)


def _file_name(element: Element) -> str:
    """Return the last two parts of the address; version 0.5 may have only a ``file_name``."""
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
