"""CheXpert: chest X-rays and 14 findings, each of which a report confirms, denies, doubts or omits."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from sarb.data.assemble import assemble, declared_names
from sarb.data.check.problems import Problems, fault, gathering, warn_size
from sarb.data.dataset import Data
from sarb.data.parse.codes import Codes
from sarb.data.parse.messages import counted, few
from sarb.data.parse.rows import first_columns, full_rows
from sarb.data.parse.text import csv_rows
from sarb.data.readers.image_files import given_folder, holds_any
from sarb.errors import check_choice, data_option, did_you_mean
from sarb.labels import code_table, meaning, normalise_code

FINDINGS = (
    "No Finding",
    "Enlarged Cardiomediastinum",
    "Cardiomegaly",
    "Lung Opacity",
    "Lung Lesion",
    "Edema",
    "Consolidation",
    "Pneumonia",
    "Atelectasis",
    "Pneumothorax",
    "Pleural Effusion",
    "Pleural Other",
    "Fracture",
    "Support Devices",
)
#: columns that are not findings; the test set has only the first of them
OTHERS = ("Path", "Sex", "Age", "Frontal/Lateral", "AP/PA")
SIZES = {"train": 223_414, "valid": 234}
SPLITS = ("train", "valid", "test")


@dataclass
class _Table:
    """One CSV file: the image names and the cells of the findings."""

    path: Path
    problems: Problems
    names: list[str]
    codes: Codes

    @cached_property
    def patients(self) -> dict[str, int]:
        """Patient -> row of the first image."""
        matches = [re.search(r"patient\d+", name) for name in self.names]
        return {match[0]: row for row, match in reversed(list(enumerate(matches))) if match}


def load_chexpert(
    path: Path,
    *,
    uncertain: str = "unknown",
    blank: str = "unknown",
    view: str = "all",
    categories: str | None = None,
    root: Path | None = None,
    charset: str | None = None,
) -> Data:
    """Read CheXpert: 1 is present, 0 absent, -1 uncertain and blank not mentioned.

    The categories are the 14 findings, in column order. ``valid.csv`` is the test split, because the official
    test set is published separately. If ``test.csv`` exists too, that is the test split and ``valid.csv`` the
    validation split.

    Paths in the tables start with the name of the folder, so they are resolved from its parent. If the folder
    was renamed, their first part is dropped.

    Args:
        path: the folder ``CheXpert-v1.0`` or ``CheXpert-v1.0-small`` with its tables, or one table.
        uncertain: read -1 as ``unknown``, ``present`` or ``absent``.
        blank: read a finding that is not mentioned as ``unknown`` or ``absent``.
        view: read ``all`` images, or only ``frontal`` or ``lateral`` ones.
        categories: columns to read, ``a,b,c`` or a file with one per line (default: the 14 findings).
        root: folder that the paths are relative to.
        charset: character set of the tables, if not UTF-8.
    """
    meanings = code_table(
        "minus_one_unknown",
        minus_one=meaning("uncertain", uncertain),
        blank=meaning("blank", blank, ("unknown", "absent")),
    )
    check_choice("value of option view:", view, ("all", "frontal", "lateral"))
    folder, files = _files(path)
    declared = declared_names(categories, files["train"])
    tables: dict[str, _Table] = {}
    for split, file in files.items():
        order = tables["train"].codes.categories if tables else declared
        tables[split] = _read(file, declared, order, view, charset)
    official = view == "all" and re.fullmatch(r"CheXpert-v1\.0(-small)?", folder.name)
    for split, size in SIZES.items() if official else ():
        if split in tables:
            warn_size(f"CheXpert {split}", size, len(tables[split].names), files[split])
    _check_overlap(tables)
    notes = {"uncertain": uncertain, "blank": blank, "view": view, **_counts(tables)}
    base, names = _locate(folder, root, tables)
    return _data(tables, meanings, base, names, notes)


def _files(path: Path) -> tuple[Path, dict[str, Path]]:
    """Return the folder of the data set, and a dict split -> table."""
    if not path.is_dir():
        return path.absolute().parent, {"train": path}
    inner = [table.parent for table in path.glob("CheXpert-*/train.csv")]
    folder = inner[0] if len(inner) == 1 and not (path / "train.csv").is_file() else path
    files = {split: folder / f"{split}.csv" for split in SPLITS if (folder / f"{split}.csv").is_file()}
    if "train" not in files:
        hint = f"; to read only {next(iter(files.values()))}, pass that file" if files else ""
        raise fault(path, f"contains no train.csv{hint}", kind="bad-layout")
    return folder.absolute(), files


def _read(
    path: Path, declared: list[str] | None, order: list[str] | None, view: str, charset: str | None
) -> _Table:
    """Read a table, with the findings in the given order or else in the order of the header."""
    rows = csv_rows(path, charset=charset)
    problems = Problems(path)
    header = [name.strip() for name in next(rows, (1, []))[1]]
    _check_header(problems, header, declared)
    columns = first_columns(header)
    findings = order or list(dict.fromkeys(name for name in header if name in FINDINGS))
    finding_columns = [columns.get(name) for name in findings]
    names: list[str] = []
    codes = Codes(problems, findings)
    for line, row in full_rows(problems, rows, len(header)):
        if view == "all" or _view(problems, line, row, columns) == view:
            names.append(row[columns["Path"]])
            codes.append(line, ["" if column is None else row[column] for column in finding_columns])
    if not names and not problems.count:
        text = "has a header but no rows" if view == "all" else f"has no {view} image"
        raise fault(path, text, kind="empty")
    return _Table(path, problems, names, codes)


def _check_header(problems: Problems, header: list[str], declared: list[str] | None) -> None:
    """Report columns that are missing, unexpected or repeated."""
    if "Path" not in header:
        text = "the file is empty; expected a header with the column 'Path'"
        if header:
            near = did_you_mean("Path", [name[:60] for name in header])
            text = f"the header has no column 'Path', only {few(header)}.{near}"
        raise fault(problems.source, text, line=1, kind="bad-header")
    for name in sorted({name for name in header if header.count(name) > 1}):
        problems.add(f"column '{name[:60]}' occurs twice", line=1, column=name[:60], kind="bad-header")
    strange = [name for name in header if name not in FINDINGS and name not in OTHERS]
    hint = "" if declared else f" To read other columns, add {data_option('categories', 'a,b,c')}"
    for name in (name for name in declared or FINDINGS if name not in header):
        text = f"no column '{name[:60]}'.{did_you_mean(name, header if declared else strange)}"
        problems.add(text + hint, line=1, kind="missing-category", value=name[:60])
    for name in strange if declared is None else ():
        text = f"column '{name[:60]}' is not one of the 14 findings.{did_you_mean(name[:60], FINDINGS)}"
        problems.add(text + hint, line=1, column=name[:60], kind="unknown-category", value=name[:60])


def _view(problems: Problems, line: int, row: list[str], columns: dict[str, int]) -> str:
    """Return frontal or lateral, from the column or, in the test set, from the end of the file name."""
    column = "Frontal/Lateral" if "Frontal/Lateral" in columns else "Path"
    value = row[columns[column]]
    word = value.strip().lower() if column != "Path" else value.rsplit("_", 1)[-1].split(".")[0].lower()
    if word not in ("frontal", "lateral"):
        problems.add(
            line=line,
            column=column,
            value=value[:60],
            kind="bad-value",
            expected="Frontal or Lateral (needed for option view)",
        )
    return word


def _check_overlap(tables: dict[str, _Table]) -> None:
    """Report patients and images that are in two splits."""
    problems = Problems(tables["train"].path)
    gathered = gathering()
    earlier: list[_Table] = []
    for table in tables.values():
        for other in earlier:
            _note_patients(problems, table, other)
            # ``sarb data check`` looks for these itself
            if gathered is None or not gathered.detailed:
                _note_images(problems, table, other)
        earlier.append(table)
    train = tables["train"]
    if len(tables) == 1 and len(train.patients) < len(train.names):
        problems.add(
            "has no test split, so test images are drawn at random: a patient may be in training and test",
            kind="patient-overlap",
            level="warning",
        )
    problems.raise_any()


def _note_patients(problems: Problems, table: _Table, other: _Table) -> None:
    """Warn of patients in two splits: images of one person look alike, so the test would be too easy."""
    both = sorted(table.patients.keys() & other.patients.keys())
    if both:
        patient = both[0]
        other_line = other.codes.lines[other.patients[patient]]
        example = f"for example {patient} (there on line {other_line})"
        problems.add(
            f"{counted(len(both), 'patient')} also in {other.path}, {example}",
            kind="patient-overlap",
            level="warning",
            file=table.path,
            line=table.codes.lines[table.patients[patient]],
            value=patient,
        )


def _note_images(problems: Problems, table: _Table, other: _Table) -> None:
    others = set(other.names)
    for line, name in zip(table.codes.lines, table.names, strict=True):
        if name in others:
            text = f"'{name[:200]}' is also in {other.path}"
            problems.add(text, kind="split-overlap", file=table.path, line=line)


def _counts(tables: dict[str, _Table]) -> dict[str, int]:
    """Count the entries whose labels depend on options."""
    times: Counter[str] = Counter()
    for table in tables.values():
        for spelling, count in table.codes.times().items():
            times[normalise_code(spelling)] += count
    return {"uncertain_entries": times["-1"], "blank_entries": times[""]}


def _locate(folder: Path, root: Path | None, tables: dict[str, _Table]) -> tuple[Path, dict[str, list[str]]]:
    """Return the image folder, and split -> image names relative to it.

    The names are as in the tables, or without their first part.
    """
    first = next((name for table in tables.values() for name in table.names), "")
    top = first.split("/")[0]
    declared = None if root is None else given_folder(root, folder)
    as_written = {}
    without_top = {}
    for split, table in tables.items():
        # paths of the test set start with "test": give them the same first part as the others
        as_written[split] = [f"{top}/{n}" if _bare(n) and not _bare(first) else n for n in table.names]
        without_top[split] = [name if _bare(name) else name.partition("/")[2] for name in table.names]
    ways = [
        (declared or folder.parent, as_written),
        (declared or folder, without_top),
        (declared or folder, as_written),
    ]
    for base, names in ways:
        if any(holds_any(base, part) for part in names.values()):
            return base, names
    if top == folder.name:
        return ways[0]
    return ways[1] if top.startswith("CheXpert") and declared is None else ways[2]


def _bare(name: str) -> bool:
    """Whether a path starts with a split, not with the name of the data set."""
    return name.split("/")[0] in SPLITS or "/" not in name


def _data(
    tables: dict[str, _Table],
    meanings: dict[str, int],
    base: Path,
    names: dict[str, list[str]],
    notes: dict[str, object],
) -> Data:
    parts = {}
    for split, table in tables.items():
        values = table.codes.translate(meanings, "1, 0, -1 or blank")
        parts[split] = assemble(
            table.problems,
            names[split],
            values,
            table.codes.categories,
            root=base,
            lines=table.codes.lines,
            name=f"chexpert_{split}",
        ).train
    held = "test" if "test" in parts else "valid"
    if held in parts:
        notes["test_split"] = tables[held].path.name
    if held == "test" and "valid" in parts:
        notes["valid_split"] = tables["valid"].path.name
    test = parts.get(held, parts["train"].take([]))
    return Data(parts["train"], test, parts.get("valid") if held == "test" else None, "chexpert", notes)
