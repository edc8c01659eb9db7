"""Hugging Face ImageFolder: a metadata file beside the images, in one folder or in one folder per split."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from sarb.data.assemble import SPLITS, assemble
from sarb.data.check.problems import Problems, fault
from sarb.data.dataset import Data, Dataset
from sarb.data.readers.table import Columns, Table, ignored, read_table

METADATA = ("metadata.csv", "metadata.jsonl", "metadata.parquet")
#: names of folders that are splits
FOLDERS = {**SPLITS, "eval": "test", "evaluation": "test"}


def load_folder(
    place: Path,
    *,
    encoding: str | None = None,
    root: Path | None = None,
    ignore: str = "",
    file_column: str = "file_name",
    split_column: str = "split",
    categories: str | None = None,
    delimiter: str | None = None,
    charset: str | None = None,
) -> Data:
    """Read ``metadata.csv``, ``.jsonl`` or ``.parquet`` in a folder, or in its folders train, validation and
    test.

    A metadata file is a wide table, see :func:`sarb.data.readers.table.load_table`; its names are relative
    to its own folder. One file for all splits tells them by its split column, or by names that begin with
    ``train/``, ``test/`` …

    Args:
        place: the folder, or one metadata file.
        encoding: what numeric codes mean: ``signed`` 1/-1/0, ``binary`` 1/0/blank, ``minus_one_unknown``
            1/0/-1.
        root: folder of the images, where it is not the folder of the one metadata file.
        ignore: columns that are no categories, ``id,caption``.
        file_column: the column with the image names.
        split_column: the column that says train, test or valid.
        categories: the names there should be, ``a,b,c`` or a file with one per line; another column is an
            error.
        delimiter: of a CSV, one character or ``tab``.
        charset: of a file that is not UTF-8, such as ``latin-1``.

    Raises:
        DataError: every fault with file, line and column; splits with different categories.
    """
    columns = Columns(file_column, split_column, ignored(ignore))
    parts = _files(place)
    read = {
        split: (
            (problems := Problems(file)),
            read_table(
                problems, file, columns, encoding, categories=categories, delimiter=delimiter, charset=charset
            ),
        )
        for split, file in parts.items()
    }
    if "" in read:
        problems, table = read[""]
        return _whole(problems, table, root or parts[""].parent)
    if root is not None:
        raise fault(
            place, "has one folder per split, so option root cannot apply; leave it out", kind="option"
        )
    datasets = {split: _part(split, *found) for split, found in read.items()}
    _check_categories(place, datasets)
    return _together(place, datasets, read["train"][1].notes)


def _files(place: Path) -> dict[str, Path]:
    """Return split -> metadata file; the split of a file for the whole folder is empty."""
    if place.is_file():
        return {"": place}
    here = _metadata(place)
    below: dict[str, Path] = {}
    without = []
    for folder in _split_folders(place):
        file = _metadata(folder)
        split = FOLDERS[folder.name.lower()]
        if file is None:
            without.append(folder)
        elif split in below:
            raise fault(place, f"{below[split].parent.name}/ and {folder.name}/ are both the {split} split")
        else:
            below[split] = file
    if here is not None:
        if below:
            other = next(iter(below.values()))
            raise fault(
                place, f"holds {here.name} and {other.parent.name}/{other.name}; give the file to read"
            )
        return {"": here}
    if "train" not in below:
        missing = f"{', '.join(METADATA)} in it or in its folder train"
        raise fault(place, f"there is no {missing}", kind="missing-metadata")
    _warn_without(place, without)
    return {split: below[split] for split in ("train", "valid", "test") if split in below}


def _split_folders(place: Path) -> list[Path]:
    try:
        return sorted(path for path in place.iterdir() if path.name.lower() in FOLDERS and path.is_dir())
    except OSError as error:
        raise fault(place, f"cannot be read ({error.strerror})") from None


def _metadata(folder: Path) -> Path | None:
    found = [folder / name for name in METADATA if (folder / name).is_file()]
    if len(found) > 1:
        raise fault(
            folder, f"holds {' and '.join(file.name for file in found)}; give the file to read: {found[0]}"
        )
    return found[0] if found else None


def _warn_without(place: Path, folders: Sequence[Path]) -> None:
    problems = Problems(place)
    for folder in folders:
        problems.add(
            f"folder {folder.name} has no metadata file, its images are not read",
            level="warning",
            kind="missing-metadata",
        )
    problems.raise_any()


def _whole(problems: Problems, table: Table, root: Path) -> Data:
    """Divide one table: by its column, else by the folder each name begins with, where all begin with a
    split.
    """
    splits = table.splits
    if not any(splits):
        first = [name.partition("/")[0].lower() if "/" in name else "" for name in table.names]
        splits = [FOLDERS[word] for word in first] if all(word in FOLDERS for word in first) else splits
    return assemble(
        problems,
        table.names,
        table.values,
        table.categories,
        root=root,
        splits=splits,
        lines=table.lines,
        name=root.name,
        notes=table.notes,
    )


def _part(split: str, problems: Problems, table: Table) -> Dataset:
    """Return one split as a data set; a split column must not say otherwise."""
    for line, word in zip(table.lines, table.splits, strict=True):
        if word and word != split:
            problems.add(
                f"column split says {word}, but the folder is {split}",
                kind="bad-split",
                line=line,
                value=word,
            )
    folder = Path(problems.source).parent
    return assemble(
        problems,
        table.names,
        table.values,
        table.categories,
        root=folder,
        lines=table.lines,
        name=folder.name,
    ).train


def _check_categories(place: Path, datasets: dict[str, Dataset]) -> None:
    first = set(datasets["train"].categories)
    for dataset in datasets.values():
        only = sorted(set(dataset.categories) - first)
        lacks = sorted(first - set(dataset.categories))
        if only or lacks:
            extra = f"; it alone has {', '.join(map(repr, only[:5]))}" if only else ""
            lacking = f"; it lacks {', '.join(map(repr, lacks[:5]))}" if lacks else ""
            text = f"other categories than {datasets['train'].source}{extra}{lacking}"
            raise fault(dataset.source or place, text, kind="other-categories")


def _together(place: Path, datasets: dict[str, Dataset], notes: dict[str, object]) -> Data:
    """Put the splits together, with the categories in the order of the training images."""
    order = datasets["train"].categories
    for split, dataset in datasets.items():
        labels = dataset.labels
        if labels.categories != order:
            columns = [labels.categories.index(name) for name in order]
            datasets[split] = replace(
                dataset, labels=type(labels)(labels.values[:, columns], order, labels.paths)
            )
    train = datasets["train"]
    said = {"test_split": "folders"} if "test" in datasets else {}
    return Data(
        train, datasets.get("test", train.take([])), datasets.get("valid"), place.name, {**said, **notes}
    )
