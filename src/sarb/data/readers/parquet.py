"""Rows of a Parquet file, as text."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy as np

from sarb.data.check.problems import fault
from sarb.data.parse.rows import Rows
from sarb.errors import DataError, data_option
from sarb.files import open_regular


def cell_text(value: Any) -> str:
    """Spell a typed cell as in a CSV: null and NaN are blank, booleans are words."""
    # only NaN is not equal to itself
    return "" if value is None or value != value else str(value)


def nested_column(path: Path, column: str, content: str, line: int | None = None) -> DataError:
    """Return the error for a column whose cells are not single codes."""
    text = f"contains {content}; expected one code per cell. Exclude the column with {data_option('ignore', column)}"
    return fault(path, text, line=line, column=column, kind="bad-value")


def need_pyarrow(path: Path) -> tuple[Any, Any]:
    """Import pyarrow and pyarrow.parquet; if missing, raise an error that says how to install them."""
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        text = "Parquet files need pyarrow: pip install 'sarb[table]'"
        raise fault(path, text, kind="missing-extra") from None
    return pyarrow, parquet


def parquet_rows(path: Path, ignore: Collection[str]) -> Rows:
    """Yield the column names, then the rows, numbered from 1."""
    pyarrow, parquet = need_pyarrow(path)
    try:
        open_regular(path).close()  # Arrow would wait for the writer of a pipe
        with parquet.ParquetFile(path, page_checksum_verification=True) as file:
            fields = list(file.schema_arrow)
            for field in fields:
                if pyarrow.types.is_nested(field.type) and field.name not in ignore:
                    raise nested_column(path, field.name, str(field.type)[:60])
            yield 1, [field.name for field in fields]
            number = 0
            for batch in file.iter_batches(batch_size=10_000):
                columns = [
                    [""] * len(batch) if field.name in ignore else column_texts(column)
                    for field, column in zip(fields, batch.columns, strict=True)
                ]
                for row in zip(*columns, strict=True):
                    number += 1
                    yield number, list(row)
    except (pyarrow.ArrowException, OSError, ValueError) as error:
        reason = " ".join(str(error).split())[:200]
        raise fault(path, f"not a readable Parquet file ({reason})", kind="bad-parquet") from None


def column_texts(column: Any) -> list[str]:
    """Spell the cells of an Arrow column (N,); convert only distinct values, since codes repeat."""
    import pyarrow

    if pyarrow.types.is_float16(column.type):  # Arrow cannot find the distinct values of this type
        column = column.cast(pyarrow.float32())
    coded = column if pyarrow.types.is_dictionary(column.type) else column.dictionary_encode()
    distinct = coded.dictionary
    if pyarrow.types.is_binary(distinct.type) or pyarrow.types.is_large_binary(distinct.type):
        distinct = distinct.cast(pyarrow.string())  # old writers do not mark text as text
    texts = np.array([*map(cell_text, distinct.to_pylist()), ""], object)
    numbers = coded.indices.cast(pyarrow.int64()).fill_null(len(texts) - 1)  # the last text is blank
    cells: list[str] = texts[numbers.to_numpy()].tolist()
    return cells
