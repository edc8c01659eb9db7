"""The last step of every reader: one row per image, the image folder, the splits."""

from __future__ import annotations

import difflib
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sarb.data.check.names import Rows, check_categories, folded, same_characters, usable_rows
from sarb.data.check.problems import Problems, fault, gathering
from sarb.data.dataset import Data, Dataset
from sarb.data.parse.text import text_lines
from sarb.errors import DataError, check_share
from sarb.labels import LabelMatrix

#: how many files of a folder are compared with a missing name
MOST_COMPARED = 2000
#: accepted words for a split
SPLITS = {
    "train": "train",
    "training": "train",
    "test": "test",
    "testing": "test",
    "valid": "valid",
    "val": "valid",
    "validation": "valid",
    "dev": "valid",
}
#: file names that say nothing about the data; the data set is then named after its folder
ANYONES = ("labels", "metadata", "annotations", "train", "data")


def assemble(
    problems: Problems,
    names: Sequence[str],
    values: NDArray[np.int8],
    categories: Sequence[str],
    *,
    root: Path,
    splits: Sequence[str] | None = None,
    lines: Sequence[int] | None = None,
    name: str | None = None,
    notes: dict[str, object] | None = None,
) -> Data:
    """Check image and category names, raise all errors, and divide the rows by ``splits``.

    ``splits`` are train, test, valid or empty. If no row says ``test``, :func:`finish` draws the test images.
    """
    kept = usable_rows(problems, Rows(names, values, categories, splits, lines))
    check_categories(problems, categories)
    problems.raise_any()
    path = Path(problems.source)
    folder_name = path.resolve().parent.name if path.stem in ANYONES else ""
    everything = Dataset(
        LabelMatrix(values, categories, names),
        root,
        name or folder_name or path.stem,
        None if lines is None else np.asarray(lines, np.int64),
        path,
    )
    words = np.array(splits if splits is not None else [""] * len(names), dtype=str)
    if len(kept) < len(names):
        everything = everything.take(kept)
        words = words[kept]
    return divide(everything, words, notes)


def divide(everything: Dataset, splits: ArrayLike, notes: dict[str, object] | None = None) -> Data:
    """Divide images by their split: train, test or valid; an empty word means train."""
    words = np.asarray(splits, dtype=str)
    origin = {"test_split": "split column"} if (words == "test").any() else {}
    return Data(
        train=everything.take((words != "test") & (words != "valid")),
        test=everything.take(words == "test"),
        valid=everything.take(words == "valid") if (words == "valid").any() else None,
        name=everything.name,
        notes={**origin, **(notes or {})},
    )


def finish(
    data: Data,
    *,
    test: float | None = None,
    valid: float = 0.0,
    split_seed: int = 0,
    check_files: bool = True,
) -> Data:
    """Draw the splits that a source does not have, and check that the image files exist.

    Args:
        data: from a reader.
        test: share of the training images to use for testing if the source has no test images (0.2).
        valid: share of the remaining training images to use for validation if the source has none (0).
        split_seed: seed for both splits.
        check_files: check that every image file exists.
    """
    check_share("option test", test or 0)
    check_share("option valid", valid)
    problems = Problems(data.train.source or data.name)
    for option, share, images in (("test", test, len(data.test)), ("valid", valid, len(data.valid or ()))):
        if share and images:
            problems.add(
                f"has its own {option} images ({images:,}), so option {option}={share:g} cannot apply; "
                "remove it",
                kind="option",
            )
    if check_files:
        _note_missing(problems, list(data.splits.values()))
    problems.raise_any()
    if not len(data.test):
        share = 0.2 if test is None else test
        train, held = data.train.split(share, split_seed)
        data = replace(data, train=train, test=held)
        data.notes["test_split"] = f"random share {share:g}, seed {split_seed}"
    if data.valid is None and valid:
        train, held = data.train.split(valid, split_seed)
        data = replace(data, train=train, valid=held)
        data.notes["valid_split"] = f"random share {valid:g}, seed {split_seed}"
    return data


