"""The files of NUS-WIDE: find them, and match label files with image lists."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from sarb.data.check.problems import Problems, fault
from sarb.data.parse.messages import counted
from sarb.data.parse.text import read_text
from sarb.data.readers.image_files import given_folder, holds_any
from sarb.data.readers.nus_wide_column import all_lines, read_column
from sarb.errors import data_option

#: folders of the official set and of common copies, at the top or in Groundtruth, in any case
FOLDERS = ("groundtruth", "traintestlabels", "alllabels", "alllabels81", "imagelist", "conceptslist")
LISTS = {"train": "TrainImagelist.txt", "test": "TestImagelist.txt", "all": "Imagelist.txt"}
ENDS = {"train": "_Train", "test": "_Test", "all": ""}
LABEL_FILE = re.compile(r"labels_(.+?)(_train|_test)?\.txt", re.IGNORECASE)


@dataclass
class Files:
    """The files that exist: image lists by split (train, test, all), label files by split and concept."""

    folder: Path
    charset: str | None
    lists: dict[str, Path] = field(default_factory=dict)
    labels: dict[str, dict[str, Path]] = field(default_factory=lambda: {split: {} for split in LISTS})
    concepts: Path | None = None

    def complete(self, *splits: str) -> bool:
        """Whether every one of these splits has a list and labels."""
        return all(split in self.lists and self.labels[split] for split in splits)

    def names(self, split: str) -> list[str]:
        """Return the image names of a list, with forward slashes."""
        path = self.lists[split]
        if not path.is_file():
            raise fault(path, "no such image list", kind="missing-file")
        lines = all_lines(read_text(path, self.charset))
        if not lines:
            raise fault(path, "the image list is empty", kind="empty")
        return [line.strip().replace("\\", "/") for line in lines]


@dataclass
class Part:
    """The images of one set of label files: lines of the image list after line ``start``.

    ``labels`` is train, test or all.
    """

    labels: str
    listing: Path
    names: list[str]
    start: int = 0

    @property
    def lines(self) -> range:
        """N line numbers of the images in ``listing``."""
        return range(self.start + 1, self.start + len(self.names) + 1)


def find_files(folder: Path, image_list: Path | None, charset: str | None) -> Files:
    """Look for files with the official names, in the official subfolders and in the folder itself."""
    if not folder.is_dir():
        raise fault(
            folder,
            "is not a folder; pass the folder that contains Groundtruth and ImageList",
            kind="bad-layout",
        )
    files = Files(folder, charset)
    problems = Problems(folder)
    for path in _text_files(folder):
        name = path.name.lower()
        if match := LABEL_FILE.fullmatch(path.name):
            split = (match[2] or "_all")[1:].lower()
            _keep(problems, files.labels[split], match[1], path)
        elif name.endswith("imagelist.txt"):
            _keep(problems, files.lists, name.removesuffix("imagelist.txt") or "all", path)
        elif name == "concepts81.txt":
            files.concepts = files.concepts or path
    problems.raise_any()
    if image_list is not None:
        chosen = image_list.expanduser()
        files.lists["all"] = chosen if chosen.is_file() else folder / chosen
    return files


def _text_files(folder: Path) -> Iterator[Path]:
    folders = [folder]
    for parent in (folder, *(path for path in _folders(folder) if path.name.lower() == "groundtruth")):
        folders += sorted(path for path in _folders(parent) if path.name.lower() in FOLDERS)
    for one in folders:
        yield from sorted(one.glob("*.[tT][xX][tT]"))


def _folders(parent: Path) -> list[Path]:
    return [path for path in parent.iterdir() if path.is_dir()]


def _keep(problems: Problems, files: dict[str, Path], key: str, path: Path) -> None:
    """Keep the first file for a list or concept, and report any other."""
    if files.setdefault(key, path) != path:
        problems.add(f"there is also {files[key]}; keep only one of them", kind="two-files", file=path)


def choose_parts(files: Files, order: str | None) -> list[Part]:
    """Match label files with image lists."""
    if files.complete("train", "test"):
        return [Part(split, files.lists[split], files.names(split)) for split in ("train", "test")]
    if files.complete("all"):
        return [Part("all", files.lists["all"], files.names("all"))]
    if files.labels["train"] and files.labels["test"] and "all" in files.lists:
        return _one_list(files, order)
    if files.complete("train") and not files.labels["test"] and "test" not in files.lists:
        return [Part("train", files.lists["train"], files.names("train"))]
    if not any(files.labels.values()):
        official = "Groundtruth/TrainTestLabels/Labels_<concept>_Train.txt and _Test.txt"
        text = f"contains no label files; expected {official}, or Groundtruth/AllLabels/Labels_<concept>.txt"
        raise fault(files.folder, text, kind="bad-layout")
    lists = [LISTS[split] for split, labels in files.labels.items() if labels and split not in files.lists]
    labels = [f"Labels_<concept>{ENDS[split]}.txt" for split in files.lists if not files.labels[split]]
    raise fault(
        files.folder,
        f"incomplete: there is no {' and no '.join([*lists, *labels])}. The lists are published separately, "
        f"in ImageList.zip; to use a list of all images, add {data_option('image_list', 'FILE')}",
        kind="bad-layout",
    )


def _one_list(files: Files, order: str | None) -> list[Part]:
    """Divide the list of all images by the lengths of the label files, if the user confirms the order."""
    path = files.lists["all"]
    names = files.names("all")
    sizes: dict[str, int] = {}
    for split in ("train", "test"):
        columns = (read_column(file, files.charset)[0] for file in files.labels[split].values())
        sizes[split] = Counter(map(len, columns)).most_common(1)[0][0]
    lengths = f"the labels have {sizes['train']:,} lines for train and {sizes['test']:,} for test"
    if sum(sizes.values()) != len(names):
        raise fault(path, f"has {counted(len(names), 'image')}, but {lengths}", kind="bad-length")
    if order is None:
        raise fault(
            files.folder,
            f"{lengths}, but there is only one list of all images, {path}, which does not say which images "
            f"are which. Get {LISTS['train']} and {LISTS['test']} from ImageList.zip or, if you are sure, add"
            f"\n  {data_option('order', 'train_first')}: the first {sizes['train']:,} images are for training, "
            f"the other {sizes['test']:,} for testing",
            kind="undeclared-order",
        )
    first = sizes["train"]
    return [Part("train", path, names[:first]), Part("test", path, names[first:], first)]


def locate_images(folder: Path, root: Path | None, names: list[str]) -> tuple[Path, list[str]]:
    """Return the image folder, and the image names in it: some copies have no subfolders."""
    if root is not None:
        folders = [given_folder(root, folder)]
    else:
        folders = [path for path in (folder / "Flickr", folder / "images", folder) if path.is_dir()]
    last_parts = [name.rsplit("/", 1)[-1] for name in names]
    for candidate in folders:
        if holds_any(candidate, names):
            return candidate, names
        if holds_any(candidate, last_parts):
            return candidate, last_parts
    return folders[0], names
