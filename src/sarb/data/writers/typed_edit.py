"""Copy a JSON lines or Parquet file with some labels and names changed; all else keeps its value and type."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from sarb.data.parse.text import survey
from sarb.data.readers.parquet import cell_text, column_texts, need_pyarrow
from sarb.data.writers.csv_edit import SAMPLE, CsvStyle
from sarb.data.writers.edits import Edits
from sarb.data.writers.formats import typed
from sarb.files import atomic_write


def edit_jsonl(
    source: Path, path: Path, edits: Edits, file_column: str, split_column: str | None, charset: str | None
) -> None:
    """Write the lines of ``source`` to ``path``; lines without a change stay as they are.

    With a ``split_column``, each line gets its split.
    """
    codec = survey(source, charset)
    with source.open("rb") as file:
        style = CsvStyle(codec=codec, byte_order_mark=file.read(3) == b"\xef\xbb\xbf")
    codes = _json_codes(_lines(source, codec), edits)

    def changed(number: int, text: str) -> str:
        row = json.loads(text) if text.strip() else None
        if row is None:
            return text
        cells = [cell_text(row.get(name)) for name in edits.categories]
        news = {edits.categories[place]: codes[label] for place, label in edits.labels(number, cells).items()}
        name = edits.name(number, cell_text(row.get(file_column)))
        news |= {} if name is None else {file_column: name}
        news |= {} if split_column is None else {split_column: edits.splits[number]}
        return _dumped(text, {**row, **news}) if news else text

    style.write(path, (changed(number, text) for number, text in enumerate(_lines(source, codec), 1)))


def _lines(source: Path, codec: str) -> Iterator[str]:
    with source.open(encoding=codec, newline="\n") as file:
        yield from file


def _dumped(text: str, row: Mapping[str, Any]) -> str:
    """Return an object as JSON, with the spaces, escapes and line end of the line ``text``."""
    body = text.rstrip("\r\n")
    compact = '": ' not in body
    separators = (",", ":") if compact else (", ", ": ")
    return json.dumps(row, ensure_ascii=body.isascii(), separators=separators) + text[len(body) :]


def _json_codes(lines: Iterator[str], edits: Edits) -> dict[int, Any]:
    """Return label -> value: the most frequent one in the first lines, otherwise one that goes with it."""
    seen: dict[int, Counter[str]] = {label: Counter() for label in edits.spelled}
    for text in islice((line for line in lines if line.strip()), SAMPLE):
        row = json.loads(text)
        for name in edits.categories:
            value = row.get(name)
            seen[edits.meaning[cell_text(value)]][json.dumps(value)] += 1
    in_quotes = any(value.startswith('"') for values in seen.values() for value in values)
    return {
        label: json.loads(seen[label].most_common(1)[0][0])
        if seen[label]
        else (text if in_quotes else typed(text))
        for label, text in edits.spelled.items()
    }


def edit_parquet(source: Path, path: Path, edits: Edits, file_column: str, split_column: str | None) -> None:
    """Write the table ``source`` to ``path``, with the types, order and metadata of all its columns."""
    pyarrow, parquet = need_pyarrow(path)
    table = parquet.read_table(source)
    lines = range(1, len(table) + 1)
    for place, category in enumerate(edits.categories):
        column = table.column(category).combine_chunks()
        texts = column_texts(column)
        new = {
            line - 1: int(edits.values[row, place])
            for line in lines
            if (row := edits.rows.get(line)) is not None
            and edits.meaning[texts[line - 1]] != edits.values[row, place]
        }
        if new:
            table = _with_codes(
                pyarrow, table, category, {row: edits.spelled[label] for row, label in new.items()}
            )
    names = [
        edits.name(line, cell) or cell
        for line, cell in zip(lines, column_texts(_whole(table, file_column)), strict=True)
    ]
    index = table.column_names.index(file_column)
    if names != column_texts(_whole(table, file_column)):
        table = table.set_column(index, file_column, pyarrow.array(names, pyarrow.string()))
    if split_column is not None:
        words = pyarrow.array([edits.splits.get(line, "train") for line in lines], pyarrow.string())
        table = table.append_column(split_column, words)
    with atomic_write(path, "wb") as file:
        parquet.write_table(table, file, write_page_checksum=True)


def _whole(table: Any, column: str) -> Any:
    return table.column(column).combine_chunks()


def _with_codes(pyarrow: Any, table: Any, column: str, new: Mapping[int, str]) -> Any:
    """Return the table with new codes in some rows of a column, in its own type if that can hold them."""
    index = table.column_names.index(column)
    kind = table.schema.field(index).type
    plain = kind.value_type if pyarrow.types.is_dictionary(kind) else kind
    values = table.column(index).to_pylist()
    for row, text in new.items():
        values[row] = _as_type(pyarrow, text, plain)
    array = pyarrow.array(values, plain)
    array = array.dictionary_encode() if pyarrow.types.is_dictionary(kind) else array
    return table.set_column(index, pyarrow.field(column, array.type), array)


def _as_type(pyarrow: Any, text: str, kind: Any) -> Any:
    """Return a code as a value of a column: '1.0' is 1 among integers, '' is null among numbers."""
    value = typed(text)
    if value is None or pyarrow.types.is_string(kind) or pyarrow.types.is_large_string(kind):
        return text if value is not None else None
    if pyarrow.types.is_integer(kind):
        return int(float(text))
    if pyarrow.types.is_floating(kind):
        return float(text)
    return value
