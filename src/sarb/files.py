"""Atomic writes, JSON, suggestions for misspelt paths, and the cache folder."""

from __future__ import annotations

import csv
import io
import json
import os
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from sarb.errors import near_name

Row = Sequence[Any] | Mapping[str, Any]


@contextmanager
def atomic_write(path: str | Path, mode: str = "w") -> Iterator[IO[Any]]:
    """Open a temporary file beside ``path`` and rename it to ``path`` if the block raises no error."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    # named before it is made: a signal that arrives while the file is being made must not leave it behind
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        text: dict[str, Any] = {} if "b" in mode else {"encoding": "utf-8", "newline": ""}
        with temporary.open(mode.replace("w", "x"), **text) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def write_json(path: str | Path, value: Any) -> None:
    """Write indented JSON atomically."""
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


def write_rows(path: str | Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write dictionaries as CSV; the header is the union of their keys in order of appearance."""
    write_csv(path, list(dict.fromkeys(key for row in rows for key in row)), rows)


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
    """Return the existing path most similar to ``path``, part by part; None if a part has no similar name."""
    nearest = Path(path.anchor)
    try:
        for part in path.parts[bool(path.anchor) :]:
            name: str | None = part
            if not (nearest / part).exists():
                name = near_name(part, [entry.name for entry in nearest.iterdir()])
            if name is None:
                return None
            nearest = nearest / name
    except OSError:  # a part is not a folder, or not readable
        return None
    return nearest


def cache_dir() -> Path:
    """Return the folder for generated data and cached features: ``$SARB_CACHE`` or ``~/.cache/sarb``."""
    chosen = os.environ.get("SARB_CACHE")
    root = Path(chosen) if chosen else Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache") / "sarb"
    return root.expanduser()
