"""The last step of every reader: one row per image, the image folder, the splits."""

from __future__ import annotations

import difflib
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sarb.data.check.names import Rows, check_categories, folded, same_characters, usable_rows
from sarb.data.check.outside import check_outside, leaves
from sarb.data.check.problems import Problems, fault, gathering
from sarb.data.dataset import Data, Dataset
from sarb.data.parse.text import text_lines
from sarb.data.readers.image_files import folder_below
from sarb.errors import DataError, check_share, data_option
from sarb.files import unguarded
from sarb.labels import LabelMatrix

#: how many files of a folder are compared with a missing name
MOST_COMPARED = 2000
#: if more images than this are missing, and no other image is there, one line says so
FEW_MISSING = 3
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
#: how a note on a split begins that was drawn, because the source has none
RANDOM = "random share"
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
    outside: str = "allow",
    excel_safe: bool = False,
) -> Data:
    """Draw the splits that a source does not have, and check that the image files exist.

    Args:
        data: from a reader.
        test: share of the training images to use for testing if the source has no test images (0.2).
        valid: share of the remaining training images to use for validation if the source has none (0).
        split_seed: seed for both splits.
        check_files: check that every image file exists.
        outside: ``allow`` image names that are absolute or lead outside their folder, or ``refuse`` them.
        excel_safe: the table was written with ``--excel-safe``; take its apostrophes off the names.
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
    data = _plain(data) if excel_safe else data
    data = check_outside(problems, data, outside)
    if check_files:
        _note_missing(problems, list(data.splits.values()))
    problems.raise_any()
    if not len(data.test):
        share = 0.2 if test is None else test
        train, held = data.train.split(share, split_seed)
        data = replace(data, train=train, test=held)
        data.notes["test_split"] = f"{RANDOM} {share:g}, seed {split_seed}"
    if data.valid is None and valid:
        train, held = data.train.split(valid, split_seed)
        data = replace(data, train=train, valid=held)
        data.notes["valid_split"] = f"{RANDOM} {valid:g}, seed {split_seed}"
    return data


def _plain(data: Data) -> Data:
    """Take off the apostrophes of a table that was written for spreadsheets."""
    parts: dict[str, Any] = {"train": data.train, "test": data.test, "valid": data.valid}
    for split, part in parts.items():
        if part is not None:
            categories, names = (
                list(map(unguarded, group)) for group in (part.categories, part.labels.paths)
            )
            parts[split] = replace(part, labels=LabelMatrix(part.labels.values, categories, names))
    return replace(data, **parts)


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
    here, *below = image_folders(source, root)
    if not below:
        return here
    checked = names if check_files else names[:1]
    relative = [name for name in checked if not os.path.isabs(name)]  # noqa: PTH117 - faster, as below
    folders = [folder for folder in (here, *below) if any(_is_file(folder, name) for name in relative)]
    if len(folders) == 2:
        raise fault(
            source,
            f"both {here} and {below[0]} have image files; add {data_option('root', 'DIR')} to say which",
        )
    return folders[0] if folders else here


def image_folders(source: Path, root: Path | None) -> list[Path]:
    """Return the folders in which the images of a table may be: ``root``, or its own and its ``images/``."""
    if root is not None:
        root = Path(root).expanduser()
        return [root if root.is_absolute() or root.is_dir() else source.parent / root]
    below = source.parent / "images"
    return [source.parent, below] if below.is_dir() else [source.parent]


def missing_rows(dataset: Dataset) -> list[int]:
    """Return the rows whose image file does not exist."""
    return [row for row, name in enumerate(dataset.labels.paths) if not _is_file(dataset.root, name)]


def _is_file(root: Path, name: str) -> bool:
    # pathlib takes four times as long, which matters for a million names
    return os.path.isfile(os.path.join(root, name))  # noqa: PTH113, PTH118


def _note_missing(problems: Problems, datasets: Sequence[Dataset]) -> None:
    missing = [(dataset, row) for dataset in datasets for row in missing_rows(dataset)]
    gathered = gathering()
    all_missing = len(missing) == sum(map(len, datasets))
    if gathered is not None and gathered.detailed and not (all_missing and len(missing) > FEW_MISSING):
        _note_each_missing(problems, missing, _elsewhere(*missing[0]) if all_missing and missing else "")
        return
    for root in dict.fromkeys(dataset.root for dataset, _ in missing):
        names = [dataset.labels.paths[row] for dataset, row in missing if dataset.root == root]
        total = sum(len(dataset) for dataset in datasets if dataset.root == root)
        few = ", ".join(names[:5]) + (", …" if len(names) > 5 else "")
        first = next((dataset, row) for dataset, row in missing if dataset.root == root)
        problems.add(
            f"{len(names):,} of {total:,} image files are missing in {_shown(root)}: {few}"
            f"{near_file(root, names[0])}{_elsewhere(*first) if len(names) == total else ''}",
            kind="missing-file",
            file=next(dataset.source for dataset, _ in missing if dataset.root == root),
            line=first[0].line(first[1]) if gathered is not None and gathered.detailed else None,
            value=names[0],
            times=len(names) if gathered is not None and gathered.detailed else 1,
            summed=gathered is not None and gathered.detailed,
        )


def _shown(root: Path) -> str:
    return str(root) if root.is_dir() else f"{root} (no such folder)"


def _elsewhere(dataset: Dataset, row: int) -> str:
    """Where the images may be, of which none is where it should be."""
    below = folder_below([dataset.root], dataset.labels.paths[row])
    if below is not None:
        return f"; they are in {below}: add {data_option('root', str(below))}"
    return f"; add {data_option('root', 'DIR')} if they are elsewhere"


def _note_each_missing(problems: Problems, missing: Sequence[tuple[Dataset, int]], hint: str) -> None:
    for number, ((dataset, row), times) in enumerate(problems.counted(missing)):
        name = dataset.labels.paths[row]
        problems.add(
            f"image file '{name}' is missing in {_shown(dataset.root)}{near_file(dataset.root, name)}"
            f"{hint if number == 0 else ''}",
            kind="missing-file",
            file=dataset.source,
            line=dataset.line(row),
            value=name,
            times=times,
        )


def near_file(root: Path, name: str) -> str:
    """Return a hint (``'. There is X'``) if a file differs only in case, Unicode form, suffix or a typo."""
    wanted = root / name
    if unguarded(name) != name and _is_file(root, unguarded(name)):
        return f". The table seems to be written with --excel-safe: add {data_option('excel_safe', 'true')}"
    if leaves(name):  # a table must not make us list folders elsewhere
        return ""
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
