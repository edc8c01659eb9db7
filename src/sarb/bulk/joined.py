"""One file as ``--out`` of many workers: its parts are made in ``FILE.parts``, then joined, a part at a time.

The file has the rows of the parts in their order. A CSV is written as ``sarb predict`` and ``sarb complete`` write it
alone; unreadable images are listed in ``FILE.errors.csv``.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sarb.bulk.items import is_remote
from sarb.bulk.job import PREDICT
from sarb.bulk.parts import errors_of, file_of
from sarb.errors import DataError, named
from sarb.files import atomic_write, check_writable, write_csv
from sarb.workflows.outputs import are_predictions, check_output

CSV = ".csv"
PARQUET = ".parquet"


def one_file(out: str | Path) -> Path | None:
    """The file that is asked for; None for a folder or an address."""
    text = str(out)
    if is_remote(text) or not text.lower().endswith((CSV, PARQUET)) or Path(out).is_dir():
        return None
    return Path(out)


def parts_for(file: Path) -> Path:
    """The folder of its parts, until all of them are there."""
    return file.with_name(f"{file.name}.parts")


def check_new(file: Path, kind: str, overwrite: bool) -> None:
    """Raise before any work is done if the file cannot be written, or is there and not to be replaced."""
    check_writable(file)
    if kind == PREDICT and file.suffix.lower() == CSV:
        check_output(file, are_predictions, "predictions of 'sarb predict'")
    elif file.exists() and not overwrite:
        what = (
            "remove it, or write to another file"
            if kind == PREDICT
            else f"add {named('overwrite')} to replace it"
        )
        raise DataError(f"{file}: exists already; {what}")


def join(file: Path, parts: int) -> None:
    """Write the file from its parts, list the unreadable images, and remove the folder."""
    folder = parts_for(file)
    if file.suffix.lower() == CSV:
        tables = _tables(folder, parts)
        first = next(tables)
        write_csv(file, first.column_names, _rows(first, tables), line_end="\n")
    else:
        _parquet(file, _tables(folder, parts))
    lost = [
        row for number in range(parts) for row in _read(folder / errors_of(number), missing=[]).to_pylist()
    ]
    if lost:
        write_csv(file.with_name(f"{file.name}.errors.csv"), list(lost[0]), lost)
    shutil.rmtree(folder)


def _tables(folder: Path, parts: int) -> Iterator[Any]:
    return (_read(folder / file_of(number)) for number in range(parts))


def _read(file: Path, missing: list[Any] | None = None) -> Any:
    import pyarrow
    from pyarrow import parquet

    if missing is not None and not file.exists():
        return pyarrow.Table.from_pylist(missing)
    return parquet.ParquetFile(file, page_checksum_verification=True).read().replace_schema_metadata(None)


def _rows(first: Any, others: Iterator[Any]) -> Iterator[tuple[str, ...]]:
    import pyarrow

    for table in (one for some in ((first,), others) for one in some):
        columns = [
            [_cell(value) for value in column.to_pylist()]
            if pyarrow.types.is_floating(column.type)
            else column.to_pylist()
            for column in table.columns
        ]
        yield from zip(*columns, strict=True)


def _cell(value: float | None) -> str:
    return "" if value is None else f"{value:.6g}"


def _parquet(file: Path, tables: Iterator[Any]) -> None:
    from pyarrow import parquet

    first = next(tables)
    with (
        atomic_write(file, "wb") as opened,
        parquet.ParquetWriter(opened, first.schema, write_page_checksum=True) as writer,
    ):
        writer.write_table(first)
        for table in tables:
            writer.write_table(table)
