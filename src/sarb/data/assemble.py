"""From what a reader found to :class:`Data`: one row per image, the folder of the images, the splits."""

from __future__ import annotations

import difflib
import os
import unicodedata
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sarb.data.check.problems import Problems, fault, gathering
from sarb.data.dataset import Data, Dataset
from sarb.data.parse.text import text_lines
from sarb.errors import DataError, check_share
from sarb.labels import LabelMatrix, word_of

#: files of a folder that are compared with a missing name
MOST_COMPARED = 2000
#: spellings of a split
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
#: names of files that say nothing; the data are then called as their folder
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
    """Check names and repeated images, raise what is wrong, and divide by ``splits`` (train, test, valid or
    nothing).

    Test images are left out when no row says ``test``: :func:`finish` draws them.
    """
    kept = _unique(problems, names, values, categories, splits, lines)
    _check_categories(problems, categories)
    problems.raise_any()
    path = Path(problems.source)
    called = path.resolve().parent.name if path.stem in ANYONES else ""
    everything = Dataset(
        LabelMatrix(values, categories, names),
        root,
        name or called or path.stem,
        None if lines is None else np.asarray(lines, np.int64),
        path,
    )
    part = np.array(splits if splits is not None else [""] * len(names), dtype=str)
    if len(kept) < len(names):
        everything = everything.take(kept)
        part = part[kept]
    return divide(everything, part, notes)


def divide(everything: Dataset, splits: ArrayLike, notes: dict[str, object] | None = None) -> Data:
    """Divide by the words train, test, valid; an empty word is train."""
    part = np.asarray(splits, dtype=str)
    said = {"test_split": "split column"} if (part == "test").any() else {}
    valid = everything.take(part == "valid") if (part == "valid").any() else None
    train = everything.take((part != "test") & (part != "valid"))
    return Data(train, everything.take(part == "test"), valid, everything.name, {**said, **(notes or {})})


