"""Find the reader for a path by its official files, suffix or header, if exactly one fits."""

from __future__ import annotations

import os
import re
from collections.abc import Collection
from pathlib import Path

from sarb.errors import DataError, did_you_mean, unknown_name
from sarb.files import near_path, open_regular

#: file that identifies a folder -> its reader
LAYOUTS: dict[str, str] = {
    "ImageSets/Main": "voc",
    "VOC2007/ImageSets/Main": "voc",
    "VOCdevkit/VOC2007/ImageSets/Main": "voc",
    "annotations/instances_train2014.json": "coco",
    "annotations/instances_train2017.json": "coco",
    "lvis_v1_train.json": "lvis",
    "annotations/lvis_v1_train.json": "lvis",
    "objects.json": "vg",
    "train_list_500.txt": "vg",
    "Groundtruth": "nus_wide",
    "TrainTestLabels": "nus_wide",
    "AllLabels": "nus_wide",
    "Concepts81.txt": "nus_wide",
    "ImageList": "nus_wide",
    "class-descriptions.csv": "open_images",
    "class-descriptions-boxable.csv": "open_images",
    "oidv7-class-descriptions-boxable.csv": "open_images",
    "oidv6-class-descriptions.csv": "open_images",
    "oidv7-class-descriptions.csv": "open_images",
    "annotations.xml": "cvat",
    "metadata.csv": "folder",
    "metadata.jsonl": "folder",
    "metadata.parquet": "folder",
    "train/metadata.csv": "folder",
    "train/metadata.jsonl": "folder",
    "train/metadata.parquet": "folder",
    "training/metadata.csv": "folder",
    "training/metadata.jsonl": "folder",
    "training/metadata.parquet": "folder",
}
SUFFIXES = {".parquet": "table", ".jsonl": "table", ".npy": "npy", ".xml": "cvat"}
#: columns that identify a CSV file -> its reader; all of them must be in the header
HEADERS: dict[frozenset[str], str] = {
    frozenset({"ImageID", "Source", "LabelName", "Confidence"}): "open_images",
    frozenset({"Path", "Frontal/Lateral", "AP/PA", "No Finding"}): "chexpert",
    frozenset({"fname", "labels"}): "list",
}
#: suffixes of the files that an error message may suggest
TABLES = ("csv", "parquet", "jsonl", "json", "xml")
#: how many bytes of a file are read to identify it
HEAD = 1 << 16


def detect(text: str, names: Collection[str]) -> tuple[str, str]:
    """Return (reader name, path) for a path without a scheme.

    Raises:
        DataError: the path does not exist, or no reader or more than one fits.
    """
    path = Path(text).expanduser()
    if path.is_dir():
        return _folder(path, names), str(path)
    if path.is_file():
        return _file(path, names), str(path)
    refuse_stream(path)
    match = re.match(r"([A-Za-z_]\w+):", text)
    if match:
        raise DataError(unknown_name("data source", match[1], names))
    near = near_path(path)
    hint = f" Did you mean '{near}'?" if near is not None else did_you_mean(text, names)
    raise DataError(f"{text}: no such file, folder or data source.{hint} Sources: {_sources(names)}")


def refuse_stream(path: Path) -> None:
    """Raise if a path leads to something that can be read only once, or never ends; it is not opened."""
    if os.path.exists(path) and not path.is_file() and not path.is_dir():  # noqa: PTH110 - a name of any length
        raise DataError(
            f"{path}: is a pipe, a device or a socket; label files are read more than once, so save it to a file first"
        )


def _file(path: Path, names: Collection[str]) -> str:
    suffix = path.suffix.lower()
    if suffix in SUFFIXES:
        return SUFFIXES[suffix]
    if suffix in (".csv", ".tsv"):
        return _csv(path)
    reader = _json(path) if suffix == ".json" else None
    if reader is not None:
        return reader
    raise DataError(
        f"{path}: cannot tell what this file is; name its reader, such as table:{path}. "
        f"Sources: {_sources(names)}"
    )


def _csv(path: Path) -> str:
    """Choose by the header; a table unless the header matches another format."""
    first = _head(path).lstrip("\ufeff").split("\n")[0].rstrip("\r")
    columns = {name.strip().strip('"') for name in re.split(r"[,\t;]", first)}
    for marks, reader in HEADERS.items():
        if marks <= columns:
            return reader
    # one more column than labels and splits: a list, whatever its column of image names is called
    others = columns - {"labels", "split", "is_valid", "absent_labels", "unknown_labels"}
    few_columns = len(columns) < 4 and "file_name" in columns
    return "list" if "labels" in columns and (len(others) == 1 or few_columns) else "table"


def _json(path: Path) -> str | None:
    head = _head(path)
    if head.lstrip("\ufeff \t\r\n").startswith("["):
        return "label_studio" if '"annotations"' in head and '"data"' in head else None
    if '"neg_category_ids"' in head or path.name.startswith("lvis_"):
        return "lvis"
    return "coco" if '"images"' in head or '"annotations"' in head else None


def _head(path: Path) -> str:
    try:
        with open_regular(path) as file:
            return file.read(HEAD).decode("utf-8", "replace")
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror})") from None


def _folder(path: Path, names: Collection[str]) -> str:
    readers = sorted({reader for mark, reader in LAYOUTS.items() if (path / mark).exists()})
    if not readers and (path / "train.csv").is_file() and _csv(path / "train.csv") == "chexpert":
        return "chexpert"
    if len(readers) == 1:
        return readers[0]
    if readers:
        choices = " or ".join(f"{reader}:{path}" for reader in readers)
        raise DataError(f"{path}: could be {' or '.join(readers)}; say which: {choices}")
    tables = sorted(file for suffix in TABLES for file in path.glob(f"*.{suffix}"))
    hint = f" It contains {tables[0].name}: try {tables[0]}." if tables else ""
    raise DataError(
        f"{path}: this folder is not in a format that sarb knows.{hint} Sources: {_sources(names)}"
    )


def _sources(names: Collection[str]) -> str:
    return "demo, FILE.csv, " + ", ".join(f"{name}:…" for name in names if name != "demo")
