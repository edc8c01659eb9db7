"""CheXpert: chest X-rays with 14 findings, of which a report affirms, denies or doubts some."""

from __future__ import annotations

import os
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from sarb.data.assemble import assemble, declared_names
from sarb.data.check.problems import Problems, fault, gathering, warn_size
from sarb.data.dataset import Data
from sarb.data.parse.codes import Codes
from sarb.data.parse.text import csv_rows
from sarb.errors import check_choice, did_you_mean
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
#: columns that are no findings; the table of the test set has only the first
OTHERS = ("Path", "Sex", "Age", "Frontal/Lateral", "AP/PA")
SIZES = {"train": 223_414, "valid": 234}
SPLITS = ("train", "valid", "test")
#: images looked for to find their folder
TRIED = 100


@dataclass
class _Table:
    """One CSV: image names, and the cells of the findings with their lines."""

    path: Path
    problems: Problems
    names: list[str]
    codes: Codes

    def patients(self) -> dict[str, int]:
        """Return patient -> row of the first image."""
        found = (re.search(r"patient\d+", name) for name in self.names)
        return {match[0]: row for row, match in reversed(list(enumerate(found))) if match}


def load_chexpert(
    place: Path,
    *,
    uncertain: str = "unknown",
    blank: str = "unknown",
    view: str = "all",
    categories: str | None = None,
    root: Path | None = None,
    charset: str | None = None,
) -> Data:
    """Read CheXpert: 1 is present, 0 absent, -1 uncertain, blank not mentioned; the 14 findings in column
    order.

    ``valid.csv`` is for testing, since the official test set is published apart; where ``test.csv`` is there
    too, that is for testing and ``valid.csv`` for validation. A path begins with the name of the folder, so
    images are looked for from beside it; in a folder of another name, without the beginning of the path.

    Args:
        place: the folder ``CheXpert-v1.0`` or ``CheXpert-v1.0-small`` with its tables, or one table.
        uncertain: a finding marked -1 is ``unknown``, ``present`` or ``absent``.
        blank: a finding not mentioned is ``unknown`` or ``absent``.
        view: ``all`` images, or only ``frontal`` or ``lateral`` ones.
        categories: the columns to read, ``a,b,c`` or a file with one per line; by default the 14 findings.
        root: folder that the paths are relative to.
        charset: of tables that are not UTF-8.
    """
    meanings = code_table(
        "minus_one_unknown",
        minus_one=meaning("uncertain", uncertain),
        blank=meaning("blank", blank, ("unknown", "absent")),
    )
    check_choice("value of option view:", view, ("all", "frontal", "lateral"))
    folder, files = _files(place)
    declared = declared_names(categories, files["train"])
    tables: dict[str, _Table] = {}
    for split, path in files.items():
        order = tables["train"].codes.categories if tables else declared
        tables[split] = _read(path, declared, order, view, charset)
    official = view == "all" and re.fullmatch(r"CheXpert-v1\.0(-small)?", folder.name)
    for split, size in SIZES.items() if official else ():
        if split in tables:
            warn_size(f"CheXpert {split}", size, len(tables[split].names), files[split])
    _check_patients(tables)
    notes = {"uncertain": uncertain, "blank": blank, "view": view, **_counts(tables)}
    return _data(tables, meanings, _locate(folder, root, tables), notes)


def _files(place: Path) -> tuple[Path, dict[str, Path]]:
    """Return the folder of the set, and split -> table."""
    if not place.is_dir():
        return place.absolute().parent, {"train": place}
    inner = [path.parent for path in place.glob("CheXpert-*/train.csv")]
    folder = inner[0] if len(inner) == 1 and not (place / "train.csv").is_file() else place
    files = {split: folder / f"{split}.csv" for split in SPLITS if (folder / f"{split}.csv").is_file()}
    if "train" not in files:
        more = f"; to read only {next(iter(files.values()))}, give that file" if files else ""
        raise fault(place, f"no train.csv in it{more}", kind="bad-layout")
    return folder.absolute(), files


def _read(
    path: Path, declared: list[str] | None, order: list[str] | None, view: str, charset: str | None
) -> _Table:
    """Read a table; the findings come in ``order``, or as in the header."""
    rows = csv_rows(path, charset=charset)
    problems = Problems(path)
    header = [name.strip() for name in next(rows, (1, []))[1]]
    _check_header(problems, header, declared)
    place = {name: number for number, name in reversed(list(enumerate(header)))}
    findings = order or list(dict.fromkeys(name for name in header if name in FINDINGS))
    cells = [place.get(name) for name in findings]
    names = list[str]()
    codes = Codes(problems, findings)
    for line, row in rows:
        if len(row) != len(header):
            problems.add(f"{len(row)} fields, the header has {len(header)}", line=line, kind="bad-row")
        elif view == "all" or _view(problems, line, row, place) == view:
            names.append(row[place["Path"]])
            codes.append(line, ["" if cell is None else row[cell] for cell in cells])
    if not names and not problems.count:
        raise fault(
            path, f"no image of view {view}" if view != "all" else "a header, but no row", kind="empty"
        )
    return _Table(path, problems, names, codes)


