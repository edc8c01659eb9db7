"""A part of the result: written whole or not at all, and recognised as whole when the work goes on.

The file says in its own metadata what it was made from. Its list of unreadable images is written before it, so a part
that is there is complete. Every page has a checksum; all of it is read again before a part counts as done.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from sarb.bulk.job import Job
from sarb.bulk.storage import Storage
from sarb.bulk.tables import unread

#: key of our metadata in the Parquet file
KEY = b"sarb"
#: reasons that are shown; all of them are in the list of unreadable images
SHOWN = 3


@dataclass(frozen=True)
class Part:
    """What is known about a part.

    Attributes:
        number: counted from 0.
        images: in its chunk.
        rows: of its table.
        unreadable: images without a row.
        reasons: the first few of them.
        sha256: of the file.
        size: bytes of the file.
        filled: counts of completed labels, see :func:`sarb.bulk.totals.counted`.
        fresh: False for one that was there already.
        seconds: it took to compute; 0 for one that was there.
        cpu_seconds: the same, of the worker's processor time.
        error: why there is no part.
    """

    number: int
    images: int = 0
    rows: int = 0
    unreadable: int = 0
    reasons: tuple[str, ...] = ()
    sha256: str = ""
    size: int = 0
    filled: dict[str, Any] = field(default_factory=dict)
    fresh: bool = True
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    error: str = ""

    def to_json(self) -> str:
        """Return it as one line."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Part:
        """Read what :meth:`to_json` wrote."""
        found = json.loads(text)
        return cls(**{**found, "reasons": tuple(found["reasons"])})


def failed(number: int, error: Exception) -> Part:
    """No part, and why in one line; of an error of the system the file and what it says."""
    if isinstance(error, OSError) and error.filename and error.strerror:
        return Part(number, error=f"{error.filename}: {error.strerror}")
    return Part(number, error=str(error) or type(error).__name__)


def file_of(number: int) -> str:
    """Name of a part."""
    return f"part-{number:06d}.parquet"


def errors_of(number: int) -> str:
    """Name of its list of unreadable images."""
    return f"_errors-{number:06d}.parquet"


def write_part(
    storage: Storage,
    job: Job,
    number: int,
    table: Any,
    images: int,
    skipped: Sequence[tuple[str, str]],
    filled: dict[str, Any],
) -> Part:
    """Write a part; the same chunk gives the same bytes, whoever computes it."""
    errors = b""
    if skipped:
        errors = _parquet(unread(list(skipped)))
        storage.write(errors_of(number), errors)
    about = {
        "identity": job.identity,
        "number": number,
        "images": images,
        "unreadable": len(skipped),
        "reasons": [reason for _, reason in skipped[:SHOWN]],
        "errors_sha256": _sha256(errors) if errors else "",
        "filled": filled,
    }
    content = _parquet(table.replace_schema_metadata({KEY: json.dumps(about)}))
    storage.write(file_of(number), content)
    if not skipped:  # an image that could not be reached before can be read now
        storage.remove(errors_of(number))
    return _part(about, table.num_rows, content)


def find_part(storage: Storage, job: Job, number: int) -> Part | None:
    """Return what is known about a part that is there, whole and made from the same; None if it must be computed."""
    import pyarrow
    from pyarrow import parquet

    content = storage.read(file_of(number))
    if content is None:
        return None
    try:
        table = parquet.ParquetFile(io.BytesIO(content), page_checksum_verification=True).read()
        about = json.loads((table.schema.metadata or {})[KEY])
        if about["identity"] != job.identity or about["number"] != number:
            return None
        if (
            about["errors_sha256"]
            and _sha256(storage.read(errors_of(number)) or b"") != about["errors_sha256"]
        ):
            return None
        return _part(about, table.num_rows, content, fresh=False)
    except (pyarrow.ArrowException, OSError, ValueError, KeyError, TypeError):
        return None  # damaged, so it is computed again


def _part(about: dict[str, Any], rows: int, content: bytes, fresh: bool = True) -> Part:
    return Part(
        about["number"],
        about["images"],
        rows,
        about["unreadable"],
        tuple(about["reasons"]),
        _sha256(content),
        len(content),
        about["filled"],
        fresh,
    )


def _parquet(table: Any) -> bytes:
    from pyarrow import parquet

    buffer = io.BytesIO()
    parquet.write_table(table, buffer, write_page_checksum=True)
    return buffer.getvalue()


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
