"""The images of a folder of parts as a Parquet file: row group k has the images of part k.

So nobody needs more than one chunk of names in memory, and a worker on another computer knows its chunk by number.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any

from sarb.bulk.items import Item, why
from sarb.bulk.storage import Storage
from sarb.errors import SarbError
from sarb.files import check_names

FILE = "_listing.parquet"


def _schema() -> Any:
    import pyarrow

    text = pyarrow.string()
    number = pyarrow.int64()
    kinds = {"name": text, "place": text, "offset": number, "size": number, "given": pyarrow.binary()}
    return pyarrow.schema(list(kinds.items()))


class Fingerprint:
    """Hash and number of items that pass by."""

    def __init__(self) -> None:
        self._digest = hashlib.sha256()
        self.images = 0

    def watch(self, items: Iterable[Item]) -> Iterator[Item]:
        """Yield the items unchanged."""
        for item in items:
            self._digest.update(json.dumps(item[:4]).encode() + b"\0" + item.given + b"\n")
            self.images += 1
            yield item

    def text(self) -> str:
        """Return the hash of what passed."""
        return self._digest.hexdigest()


def chunks(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    """Yield lists of ``size`` items; the last one may be shorter."""
    source = iter(items)
    while chunk := list(islice(source, size)):
        yield chunk


def write_listing(storage: Storage, items: Iterable[Item], size: int) -> None:
    """Write the items, ``size`` to a row group."""
    import pyarrow
    from pyarrow import parquet

    schema = _schema()
    with (
        storage.writing(FILE) as file,
        parquet.ParquetWriter(file, schema, write_page_checksum=True) as writer,
    ):
        for chunk in chunks(items, size):
            check_names(item.name for item in chunk)
            columns = [
                pyarrow.array(column, field.type)
                for column, field in zip(zip(*chunk, strict=True), schema, strict=True)
            ]
            writer.write_table(pyarrow.Table.from_arrays(columns, schema=schema), row_group_size=size)


class Listing:
    """The listing of a folder, open for reading."""

    def __init__(self, storage: Storage) -> None:
        from pyarrow import parquet

        self._place = storage.place(FILE)
        with self._whole():
            self._file = parquet.ParquetFile(storage.opened(FILE), page_checksum_verification=True)

    @property
    def chunks(self) -> int:
        """How many parts are listed."""
        return int(self._file.num_row_groups)

    def chunk(self, number: int) -> list[Item]:
        """Return the images of a part."""
        with self._whole():
            columns = self._file.read_row_group(number).to_pydict()
        return [Item(*row) for row in zip(*columns.values(), strict=True)]

    @contextmanager
    def _whole(self) -> Iterator[None]:
        import pyarrow

        try:
            yield
        except (pyarrow.ArrowException, OSError, IndexError, UnicodeDecodeError) as error:
            raise SarbError(
                f"{self._place}: damaged ({why(error)}); remove this file and give the same command again"
            ) from error