def _check_header(problems: Problems, header: list[str], declared: list[str] | None) -> None:
    """Note columns that are missing, strange or there twice."""
    if "Path" not in header:
        few = ", ".join(name[:40] for name in header[:5]) or "nothing: the file is empty"
        near = did_you_mean("Path", [name[:60] for name in header])
        raise fault(
            problems.source, f"the header has no column 'Path', only {few}.{near}", line=1, kind="bad-header"
        )
    for name in sorted({name for name in header if header.count(name) > 1}):
        problems.add(f"column '{name[:60]}' occurs twice", line=1, column=name[:60], kind="bad-header")
    strange = [name for name in header if name not in FINDINGS and name not in OTHERS]
    hint = "" if declared else ' To read other columns, add -o categories=a,b,c (Python: categories="a,b,c")'
    for name in (name for name in declared or FINDINGS if name not in header):
        text = f"no column '{name[:60]}'.{did_you_mean(name, header if declared else strange)}"
        problems.add(text + hint, line=1, kind="missing-category", value=name[:60])
    for name in strange if declared is None else ():
        text = f"column '{name[:60]}' is none of the 14 findings.{did_you_mean(name[:60], FINDINGS)}"
        problems.add(text + hint, line=1, column=name[:60], kind="unknown-category", value=name[:60])


def _view(problems: Problems, line: int, row: list[str], place: dict[str, int]) -> str:
    """Return frontal or lateral, by its column or, in the table of the test set, by the end of the file's
    name.
    """
    column = "Frontal/Lateral" if "Frontal/Lateral" in place else "Path"
    value = row[place[column]]
    word = value.strip().lower() if column != "Path" else value.rsplit("_", 1)[-1].split(".")[0].lower()
    if word not in ("frontal", "lateral"):
        problems.add(
            line=line,
            column=column,
            value=value[:60],
            kind="bad-value",
            expected="Frontal or Lateral, for option view",
        )
    return word


def _check_patients(tables: dict[str, _Table]) -> None:
    """Warn of patients in two splits: images of one person are alike, so the test would be too easy."""
    problems = Problems(tables["train"].path)
    done = list[_Table]()
    found = gathering()
    for table in tables.values():
        patients = table.patients()
        for other in done:
            both = sorted(patients.keys() & (theirs := other.patients()).keys())
            if both:
                lines = other.codes.lines[theirs[both[0]]], table.codes.lines[patients[both[0]]]
                problems.add(
                    f"{len(both):,} patients are in it and in {other.path}, such as {both[0]} (line {lines[0]} there)",
                    kind="patient-overlap",
                    level="warning",
                    file=table.path,
                    line=lines[1],
                    value=both[0],
                )
            # ``sarb data check`` finds these by itself
            same = set(other.names) if not (found and found.detailed) else set()
            for line, name in zip(table.codes.lines, table.names, strict=True):
                if name in same:
                    text = f"'{name[:200]}' is also in {other.path}"
                    problems.add(text, kind="split-overlap", file=table.path, line=line)
        done.append(table)
    if len(tables) == 1 and len(done[0].patients()) < len(done[0].names):
        problems.add(
            "no table of test images, so they are drawn at random and a patient can be in training and test",
            kind="patient-overlap",
            level="warning",
        )
    problems.raise_any()


def _counts(tables: dict[str, _Table]) -> dict[str, int]:
    """Count the entries that options decide on."""
    times: Counter[str] = Counter()
    for codes in (table.codes for table in tables.values()):
        numbers = np.bincount(np.asarray(codes.flat, np.int32), minlength=len(codes.spellings)).tolist()
        for spelling, number in codes.spellings.items():
            times[normalise_code(spelling)] += numbers[number]
    return {"uncertain_entries": times["-1"], "blank_entries": times[""]}


def _locate(folder: Path, root: Path | None, tables: dict[str, _Table]) -> tuple[Path, dict[str, list[str]]]:
    """Return the folder of the images and split -> their names in it: as written, or without the first
    part.
    """
    first = next((name for table in tables.values() for name in table.names), "")
    top = first.split("/")[0]
    given = root.expanduser() if root is not None else None
    if given is not None and not given.is_absolute() and not given.is_dir():
        given = folder / given
    # the test set's paths begin with "test": give them the same first part, or none has one
    long = {
        s: [f"{top}/{n}" if _bare(n) and not _bare(first) else n for n in t.names] for s, t in tables.items()
    }
    short = {s: [n if _bare(n) else n.partition("/")[2] for n in t.names] for s, t in tables.items()}
    ways = [(given or folder.parent, long), (given or folder, short), (given or folder, long)]
    for base, names in ways:
        if any(_is_file(base, name) for found in names.values() for name in found[:TRIED]):
            return base, names
    return (
        ways[0]
        if top == folder.name
        else ways[1]
        if top.startswith("CheXpert") and given is None
        else ways[2]
    )


def _bare(name: str) -> bool:
    return name.split("/")[0] in SPLITS or "/" not in name


def _is_file(base: Path, name: str) -> bool:
    return "\0" not in name and bool(name) and os.path.isfile(base / name)  # noqa: PTH113 - too long a name is no error


def _data(
    tables: dict[str, _Table],
    meanings: dict[str, int],
    places: tuple[Path, dict[str, list[str]]],
    notes: dict[str, object],
) -> Data:
    parts = {}
    for split, table in tables.items():
        values = table.codes.translate(meanings, "1, 0, -1 or blank")
        parts[split] = assemble(
            table.problems,
            places[1][split],
            values,
            table.codes.categories,
            root=places[0],
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
