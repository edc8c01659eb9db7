"""The files of Open Images: find label files, class descriptions and image folders."""

from __future__ import annotations

import os
import re
from collections.abc import Container, Mapping
from pathlib import Path

from sarb.data.assemble import SPLITS
from sarb.data.check.problems import fault
from sarb.data.parse.text import CHUNK
from sarb.data.readers.image_files import given_folder
from sarb.errors import data_option
from sarb.files import open_regular

LABEL_FILE = re.compile(
    r"(?:oidv\d+-)?(train|validation|val|test)-annotations-human-imagelabels(-boxable)?\.csv"
)
CLASS_FILE = re.compile(r"(?:oidv\d+-)?class-descriptions(?:-boxable)?\.csv")
FOLDERS = ("", "train", "validation", "val", "test", "annotations", "metadata")
IMAGE_FOLDERS = {"train": ("train",), "valid": ("validation", "val", "valid"), "test": ("test",)}


def label_files(path: Path, category_set: str | None) -> dict[str, Path]:
    """Return split -> label file.

    Args:
        path: the folder, or one label file.
        category_set: value of option ``files``, required if there are files for the boxable categories and
            for all categories.
    """
    if not path.is_dir():
        return {"train": path}
    by_split = _label_files_by_split(path)
    if "train" not in by_split:
        text = (
            "contains no train-annotations-human-imagelabels.csv; to read another label file, pass that file"
        )
        raise fault(path, text, kind="bad-layout")
    chosen: dict[str, Path] = {}
    readings = ""
    for split in (split for split in IMAGE_FOLDERS if split in by_split):
        sets = by_split[split]
        files = sets.get(category_set or "", next(iter(sets.values())))
        if len(files) > 1:
            several = ", ".join(map(str, files))
            raise fault(path, f"several label files for {split}: {several}; keep one", kind="two-files")
        chosen[split] = files[0]
        if len(sets) > 1 and category_set is None:
            for name, (file, *_) in sets.items():
                readings += f"\n  {data_option('files', name)}: {file}, {_row_count(file):,} rows"
    if readings:
        text = f"contains label files for two sets of categories; declare which to read:{readings}"
        raise fault(path, text, kind="undeclared-files")
    return chosen


def _label_files_by_split(folder: Path) -> dict[str, dict[str, list[Path]]]:
    """Return split -> ``boxable`` or ``all`` -> label files; leave out sets without a file."""
    by_split: dict[str, dict[str, list[Path]]] = {}
    for path in _csv_files(folder):
        if match := LABEL_FILE.fullmatch(path.name):
            sets = by_split.setdefault(SPLITS[match[1]], {"boxable": [], "all": []})
            sets["boxable" if match[2] else "all"].append(path)
    return {split: {name: files for name, files in sets.items() if files} for split, sets in by_split.items()}


def _csv_files(folder: Path) -> list[Path]:
    return [path for name in FOLDERS for path in sorted((folder / name).glob("*.csv")) if path.is_file()]


def _row_count(path: Path) -> int:
    with open_regular(path) as file:
        return max(0, sum(block.count(b"\n") for block in iter(lambda: file.read(CHUNK), b"")) - 1)


def class_file(home: Path, declared: Path | None, labels: Mapping[str, Path]) -> Path:
    """Return the class descriptions, those of the boxable categories if all label files are boxable."""
    if declared is not None:
        return declared.expanduser() if declared.expanduser().is_file() else home / declared
    folders = [home, home.parent] if home.name in FOLDERS else [home]
    csv_files = dict.fromkeys(path for folder in folders for path in _csv_files(folder))
    candidates = [path for path in csv_files if CLASS_FILE.fullmatch(path.name)]
    boxable = all(path.stem.endswith("-boxable") for path in labels.values())
    paths = [path for path in candidates if path.stem.endswith("-boxable") == boxable] or candidates
    if len(paths) == 1:
        return paths[0]
    text = (
        f"several class descriptions: {', '.join(map(str, paths))}" if paths else "no class-descriptions.csv"
    )
    text += f"; choose the file with {data_option('descriptions', 'FILE')}"
    raise fault(home, text, kind="class-descriptions")


def image_folder(home: Path, root: Path | None, split: str, label_file: Path, images: Container[str]) -> Path:
    """Return the first usual folder that contains one of the images."""
    match = LABEL_FILE.fullmatch(label_file.name)
    names = IMAGE_FOLDERS[SPLITS[match[1]] if match else split]
    bases = [home, home / "images"] if root is None else [given_folder(root, home)]
    candidates = [base / name for base in bases for name in names] + bases[::-1]
    folders = [folder for folder in candidates if folder.is_dir()]
    for folder in folders:
        with os.scandir(folder) as entries:
            if any(entry.name[:-4] in images for entry in entries if entry.name.endswith(".jpg")):
                return folder
    return folders[0] if folders else home