def declared_names(value: str | Path | None, base: Path) -> list[str] | None:
    """Return the categories of an option: a file with one per line (next to ``base``), or ``a,b,c``."""
    if value is None:
        return None
    for path in (base.parent / value, Path(value).expanduser()):
        if os.path.isfile(path):  # noqa: PTH113 - Path.is_file raises on a long list of names
            names = [line.strip() for _, line in text_lines(path)]
            break
    else:
        if str(value).endswith(".txt"):
            raise DataError(
                f"{value}: no such file of category names, neither in the current folder nor in {base.parent}"
            )
        names = [name.strip() for name in str(value).split(",") if name.strip()]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice or not names:
        reason = f"named twice: {', '.join(twice)}" if twice else "the list is empty"
        raise DataError(f"categories {value}: {reason}")
    return names


def find_root(source: Path, names: Sequence[str], root: Path | None, check_files: bool = True) -> Path:
    """Return the image folder: ``root`` if given, else the folder of ``source`` or its ``images/``.

    Raises:
        DataError: both folders have some of the images.
    """
    if root is not None:
        root = Path(root).expanduser()
        return root if root.is_absolute() or root.is_dir() else source.parent / root
    here = source.parent
    below = source.parent / "images"
    if not below.is_dir():
        return here
    checked = names if check_files else names[:1]
    relative = [name for name in checked if not os.path.isabs(name)]  # noqa: PTH117 - faster, as below
    folders = [folder for folder in (here, below) if any(_is_file(folder, name) for name in relative)]
    if len(folders) == 2:
        raise fault(
            source,
            f'both {here} and {below} have image files; add -o root=DIR (Python: root="DIR") to say which',
        )
    return folders[0] if folders else here


def missing_rows(dataset: Dataset) -> list[int]:
    """Return the rows whose image file does not exist."""
    return [row for row, name in enumerate(dataset.labels.paths) if not _is_file(dataset.root, name)]


def _is_file(root: Path, name: str) -> bool:
    # pathlib takes four times as long, which matters for a million names
    return os.path.isfile(os.path.join(root, name))  # noqa: PTH113, PTH118


def _note_missing(problems: Problems, datasets: Sequence[Dataset]) -> None:
    missing = [(dataset, row) for dataset in datasets for row in missing_rows(dataset)]
    gathered = gathering()
    if gathered is not None and gathered.detailed:
        _note_each_missing(problems, missing)
        return
    for root in dict.fromkeys(dataset.root for dataset, _ in missing):
        names = [dataset.labels.paths[row] for dataset, row in missing if dataset.root == root]
        total = sum(len(dataset) for dataset in datasets if dataset.root == root)
        few = ", ".join(names[:5]) + (", …" if len(names) > 5 else "")
        hint = '; add -o root=DIR (Python: root="DIR") if they are elsewhere' if len(names) == total else ""
        problems.add(
            f"{len(names)} of {total} image files are missing in {_shown(root)}: {few}"
            f"{near_file(root, names[0])}{hint}",
            kind="missing-file",
            file=next(dataset.source for dataset, _ in missing if dataset.root == root),
        )


def _shown(root: Path) -> str:
    return str(root) if root.is_dir() else f"{root} (no such folder)"


def _note_each_missing(problems: Problems, missing: Sequence[tuple[Dataset, int]]) -> None:
    for (dataset, row), times in problems.counted(missing):
        name = dataset.labels.paths[row]
        problems.add(
            f"image file '{name}' is missing in {_shown(dataset.root)}{near_file(dataset.root, name)}",
            kind="missing-file",
            file=dataset.source,
            line=dataset.line(row),
            value=name,
            times=times,
        )


def near_file(root: Path, name: str) -> str:
    """Return a hint (``'. There is X'``) if a file differs only in case, Unicode form, suffix or a typo."""
    wanted = root / name
    try:
        files = [entry.name for entry in os.scandir(wanted.parent)]
    except (OSError, ValueError):
        return ""
    same = [file for file in files if folded(file) == folded(wanted.name)]
    if same:
        difference = "its Unicode form (NFC/NFD)" if same_characters(same[0], wanted.name) else "case"
        return f". There is '{same[0]}', which differs in {difference}"
    near = [file for file in files if Path(file).stem == wanted.stem]
    if not near and (wanted.stem.isdigit() or len(wanted.stem) < 4):
        return ""  # a similar number or a short name is probably another image
    near = near or difflib.get_close_matches(wanted.name, files[:MOST_COMPARED], n=1, cutoff=0.85)
    return f". Did you mean '{near[0]}'?" if near else ""
