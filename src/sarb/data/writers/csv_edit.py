"""Copy a CSV file with some cells changed; everything else stays as it is, byte for byte."""

from __future__ import annotations

import codecs
import csv
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from itertools import islice
from pathlib import Path

from sarb.data.parse.text import survey
from sarb.data.writers.formats import quoted
from sarb.errors import DataError
from sarb.files import atomic_write

#: rows from which the use of quotes is learned
SAMPLE = 1000
#: (line, cells) -> column -> new text; columns beyond the last one are added
Edit = Callable[[int, list[str]], Mapping[int, str]]


@dataclass(frozen=True)
class Record:
    """One row: number of its first line, its cells, and its text with quotes and line end."""

    line: int
    cells: list[str]
    text: str


@dataclass(frozen=True)
class CsvStyle:
    """How a CSV file is written.

    Args:
        delimiter: one character.
        codec: to read it with.
        byte_order_mark: whether it starts with one.
        line_end: of its first line.
        quotes: text -> how much more often it is quoted than not.
    """

    delimiter: str = ","
    codec: str = "utf-8"
    byte_order_mark: bool = False
    line_end: str = "\n"
    quotes: Counter[str] = dataclass_field(default_factory=Counter)

    @classmethod
    def of(cls, path: Path, delimiter: str, charset: str | None) -> CsvStyle:
        """Look at the first rows of a file."""
        codec = survey(path, charset)
        with path.open("rb") as file:
            mark = file.read(3) == codecs.BOM_UTF8
        style = cls("\t" if delimiter == "tab" else delimiter, codec, mark)
        sample = list(islice(style.records(path), SAMPLE))
        for record in (record for record in sample[1:] if record.cells):
            for cell, text in zip(record.cells, style.fields(record.text), strict=True):
                style.quotes[cell] += 1 if text.startswith('"') else -1
        line_end = _line_end(sample[0].text) if sample else ""
        return cls(style.delimiter, codec, mark, line_end or "\n", style.quotes)

    def records(self, path: Path) -> Iterator[Record]:
        """Yield all rows, blank lines as rows without cells."""
        consumed: list[str] = []

        def lines(file: Iterable[str]) -> Iterator[str]:
            for line in file:
                consumed.append(line)
                yield line

        with path.open(encoding=self.codec, newline="") as file:
            reader = csv.reader(lines(file), delimiter=self.delimiter, strict=True)
            number = 1
            for cells in reader:
                yield Record(number, cells, "".join(consumed))
                consumed.clear()
                number = reader.line_num + 1

    def fields(self, text: str) -> list[str]:
        """Split the text of a row into its fields, with their quotes.

        >>> CsvStyle().fields('a,"b,c",')
        ['a', '"b,c"', '']
        """
        text = text.rstrip("\r\n")
        if '"' not in text:
            return text.split(self.delimiter)
        field = re.compile(rf'"(?:[^"]|"")*"|[^{re.escape(self.delimiter)}]*')
        fields = []
        position = 0
        while match := field.match(text, position):
            fields.append(match[0])
            if match.end() == len(text):
                break
            position = match.end() + 1  # after the delimiter
        return fields

    def put(self, text: str, replaced: str = "") -> str:
        """Return a new field, quoted if it must be or as the file does it."""
        usual = self.quotes[text] if text in self.quotes else self._others()
        if usual > 0 or (usual == 0 and replaced.startswith('"')):
            return '"' + text.replace('"', '""') + '"'
        return quoted(text, self.delimiter)

    def _others(self) -> int:
        return sum(times for text, times in self.quotes.items() if text)

    def row(self, cells: Sequence[str]) -> str:
        """Return the text of a new row."""
        return self.delimiter.join(map(self.put, cells)) + self.line_end

    def write(self, path: Path, rows: Iterable[str]) -> None:
        """Write the texts of all rows, completely or not at all."""
        codec = self.codec
        if codec == "utf-8-sig" and not self.byte_order_mark:
            codec = "utf-8"
        encoder = codecs.getincrementalencoder(codec)()
        try:
            with atomic_write(path, "wb") as file:
                for row in rows:
                    file.write(encoder.encode(row))
        except UnicodeEncodeError as error:
            unfit = error.object[error.start : error.end]
            raise DataError(f"{path}: not written, {unfit!r} cannot be written as {codec}") from None


def edited(style: CsvStyle, source: Path, edit: Edit, added: Sequence[str] = ()) -> Iterator[str]:
    """Yield the text of every row, changed where ``edit`` says so.

    Args:
        style: of the file.
        source: the file.
        edit: new cells of a row; an added column needs a cell in each row.
        added: names of columns to add after the last one.
    """
    first = True
    for record in style.records(source):
        if not record.cells:
            yield record.text
        elif first:
            first = False
            yield _with(style, record, {len(record.cells) + place: name for place, name in enumerate(added)})
        else:
            yield _with(style, record, edit(record.line, record.cells))


def _with(style: CsvStyle, record: Record, changes: Mapping[int, str]) -> str:
    if not changes:
        return record.text
    fields = style.fields(record.text)
    for column, text in sorted(changes.items()):
        if column < len(fields):
            fields[column] = style.put(text, fields[column])
        else:
            fields.append(style.put(text))
    return style.delimiter.join(fields) + _line_end(record.text)


def _line_end(text: str) -> str:
    return text[len(text.rstrip("\r\n")) :]
