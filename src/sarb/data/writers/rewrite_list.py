"""Write a list of labels again, with new labels, in the form of the source."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sarb.data.dataset import Data
from sarb.data.parse.text import usual_delimiter
from sarb.data.readers.list_delimiter import DELIMITERS, split_labels
from sarb.data.readers.list_table import FURTHER, categories_file
from sarb.data.writers.csv_edit import CsvStyle, edited
from sarb.data.writers.edits import Edits
from sarb.data.writers.formats import check_lines
from sarb.data.writers.image_names import names_from
from sarb.errors import DataError
from sarb.files import atomic_write
from sarb.labels import ABSENT, MEANINGS, PRESENT, UNKNOWN


def rewrite_list(data: Data, path: Path, options: Mapping[str, Any]) -> None:
    """Write all rows of the source to ``path``; cells of images whose labels are the same stay as they are.

    ``unlisted`` gives every category that is not listed the same label. Where that is wrong, the category is listed
    in a further column, ``absent_labels`` or ``unknown_labels``. The categories go to a file beside the table.

    Args:
        data: the labels to write, with the lines they come from.
        path: the table.
        options: with which the source was read, and the table will be.
    """
    splits = list(data.splits.values())
    source = splits[0].source
    assert source is not None
    names = names_from(path, splits, options.get("root"))
    edits = Edits(splits, names, list(data.splits), {})
    delimiter = str(options.get("delimiter") or usual_delimiter(source))
    style = CsvStyle.of(source, delimiter, options.get("charset"))
    if (options.get("delimiter") or usual_delimiter(path)) != delimiter:
        raise DataError(f"{path}: not written, a list stays in the format of its source; use {source.suffix}")
    header = [name.strip() for name in next(style.records(source)).cells]
    job = _Job(
        path,
        edits,
        header,
        str(data.notes["file_column"]),
        str(options.get("labels_column", "labels")),
        MEANINGS[str(data.notes["unlisted"])],
        _mark(path, data, options),
    )
    check_lines("category", data.categories, stripped=True)
    style.write(path, edited(style, source, job.changes, job.added))
    if not options.get("categories"):
        with atomic_write(categories_file(path)) as file:
            file.writelines(f"{name}\n" for name in data.categories)


def _mark(path: Path, data: Data, options: Mapping[str, Any]) -> str:
    """Return what separates labels; a list without a delimiter gets one unless its option forbids that."""
    word = str(data.notes["label_delimiter"])
    mark = {name: mark for mark, name in DELIMITERS.items()}.get(word, word)
    if word != "none":
        return mark
    if options.get("label_delimiter") == "none":
        raise DataError(
            f"{path}: not written, with label_delimiter=none a cell holds one label, and an image may now have more; "
            "write a table with a column per label instead: --out FILE.parquet"
        )
    return ";"


@dataclass
class _Job:
    """What is new in each row."""

    path: Path
    edits: Edits
    header: list[str]
    file_column: str
    labels_column: str
    rest: int
    mark: str

    def __post_init__(self) -> None:
        self.places = {PRESENT: self.header.index(self.labels_column)}
        self.added: list[str] = []
        for column, label in FURTHER.items():
            if column in self.header:
                self.places[label] = self.header.index(column)
            elif label != self.rest and bool((self.edits.values == label).any()):
                self.places[label] = len(self.header) + len(self.added)
                self.added.append(column)

    def changes(self, line: int, cells: list[str]) -> dict[int, str]:
        """Return column -> new text."""
        new: dict[int, str] = {}
        place = self.header.index(self.file_column)
        name = self.edits.name(line, cells[place])
        if name is not None:
            new[place] = name
        row = self.edits.rows.get(line)
        listed = {label: self._listed(row, label) for label in (PRESENT, ABSENT, UNKNOWN)}
        for label, column in self.places.items():
            old = cells[column] if column < len(cells) else ""
            wanted = listed[label] if label != self.rest or label == PRESENT else []
            before = split_labels(old, self.mark)
            if row is not None and (set(before) != set(wanted) or column >= len(cells)):
                new[column] = self._joined(before, wanted, old)
            elif column >= len(cells):
                new[column] = ""
        return new

    def _listed(self, row: int | None, label: int) -> list[str]:
        if row is None:
            return []
        pairs = zip(self.edits.categories, self.edits.values[row].tolist(), strict=True)
        return [name for name, value in pairs if value == label]

    def _joined(self, before: Sequence[str], wanted: Sequence[str], old: str) -> str:
        """Return the labels of a cell: those of before in their order, then the new ones."""
        kept = [name for name in before if name in wanted]
        between = f"{self.mark} " if f"{self.mark} " in old and self.mark != " " else self.mark
        return between.join([*kept, *(name for name in wanted if name not in kept)])
