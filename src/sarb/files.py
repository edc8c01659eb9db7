"""Files are written whole or not at all, and found again where their names are misspelt."""

from __future__ import annotations

import csv
import io
import json
import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from sarb.errors import near_name

Row = Sequence[Any] | Mapping[str, Any]


@contextmanager
def atomic_write(path: str | Path, mode: str = "w") -> Iterator[IO[Any]]:
    """Open a temporary neighbour of ``path`` and move it into place only when the block ends well."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        text: dict[str, Any] = {} if "b" in mode else {"encoding": "utf-8", "newline": ""}
        with os.fdopen(handle, mode, **text) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        mask = os.umask(0)
        os.umask(mask)
        Path(name).chmod(0o666 & ~mask)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def write_json(path: str | Path, value: Any) -> None:
    """Write readable JSON atomically."""
    with atomic_write(path) as file:
        json.dump(value, file, indent=2, ensure_ascii=False)
        file.write("\n")


def read_json(path: str | Path) -> Any:
    """Read a JSON file."""
    return json.loads(Path(path).read_text(encoding="utf-8"))


def write_csv(
    path: str | Path, header: Sequence[str], rows: Iterable[Row], *, line_end: str = "\r\n"
) -> None:
    """Write a header and rows as CSV, atomically; see :func:`csv_text` for what a row is."""
    with atomic_write(path) as file:
        _write_rows(file, header, rows, line_end)


def csv_text(header: Sequence[str], rows: Iterable[Row], *, line_end: str = "\n") -> str:
    """Return a header and rows as CSV text.

    A row is a sequence of cells, or a mapping from column name to cell: a missing cell stays empty, and keys
    that are no column are ignored. ``None`` is an empty cell.
    """
    buffer = io.StringIO()
    _write_rows(buffer, header, rows, line_end)
    return buffer.getvalue()


def _write_rows(file: IO[str], header: Sequence[str], rows: Iterable[Row], line_end: str) -> None:
    writer = csv.writer(file, lineterminator=line_end)
    writer.writerow(header)
    for row in rows:
        writer.writerow([row.get(name, "") for name in header] if isinstance(row, Mapping) else row)


def near_path(path: Path) -> Path | None:
    """Return the path that is there and has the nearest spelling, part by part; None if one part has no near
    one.
    """
    place = Path(path.anchor)
    try:
        for part in path.parts[bool(path.anchor) :]:
            near = (
                part
                if (place / part).exists()
                else near_name(part, [entry.name for entry in place.iterdir()])
            )
            if near is None:
                return None
            place = place / near
    except OSError:  # a part that is no folder, or may not be looked into
        return None
    return place


def cache_dir() -> Path:
    """Where generated data and features are kept: ``$SARB_CACHE`` or ``~/.cache/sarb``."""
    chosen = os.environ.get("SARB_CACHE")
    root = Path(chosen) if chosen else Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache") / "sarb"
    return root.expanduser()