def finish(
    data: Data,
    *,
    test: float | None = None,
    valid: float = 0.0,
    split_seed: int = 0,
    check_files: bool = True,
) -> Data:
    """Draw the splits a source does not have, and look for the image files.

    Args:
        data: from a reader.
        test: share of the training images for testing, when the source has no test images of its own (0.2).
        valid: share of the remaining training images for validation, when the source has none of its own (0).
        split_seed: of both draws.
        check_files: look for every image file.
    """
    check_share("option test", test or 0)
    check_share("option valid", valid)
    problems = Problems(data.train.source or data.name)
    for option, share, own in (("test", test, len(data.test)), ("valid", valid, len(data.valid or ()))):
        if share and own:
            problems.add(
                f"has its own {option} images ({own:,}), so option {option}={share:g} cannot apply; leave it out",
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
    """Return the categories an option names: a file with one per line (beside ``base``), or ``a,b,c``."""
    if value is None:
        return None
    for path in (base.parent / value, Path(value).expanduser()):
        if os.path.isfile(path):  # noqa: PTH113 - Path.is_file raises on a long list of names
            names = [line.strip() for _, line in text_lines(path)]
            break
    else:
        if str(value).endswith(".txt"):
            raise DataError(f"{value}: no such file of category names, neither here nor in {base.parent}")
        names = [name.strip() for name in str(value).split(",") if name.strip()]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice or not names:
        raise DataError(
            f"categories {value}: " + (f"named twice: {', '.join(twice)}" if twice else "none is named")
        )
    return names


def find_root(source: Path, names: Sequence[str], root: Path | None, check_files: bool = True) -> Path:
    """Return the folder of the images: ``root``, else the folder of ``source`` or its ``images/``, where
    they are.

    Raises:
        DataError: images are found in both.
    """
    if root is not None:
        given = Path(root).expanduser()
        return given if given.is_absolute() or given.is_dir() else source.parent / given
    here = source.parent
    below = source.parent / "images"
    if not below.is_dir():
        return here
    asked = [name for name in (names if check_files else names[:1]) if not os.path.isabs(name)]  # noqa: PTH117
    found = [place for place in (here, below) if any(_is_file(place, name) for name in asked)]
    if len(found) == 2:
        text = f"image files are found in {here} and in {below}; add -o root=DIR"
        raise fault(source, f'{text} (Python: root="DIR") to say which')
    return found[0] if found else here


def missing_rows(dataset: Dataset) -> list[int]:
    """Return the rows whose image file does not exist."""
    return [row for row, name in enumerate(dataset.labels.paths) if not _is_file(dataset.root, name)]


def _is_file(root: Path, name: str) -> bool:
    # strings: pathlib takes four times as long, which counts for a million names
    return os.path.isfile(os.path.join(root, name))  # noqa: PTH113, PTH118


def _note_missing(problems: Problems, datasets: Sequence[Dataset]) -> None:
    missing = [(dataset, row) for dataset in datasets for row in missing_rows(dataset)]
    gathered = gathering()
    if gathered is not None and gathered.detailed:
        for number, (dataset, row) in enumerate(missing[: problems.limit]):
            name = dataset.labels.paths[row]
            last = number == problems.limit - 1
            problems.add(
                f"image file '{name}' is missing in {dataset.root}{near_file(dataset.root, name)}",
                kind="missing-file",
                file=dataset.source,
                line=dataset.line(row),
                value=name,
                times=1 + (len(missing) - problems.limit if last else 0),
            )
        return
    for place in dict.fromkeys(dataset.root for dataset, _ in missing):
        names = [dataset.labels.paths[row] for dataset, row in missing if dataset.root == place]
        total = sum(len(dataset) for dataset in datasets if dataset.root == place)
        few = ", ".join(names[:5]) + (", …" if len(names) > 5 else "")
        hint = '; add -o root=DIR (Python: root="DIR") if they are elsewhere' if len(names) == total else ""
        problems.add(
            f"{len(names)} of {total} image files are missing in {place}: {few}{near_file(place, names[0])}{hint}",
            kind="missing-file",
            file=next(dataset.source for dataset, _ in missing if dataset.root == place),
        )


def near_file(root: Path, name: str) -> str:
    """Return ``'. There is X'`` for a file that differs in case, Unicode form, suffix or a letter."""
    wanted = root / name
    try:
        files = [entry.name for entry in os.scandir(wanted.parent)]
    except (OSError, ValueError):
        return ""
    same = [file for file in files if _folded(file) == _folded(wanted.name)]
    if same:
        form = unicodedata.normalize("NFC", same[0]) == unicodedata.normalize("NFC", wanted.name)
        return f". There is '{same[0]}', which differs in {'its Unicode form (NFC/NFD)' if form else 'case'}"
    near = [file for file in files if Path(file).stem == wanted.stem]
    if not near and (wanted.stem.isdigit() or len(wanted.stem) < 4):
        return ""  # another number or letter is another image
    near = near or difflib.get_close_matches(wanted.name, files[:MOST_COMPARED], n=1, cutoff=0.85)
    return f". Did you mean '{near[0]}'?" if near else ""


def _folded(text: str) -> str:
    return unicodedata.normalize("NFC", text).casefold()


def _unique(
    problems: Problems,
    names: Sequence[str],
    values: NDArray[np.int8],
    categories: Sequence[str],
    splits: Sequence[str] | None,
    lines: Sequence[int] | None,
) -> list[int]:
    """Return the rows to keep: the first of each image with a usable name; note the others."""
    seen: dict[str, int] = {}
    kept = []
    for row, name in enumerate(names):
        if not name.strip() or "\0" in name:
            problems.add(
                "empty" if not name.strip() else f"not a file name: {name[:60]!r}",
                kind="bad-name",
                line=None if lines is None else lines[row],
                column="file_name",
            )
            continue
        key = os.path.normpath(name) if "./" in name or "//" in name else name
        first = seen.setdefault(key, row)
        if first == row:
            kept.append(row)
        else:
            _note_repeat(problems, name, (first, row), values, categories, splits, lines)
    return kept


def _note_repeat(
    problems: Problems,
    name: str,
    rows: tuple[int, int],
    values: NDArray[np.int8],
    categories: Sequence[str],
    splits: Sequence[str] | None,
    lines: Sequence[int] | None,
) -> None:
    first, second = rows
    kind = "duplicate-row"
    text = f"file_name '{name}' occurs twice"
    if lines is not None:
        text += f", on lines {lines[first]} and {lines[second]}"
    differ = np.flatnonzero(values[first] * values[second] < 0)
    if len(differ):
        kind = "conflicting-rows"
        column = int(differ[0])
        said = " and ".join(word_of(int(values[row, column])) for row in rows)
        more = f" (and {len(differ) - 1} more)" if len(differ) > 1 else ""
        text += f"; they disagree: '{categories[column]}' is {said}{more}"
    if splits is not None and (splits[first] or "train") != (splits[second] or "train"):
        kind = "split-overlap"
        text = f"{text}; once in {splits[first] or 'train'}, once in {splits[second] or 'train'}"
    problems.add(
        text, kind=kind, line=None if lines is None else lines[second], column="file_name", value=name
    )


def _check_categories(problems: Problems, categories: Sequence[str]) -> None:
    """Note names that cannot be, or that look the same to a person."""
    seen: dict[str, str] = {}
    for name in categories:
        if "\0" in name:
            problems.add(f"category {name!r} holds a NUL character", kind="bad-name", column=name, value=name)
        if name != name.strip():
            problems.add(
                f"category {name!r} starts or ends with a space",
                kind="spaces",
                level="warning",
                column=name,
                value=name,
            )
        first = seen.setdefault(_folded(name.strip()), name)
        if first != name:
            same = unicodedata.normalize("NFC", first) == unicodedata.normalize("NFC", name)
            problems.add(
                f"categories {first!r} and {name!r} differ only in "
                f"{'their Unicode form (NFC/NFD)' if same else 'case or spaces'}",
                kind="similar-categories",
                level="error" if same else "warning",
                column=name,
                value=name,
            )
