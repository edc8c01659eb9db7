"""Lists of images: CSV, TSV or Parquet tables with a column of image names, read a few rows at a time."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath
from typing import IO, Any

from sarb.bulk.items import Item, is_remote
from sarb.data.readers.file_column import USUAL_FILE_COLUMNS
from sarb.data.readers.parquet import need_pyarrow
from sarb.errors import DataError
from sarb.files import unguarded

#: names of the column with image names; the first one that is there counts
COLUMNS = ("file_name", *USUAL_FILE_COLUMNS, "url", "uri")
SUFFIXES = (".csv", ".tsv", ".parquet")
ROWS = 4096


def listed(file: IO[bytes], place: str) -> Iterator[Item]:
    """Yield the images that an open list names, relative to its folder."""
    folder = place.rpartition("/")[0]
    names = _parquet(file, place) if place.lower().endswith(".parquet") else _text(file, place)
    for line, name in names:
        if not name:
            raise DataError(f"{place}: row {line:,} has no image name")
        whole = is_remote(name) or name.startswith("/") or not folder
        yield Item(
            name,
            name
            if whole
            else str(PurePosixPath(folder) / name)
            if not is_remote(folder)
            else f"{folder}/{name}",
        )


def _text(file: IO[bytes], place: str) -> Iterator[tuple[int, str]]:
    tab = place.lower().endswith(".tsv")
    with io.TextIOWrapper(file, encoding="utf-8-sig", newline="") as text:
        try:
            rows = csv.reader(text, delimiter="\t" if tab else ",", strict=True)
            header = next(rows, [])
            column = header.index(_column(header, place))
            for line, row in enumerate((row for row in rows if row), start=1):
                if len(row) != len(header):
                    raise DataError(
                        f"{place}: row {line:,} has {len(row)} cells, the header has {len(header)}"
                    )
                yield line, unguarded(row[column])
        except (csv.Error, UnicodeDecodeError) as error:
            raise DataError(f"{place}: not a table in UTF-8 ({error})") from None


def _parquet(file: IO[bytes], place: str) -> Iterator[tuple[int, str]]:
    pyarrow, parquet = need_pyarrow(place)  # type: ignore[arg-type]
    try:
        table = parquet.ParquetFile(file, page_checksum_verification=True)
        column = _column(table.schema_arrow.names, place)
        line = 0
        for batch in table.iter_batches(batch_size=ROWS, columns=[column]):
            for name in batch.column(0).to_pylist():
                line += 1
                yield line, "" if name is None else str(name)
    except pyarrow.ArrowException as error:
        raise DataError(
            f"{place}: not a readable Parquet file ({' '.join(str(error).split())[:200]})"
        ) from None


def _column(header: Sequence[Any], place: str) -> str:
    found = next((name for name in COLUMNS if name in header), None)
    if found is None:
        raise DataError(
            f"{place}: no column of image names; expected one of {', '.join(COLUMNS)}, "
            f"found {', '.join(map(str, header[:10])) or 'no header'}"
        )
    return found
