"""Hugging Face ImageFolder: a metadata file beside the images, in one folder or in one folder per split."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from sarb.data.assemble import SPLITS, assemble
from sarb.data.check.problems import Problems, fault
from sarb.data.dataset import Data, Dataset
from sarb.data.parse.text import unreadable
from sarb.data.readers.table import Table, ignored, read_table
from sarb.data.readers.table_header import Columns
from sarb.labels import LabelMatrix

METADATA = ("metadata.csv", "metadata.jsonl", "metadata.parquet")
#: names of folders that are splits
FOLDERS = {**SPLITS, "eval": "test", "evaluation": "test"}


def load_folder(
    path: Path,
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
        path: the folder, or one metadata file.
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
    files = _files(path)
    all_problems = {split: Problems(file) for split, file in files.items()}
    tables = {
        split: read_table(
            all_problems[split],
            file,
            columns,
            encoding,
            categories=categories,
            delimiter=delimiter,
            charset=charset,
        )
        for split, file in files.items()
    }
    if "" in tables:
        return _whole(all_problems[""], tables[""], root or files[""].parent)
    if root is not None:
        text = "has one folder per split, so option root cannot apply; leave it out"
        raise fault(path, text, kind="option")
    datasets = {split: _part(split, all_problems[split], table) for split, table in tables.items()}
    _check_categories(path, datasets)
    return _together(path, datasets, tables["train"].notes)


def _files(path: Path) -> dict[str, Path]:
    """Return split -> metadata file; the split of a file for the whole folder is empty."""
    if path.is_file():
        return {"": path}
    here = _metadata(path)
    below: dict[str, Path] = {}
    without = []
    for folder in _split_folders(path):
        file = _metadata(folder)
        split = FOLDERS[folder.name.lower()]
        if file is None:
            without.append(folder)
        elif split in below:
            raise fault(path, f"{below[split].parent.name}/ and {folder.name}/ are both the {split} split")
        else:
            below[split] = file
    if here is not None and below:
        other = next(iter(below.values()))
        raise fault(path, f"holds {here.name} and {other.parent.name}/{other.name}; give the file to read")
    if here is not None:
        return {"": here}
    if "train" not in below:
        text = f"there is no {', '.join(METADATA)} in it or in its folder train"
        raise fault(path, text, kind="missing-metadata")
    _warn_without(path, without)
    return {split: below[split] for split in ("train", "valid", "test") if split in below}


def _split_folders(path: Path) -> list[Path]:
    try:
        return sorted(entry for entry in path.iterdir() if entry.name.lower() in FOLDERS and entry.is_dir())
    except OSError as error:
        raise unreadable(path, error) from None


def _metadata(folder: Path) -> Path | None:
    files = [folder / name for name in METADATA if (folder / name).is_file()]
    if len(files) > 1:
        names = " and ".join(file.name for file in files)
        raise fault(folder, f"holds {names}; give the file to read: {files[0]}")
    return files[0] if files else None


def _warn_without(path: Path, folders: Sequence[Path]) -> None:
    problems = Problems(path)
    for folder in folders:
        text = f"folder {folder.name} has no metadata file, its images are not read"
        problems.add(text, level="warning", kind="missing-metadata")
    problems.raise_any()


def _whole(problems: Problems, table: Table, root: Path) -> Data:
    """Divide one table: by its column, else by the folder each name begins with, where all begin with a
    split.
    """
    splits = table.splits
    if not any(splits):
        top = [name.partition("/")[0].lower() if "/" in name else "" for name in table.names]
        splits = [FOLDERS[word] for word in top] if all(word in FOLDERS for word in top) else splits
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
            text = f"column split says {word}, but the folder is {split}"
            problems.add(text, kind="bad-split", line=line, value=word)
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


def _check_categories(path: Path, datasets: dict[str, Dataset]) -> None:
    first = set(datasets["train"].categories)
    for dataset in datasets.values():
        only = sorted(set(dataset.categories) - first)
        lacks = sorted(first - set(dataset.categories))
        if only or lacks:
            extra = f"; it alone has {', '.join(map(repr, only[:5]))}" if only else ""
            lacking = f"; it lacks {', '.join(map(repr, lacks[:5]))}" if lacks else ""
            text = f"other categories than {datasets['train'].source}{extra}{lacking}"
            raise fault(dataset.source or path, text, kind="other-categories")


def _together(path: Path, datasets: dict[str, Dataset], notes: dict[str, object]) -> Data:
    """Put the splits together, with the categories in the order of the training images."""
    order = datasets["train"].categories
    for split, dataset in datasets.items():
        labels = dataset.labels
        if labels.categories != order:
            columns = [labels.categories.index(name) for name in order]
            ordered = LabelMatrix(labels.values[:, columns], order, labels.paths)
            datasets[split] = replace(dataset, labels=ordered)
    train = datasets["train"]
    test = datasets.get("test", train.take([]))
    if "test" in datasets:
        notes = {"test_split": "folders", **notes}
    return Data(train, test, datasets.get("valid"), path.name, notes)
