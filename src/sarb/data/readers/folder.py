"""Hugging Face ImageFolder: images with a metadata file, in one folder or in one folder per split."""

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
#: folder name -> split
FOLDERS = {**SPLITS, "eval": "test", "evaluation": "test"}


def load_folder(
    path: Path,
    *,
    encoding: str | None = None,
    root: Path | None = None,
    ignore: str = "",
    file_column: str | None = None,
    split_column: str = "split",
    categories: str | None = None,
    delimiter: str | None = None,
    charset: str | None = None,
) -> Data:
    """Read ``metadata.csv``, ``.jsonl`` or ``.parquet`` of a folder, or of its train, validation and test.

    A metadata file is a wide table, see :func:`sarb.data.readers.table.load_table`; image names are relative
    to its folder. If one file covers all splits, its split column tells them apart, or names that start with
    ``train/``, ``test/`` and so on.

    Args:
        path: the folder, or one metadata file.
        encoding: what the codes mean: ``signed`` 1/-1/0, ``binary`` 1/0/blank, ``minus_one_unknown``
            1/0/-1, or words of your own, ``Ja/Nein``.
        root: folder of the images, if it is not the folder of the metadata file.
        ignore: columns that are not categories, ``id,caption``.
        file_column: column with the image names (default: ``file_name``, or the only column whose values are
            all files that exist).
        split_column: column with train, test or valid.
        categories: expected categories, ``a,b,c`` or a file with one per line; any other column is an error.
        delimiter: delimiter of a CSV, one character or ``tab``.
        charset: character set, if not UTF-8, for example ``latin-1``.

    Raises:
        DataError: all problems with file, line and column; splits with different categories.
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
            folders=[root or file.parent],
        )
        for split, file in files.items()
    }
    if "" in tables:
        return _whole(all_problems[""], tables[""], root or files[""].parent)
    if root is not None:
        text = "has one folder per split, so option root does not apply; remove it"
        raise fault(path, text, kind="option")
    datasets = {split: _part(split, all_problems[split], table) for split, table in tables.items()}
    _check_categories(path, datasets)
    return _together(path, datasets, tables["train"].notes)


def _files(path: Path) -> dict[str, Path]:
    """Return split -> metadata file; one file for the whole folder has the key ``""``."""
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
            raise fault(
                path, f"{below[split].parent.name}/ and {folder.name}/ both look like the {split} split"
            )
        else:
            below[split] = file
    if here is not None and below:
        other = next(iter(below.values()))
        raise fault(path, f"contains {here.name} and {other.parent.name}/{other.name}; pass the file to read")
    if here is not None:
        return {"": here}
    if "train" not in below:
        text = f"contains none of {', '.join(METADATA)}, and neither does its folder train"
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
        raise fault(folder, f"contains {names}; pass the file to read, for example {files[0]}")
    return files[0] if files else None


def _warn_without(path: Path, folders: Sequence[Path]) -> None:
    problems = Problems(path)
    for folder in folders:
        text = f"folder {folder.name} has no metadata file, so its images are not read"
        problems.add(text, level="warning", kind="missing-metadata")
    problems.raise_any()


def _whole(problems: Problems, table: Table, root: Path) -> Data:
    """Divide one table by its split column, or by the folders of the names if all of them are splits."""
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
    """Return one split as a dataset; report rows whose split column disagrees with the folder."""
    for line, word in zip(table.lines, table.splits, strict=True):
        if word and word != split:
            text = f"the split column says {word}, but the folder is {split}"
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
            extra = f"; only here: {', '.join(map(repr, only[:5]))}" if only else ""
            lacking = f"; missing here: {', '.join(map(repr, lacks[:5]))}" if lacks else ""
            text = f"has different categories than {datasets['train'].source}{extra}{lacking}"
            raise fault(dataset.source or path, text, kind="other-categories")


def _together(path: Path, datasets: dict[str, Dataset], notes: dict[str, object]) -> Data:
    """Combine the splits, with the categories in the order of the training split."""
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
