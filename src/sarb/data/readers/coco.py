"""COCO: an annotated category is present, every other category is absent."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from sarb.data.assemble import find_root
from sarb.data.check.official import COCO, compare
from sarb.data.check.problems import fault
from sarb.data.dataset import Data, Dataset
from sarb.data.readers.image_files import first_holding, given_folder
from sarb.data.readers.instances import Instances
from sarb.errors import ConfigError, check_choice
from sarb.labels import ABSENT, PRESENT


def load_coco(
    path: Path,
    *,
    images: str = "all",
    year: int = 2014,
    train_json: Path | None = None,
    test_json: Path | None = None,
    root: Path | None = None,
    check_files: bool = True,
) -> Data:
    """Read COCO: ``annotations/instances_{train,val}2014.json``, or any one file in that format.

    Categories (80 in COCO) are sorted by their ids, which have gaps; images are in file order. A crowd
    annotation (``iscrowd``) counts as present. Images are in ``train2014/``, ``images/train2014/``,
    ``images/`` or the folder itself; for a single annotation file, next to it or in ``images/``.

    Args:
        path: the folder that contains ``annotations``, or one annotation file, which has no test split.
        images: read ``all`` images (as in the paper) or only the ``annotated`` ones.
        year: 2014 (as in the paper) or 2017.
        train_json: another annotation file, relative to ``path``; then only ``test_json`` gives a test split.
        test_json: annotation file to test on, relative to ``path`` or, if that is a file, to its folder.
        root: folder of the images, if it is somewhere else.
        check_files: look for the image files to find their folder.
    """
    check_choice("value of option images:", images, ("all", "annotated"))
    official = [f"annotations/instances_{split}{year}.json" for split in ("train", "val")]
    files = annotation_files(path, official, train_json, test_json, "year, train_json and test_json")
    parts: list[Dataset] = []
    for file in files:
        instances = Instances(file).read()
        folder = _image_folder(path, file, instances.names, root, check_files)
        part = instances.dataset(ABSENT, folder, parts[0] if parts else None)
        if images == "annotated":
            part = part.take((part.labels.values == PRESENT).any(1))
        compare(file, COCO.get((file.name, images)), len(part), part.labels, instances.annotations)
        parts.append(part)
    notes = {"images": images, "annotations": [file.name for file in files]}
    return Data(parts[0], parts[1] if len(parts) > 1 else parts[0].take([]), name="coco", notes=notes)


def annotation_files(
    path: Path, official: Sequence[str], train_json: Path | None, test_json: Path | None, options: str
) -> list[Path]:
    """Return the file to train on and, if any, the file to test on.

    Args:
        path: a folder, or the file to train on.
        official: names of the two files in the folder.
        train_json: file to use instead of the first.
        test_json: file to use instead of the second.
        options: options to name in the error if a file is missing.
    """
    if path.is_file():
        if train_json is not None:
            text = f"{path} is already the file to train on; remove option train_json, or pass the folder"
            raise ConfigError([text])
        files = [path, *([path.parent / test_json] if test_json is not None else [])]
    elif train_json is not None:
        files = [path / file for file in (train_json, test_json) if file is not None]
    else:
        files = [path / official[0], path / (test_json or official[1])]
    for file in files:
        if not file.is_file():
            others = sorted(other.name for other in file.parent.glob("*.json"))
            hint = f" Found {', '.join(others[:8])}; see options {options}." if others else ""
            raise fault(file, f"no such annotation file.{hint}", kind="missing-file")
    return files


def _image_folder(path: Path, file: Path, names: Sequence[str], root: Path | None, check_files: bool) -> Path:
    """Return the image folder of a file; outside the official layout, look as for any table."""
    if root is not None:
        return given_folder(root, file.parent if path.is_file() else path)
    if path.is_file() and file.parent.name != "annotations":
        return find_root(file, names, None, check_files)
    home = file.parent.parent if path.is_file() else path
    split = file.stem.removeprefix("instances_")
    return first_holding([home / split, home / "images" / split, home / "images", home], names)
