"""Tables with a list of labels per image, in the format of fastai: ``fname,labels[,is_valid]``."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from sarb.data.assemble import assemble, declared_names, find_root, image_folders
from sarb.data.check.problems import Problems, fault
from sarb.data.dataset import Data
from sarb.data.parse.facts import Facts
from sarb.data.parse.messages import few
from sarb.data.parse.rows import Rows, full_rows, other_delimiter, split_of
from sarb.data.parse.text import csv_rows, usual_delimiter
from sarb.data.parse.unlisted import check_unlisted, rest_label
from sarb.data.readers.file_column import Lookup
from sarb.data.readers.list_delimiter import DELIMITERS, find_delimiter, split_labels
from sarb.errors import DataError, check_choice, data_option, did_you_mean
from sarb.labels import ABSENT, PRESENT, UNKNOWN

NAME_COLUMNS = ("fname", "file_name")
#: columns that list what ``unlisted`` cannot say, with the label they give; sarb adds them when it writes a list
FURTHER = {"absent_labels": ABSENT, "unknown_labels": UNKNOWN}
TRUTH = {
    **dict.fromkeys(("true", "1", "yes", "1.0"), True),
    **dict.fromkeys(("false", "0", "no", "0.0"), False),
}
#: warn if a label that occurs once is similar to one that occurs at least this often
FREQUENT = 20
SIMILAR = 0.85
#: pairs of labels to compare at most
PAIRS = 50_000


def load_list(
    path: Path,
    *,
    unlisted: str | None = None,
    label_delimiter: str = "auto",
    root: Path | None = None,
    file_column: str | None = None,
    labels_column: str = "labels",
    split_column: str = "split",
    is_valid: str = "valid",
    categories: str | None = None,
    delimiter: str | None = None,
    charset: str | None = None,
    check_files: bool = True,
) -> Data:
    """Read a CSV with ``fname``, ``labels`` and optionally ``is_valid`` or ``split``; listed is present.

    Columns ``absent_labels`` and ``unknown_labels``, which sarb itself writes, list exceptions to ``unlisted``.

    Args:
        path: the table, CSV or, if its suffix says so, TSV.
        unlisted: what a label that is not listed is, ``unknown`` or ``absent`` (required).
        label_delimiter: what separates labels: one character, ``space``, ``tab``, or ``none`` if a cell is
            one label; ``auto`` works if the cells can be split in only one way.
        root: folder of the images (default: the folder of the table, or its ``images/`` if they are only
            there).
        file_column: column with the image names (default: ``fname`` or ``file_name``, or the only column whose
            values are all files that exist).
        labels_column: column with the labels.
        split_column: column with train, test or valid.
        is_valid: whether True in column ``is_valid`` means ``valid`` or ``test``, or ``ignore`` the column.
        categories: the categories, ``a,b,c`` or a file with one per line (default: ``NAME.categories.txt``
            next to ``NAME.csv``, else every name that occurs, in alphabetical order).
        delimiter: delimiter between columns, one character or ``tab``.
        charset: character set, if not UTF-8, for example ``latin-1``.
        check_files: look for the image files to find their folder.

    Raises:
        DataError: all problems in the file, with line and column; a choice that the user must make.
    """
    check_choice("value of option is_valid:", is_valid, ("valid", "test", "ignore"))
    check_unlisted(unlisted)
    problems = Problems(path)
    folders = image_folders(path, root) if check_files else []
    columns = _Columns(path, file_column, labels_column, split_column, is_valid, folders, delimiter, charset)
    rows = list(columns.read(problems))
    if not rows and not problems.count:
        raise fault(path, "has a header but no rows")
    cells = [cell for row in rows for cell in (row.cell, *row.further.values())]
    mark = find_delimiter(problems, cells, label_delimiter, unlisted)
    facts = _facts(problems, rows, mark, _declared(path, categories))
    if not facts.columns:
        raise fault(path, "no row lists any label", column=labels_column)
    present = len(facts)
    entries = len(facts.images) * len(facts.columns)
    values, names = facts.matrix(rest_label(problems, unlisted, present, entries - present))
    notes: dict[str, object] = {"unlisted": unlisted} if unlisted else {"undecoded": True}
    notes["label_delimiter"] = DELIMITERS.get(mark, mark) if mark else "none"
    notes["file_column"] = columns.file
    folder = find_root(path, facts.names, root, check_files)
    return assemble(
        problems, facts.names, values, names, root=folder, splits=facts.splits, lines=facts.lines, notes=notes
    )


def _declared(path: Path, categories: str | None) -> list[str] | None:
    beside = categories_file(path)
    return declared_names(categories or (beside.name if beside.is_file() else None), path)


def categories_file(path: Path) -> Path:
    """Return the file that may declare the categories of a list."""
    return path.with_name(f"{path.stem}.categories.txt")


@dataclass
class _Row:
    line: int
    name: str
    cell: str
    split: str
    further: dict[str, str]


@dataclass
class _Columns:
    """Names of the columns to read."""

    path: Path
    file: str | None
    labels: str
    split: str
    is_valid: str
    folders: Sequence[Path]
    delimiter: str | None
    charset: str | None

    def open(self) -> Rows:
        return csv_rows(self.path, self.delimiter or usual_delimiter(self.path), self.charset)

    def read(self, problems: Problems) -> Iterator[_Row]:
        """Yield the good rows; report the others."""
        rows = self.open()
        header = [name.strip() for name in next(rows, (1, []))[1]]
        if not header:
            raise fault(self.path, "the file is empty; expected a header fname,labels[,is_valid]")
        mark = other_delimiter(problems, header)
        if mark is not None:  # only while gathering problems: go on as if the delimiter had been given
            self.delimiter = mark
            rows = self.open()
            header = [name.strip() for name in next(rows)[1]]
        file, labels, split, flag = self._find(problems, header)
        further = {name: header.index(name) for name in FURTHER if name in header}
        for line, row in full_rows(problems, rows, len(header)):
            word = ""
            if split is not None:
                word = split_of(problems, row[split], line, self.split)
            elif flag is not None:
                word = self._flag(problems, row[flag], line)
            lists = {name: row[index].strip() for name, index in further.items()}
            yield _Row(line, row[file], row[labels].strip(), word, lists)

    def _find(self, problems: Problems, header: list[str]) -> tuple[int, int, int | None, int | None]:
        if self.file is None and all(name in header for name in NAME_COLUMNS):
            text = (
                f"has columns fname and file_name; add {data_option('file_column', 'fname')} or "
                f"{data_option('file_column', 'file_name')}"
            )
            raise fault(self.path, text, line=1)
        if self.labels not in header:
            raise self._no_labels(header)
        used = {self.labels, self.split, "is_valid", *FURTHER}
        self.file = self._file_column(problems, header, used)
        split = header.index(self.split) if self.split in header else None
        flag = header.index("is_valid") if "is_valid" in header and self.is_valid != "ignore" else None
        if split is not None and flag is not None:
            text = (
                f"has columns is_valid and {self.split}; add {data_option('is_valid', 'ignore')} to use column "
                f"{self.split}"
            )
            raise fault(self.path, text, line=1, kind="bad-header")
        used.add(self.file)
        others = [name for name in header if name not in used]
        if others:
            problems.add(
                f"columns not read: {', '.join(others)[:200]}", level="note", kind="other-columns", line=1
            )
        for name in sorted(used):
            if header.count(name) > 1:
                problems.add(f"column '{name}' occurs twice", line=1, column=name, kind="bad-header")
        return header.index(self.file), header.index(self.labels), split, flag

    def _file_column(self, problems: Problems, header: list[str], used: set[str]) -> str:
        """Return the column of image names; if only one is left, it must be that one."""
        left = [name for name in header if name not in used]
        if self.file is None and len(left) == 1 and left[0] not in NAME_COLUMNS:
            text = f"the image names are read from column '{left[0]}', the only one that can hold them"
            problems.add(text, kind="read-as", level="note", line=1)
            return left[0]
        lookup = Lookup(self.path, header, self.open, self.folders, used)
        return lookup.find(problems, NAME_COLUMNS, self.file)

    def _no_labels(self, header: list[str]) -> DataError:
        near = did_you_mean(self.labels, header)
        text = (
            f"the header has no column '{self.labels}', only {few(header)}.{near} Add "
            f"{data_option('labels_column', 'NAME')}"
        )
        return fault(self.path, text, line=1, kind="bad-header")

    def _flag(self, problems: Problems, cell: str, line: int) -> str:
        word = cell.strip().lower()
        if word not in TRUTH:
            value = word[:60]
            problems.add(
                kind="bad-split", line=line, column="is_valid", value=value, expected="True or False"
            )
        return self.is_valid if TRUTH.get(word) else "train"


def _facts(problems: Problems, rows: Sequence[_Row], mark: str, declared: list[str] | None) -> Facts:
    facts = Facts(problems, declared)
    times = Counter[str]()
    lines: dict[str, int] = {}
    first_cells: dict[str, str] = {}
    for row in rows:
        labels = split_labels(row.cell, mark)
        if row.name in facts.images:
            _note_repeat(problems, row, facts.lines[facts.images[row.name]], first_cells[row.name], mark)
            continue
        first_cells[row.name] = row.cell
        number = facts.image(row.name, row.split, row.line)
        for label in dict.fromkeys(labels):
            facts.say(number, label, PRESENT, row.line)
            lines.setdefault(label, row.line)
        for column, cell in row.further.items():
            for label in split_labels(cell, mark):
                facts.say(number, label, FURTHER[column], row.line)
        times.update(set(labels))
        if len(set(labels)) < len(labels):
            twice = next(label for label in labels if labels.count(label) > 1)
            text = f"label '{twice}' is listed twice"
            problems.add(text, kind="repeated-label", level="warning", line=row.line, value=twice)
    if declared is None:
        _note_near(problems, times, lines)
    return facts


def _note_repeat(problems: Problems, row: _Row, line: int, cell: str, mark: str) -> None:
    differ = set(split_labels(row.cell, mark)) ^ set(split_labels(cell, mark))
    more = f"; they disagree about '{min(differ)}'" if differ else ""
    problems.add(
        f"image '{row.name}' occurs twice, on lines {line} and {row.line}{more}",
        line=row.line,
        value=row.name,
        kind="conflicting-rows" if differ else "duplicate-row",
    )


def _note_near(problems: Problems, times: Counter[str], lines: dict[str, int]) -> None:
    """Warn of a label that occurs once and is spelled almost like a frequent one."""
    frequent = [label for label, count in times.items() if count >= FREQUENT]
    rare = [label for label, count in times.items() if count == 1]
    for label in rare[: PAIRS // max(1, len(frequent))]:
        near = difflib.get_close_matches(label, frequent, 1, SIMILAR)
        if near:
            frequent_label = f"'{near[0]}', which occurs {times[near[0]]} times"
            problems.add(
                f"label '{label}' occurs once. Did you mean {frequent_label}?",
                kind="near-label",
                level="warning",
                line=lines[label],
                value=label,
            )
