"""Atomic writes, JSON, suggestions for misspelt paths, and the cache folder."""

from __future__ import annotations

import csv
import errno
import io
import json
import os
import re
import secrets
import shutil
import stat
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from typing import IO, Any, TextIO, cast

from sarb.errors import SarbError, near_name, printable

Row = Sequence[Any] | Mapping[str, Any]

#: what prints instead of writing a file
STDOUT = ("-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1")
#: names of this process's open files, which may lead to a file that somebody else is writing
STREAMS = re.compile(r"/dev/(std(in|out|err)|fd/.*)|/proc/.*")
#: links on the way to a file; more are a circle, as for the kernel
MOST_LINKS = 40
KINDS: dict[str, Callable[[int], bool]] = {
    "a folder": stat.S_ISDIR,
    "a device": lambda mode: stat.S_ISCHR(mode) or stat.S_ISBLK(mode),
    "a named pipe": stat.S_ISFIFO,
    "a socket": stat.S_ISSOCK,
}
#: name of an unfinished file or folder, and the age in seconds from which on its process must have been killed
UNFINISHED = ".sarb-{}.partial"
STALE = 3600

#: how a cell begins that a spreadsheet runs as a formula; apostrophes before it, so that reading can undo ours
FORMULA = re.compile(r"'*[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]")
NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?|[+-]?(?:inf|nan)", re.IGNORECASE)

_swept: set[Path] = set()
_excel_safe: ContextVar[bool] = ContextVar("excel_safe", default=False)


@contextmanager
def atomic_write(path: str | Path, mode: str = "w") -> Iterator[IO[Any]]:
    """Open a temporary file beside ``path`` and rename it to ``path`` if the block raises no error.

    A symbolic link stays, and the file it leads to is replaced. An existing file keeps its permissions. ``-``
    and ``/dev/stdout`` print. An ``OSError`` names ``path``.
    """
    if is_stdout(path):
        plain = sys.stdout.buffer if "b" in mode else sys.stdout
        yield cast(IO[Any], _Shown()) if sys.stdout.isatty() else plain
        sys.stdout.flush()
        return
    target = destination(path)
    # named before it is made: a signal that arrives while the file is being made must not leave it behind
    temporary = unfinished(target)
    try:
        text: dict[str, Any] = {} if "b" in mode else {"encoding": "utf-8", "newline": ""}
        with naming(path, temporary):
            with temporary.open(mode.replace("w", "x"), **text) as file:
                if target.exists():
                    temporary.chmod(stat.S_IMODE(target.stat().st_mode))
                yield file
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(target)
            sync_folder(target.parent)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


@contextmanager
def atomic_writes(*paths: str | Path, mode: str = "w") -> Iterator[list[IO[Any]]]:
    """Open files that belong together: none of them appears unless all could be written, the first one last."""
    with ExitStack() as stack:
        files = [stack.enter_context(atomic_write(path, mode)) for path in paths]
        yield files
        for path, file in zip(paths, files, strict=True):
            with naming(path):
                file.flush()  # a full disk shows here, before the first file gets its name


class _Shown:
    """A terminal: bytes or text for a file, written so that no name in it can command the terminal."""

    def write(self, content: str | bytes) -> int:
        text = content if isinstance(content, str) else content.decode("utf-8", "surrogateescape")
        return sys.stdout.write(printable(text.replace("\r\n", "\n")))

    def writelines(self, lines: Iterable[str | bytes]) -> None:
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        sys.stdout.flush()


def is_stdout(path: str | Path) -> bool:
    """Whether writing to ``path`` prints."""
    return str(path) in STDOUT


def destination(path: str | Path) -> Path:
    """Return the file, there already or not, to which ``path`` leads; SarbError if it is not a regular file."""
    target = Path(path)
    for _ in range(MOST_LINKS):
        if STREAMS.fullmatch(str(target.absolute())):
            raise SarbError(f"{path}: is a stream, not a file; expected the name of a file, or - to print")
        if not target.is_symlink():
            break
        target = target.parent / target.readlink()
    else:
        raise SarbError(f"{path}: its symbolic links lead in a circle")
    if target.exists():
        mode = target.stat().st_mode
        for kind, matches in KINDS.items():
            if matches(mode):
                raise SarbError(f"{path}: is {kind}, not a file; expected the name of a file to write")
        if not os.access(target, os.W_OK):
            raise _read_only(path, target)
    return target


def check_writable(path: str | Path) -> None:
    """Raise the error that writing to ``path`` would end with, as far as it can be known before."""
    target = destination(path)
    folder = next(parent for parent in target.absolute().parents if os.path.lexists(parent))
    if not folder.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(folder))
    if not os.access(folder, os.W_OK | os.X_OK):
        raise _read_only(path, folder)


def _read_only(path: str | Path, place: Path) -> OSError:
    """The error for a path, because this place may not be written to."""
    whole_disk = hasattr(os, "statvfs") and os.statvfs(place).f_flag & os.ST_RDONLY
    number = errno.EROFS if whole_disk else errno.EACCES
    return OSError(number, os.strerror(number), str(path))


def unfinished(target: Path) -> Path:
    """Return a new name beside ``target`` for what will replace it; make the folder, remove what a kill left."""
    folder = target.parent
    folder.mkdir(parents=True, exist_ok=True)
    if folder not in _swept:
        _swept.add(folder)
        for left_over in folder.glob(UNFINISHED.format("*")):
            with suppress(OSError):  # another process removes it, too
                if time.time() - left_over.stat().st_mtime > STALE:
                    remove(left_over)
    return folder / UNFINISHED.format(secrets.token_hex(8))


def remove(path: Path) -> None:
    """Remove a file or a whole folder."""
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink()


@contextmanager
def naming(path: str | Path, temporary: Path | None = None) -> Iterator[None]:
    """Give an ``OSError`` without file name, or with that of the temporary file, the name that the user knows."""
    try:
        yield
    except OSError as error:
        if error.errno is not None and error.filename in (None, str(temporary)):
            raise OSError(error.errno, error.strerror, str(path)) from error
        raise


def open_regular(path: str | Path) -> io.BufferedReader:
    """Open a file for reading bytes; a named pipe, device, socket or folder is never opened.

    Raises:
        OSError: it cannot be read, or is not a regular file.
    """
    return open(_open_regular(path), "rb")


def open_text(path: str | Path, encoding: str, newline: str = "") -> TextIO:
    """The same for text; lines end where ``newline`` says, as of ``open``."""
    return open(_open_regular(path), encoding=encoding, newline=newline)


def _open_regular(path: str | Path) -> int:
    name = str(path)
    _refuse_special(Path(path).stat().st_mode, name)
    # something else may take its place at this moment: opening a pipe must not wait for its writer
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0))
    try:
        _refuse_special(os.fstat(handle).st_mode, name)
    except OSError:
        os.close(handle)
        raise
    return handle


def _refuse_special(mode: int, name: str) -> None:
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), name)
    for kind, matches in KINDS.items():
        if matches(mode):
            raise OSError(errno.EINVAL, f"is {kind}, not a file", name)


def sync_folder(folder: Path) -> None:
    """Make new names in a folder durable, on systems that can sync a folder."""
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def json_text(value: Any) -> str:
    """Return indented JSON as a whole text file."""
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


def write_json(path: str | Path, value: Any) -> None:
    """Write indented JSON atomically."""
    with atomic_write(path) as file:
        file.write(json_text(value))


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
    writer.writerow(map(cell, header))
    for row in rows:
        cells = [row.get(name, "") for name in header] if isinstance(row, Mapping) else row
        writer.writerow([cell(text) if isinstance(text, str) else text for text in cells])


@contextmanager
def excel_safe() -> Iterator[None]:
    """While this lasts, names that a spreadsheet would run as a formula are written to CSV with an apostrophe."""
    token = _excel_safe.set(True)
    try:
        yield
    finally:
        _excel_safe.reset(token)


def is_excel_safe() -> bool:
    """Whether :func:`excel_safe` holds."""
    return _excel_safe.get()


def cell(text: str) -> str:
    """Return a name as it is written to a CSV: as it is, or inside :func:`excel_safe` guarded."""
    return guarded(text) if _excel_safe.get() else text


def guarded(text: str) -> str:
    """Put an apostrophe before a text that a spreadsheet would run as a formula; a number stays.

    >>> guarded("=1+1"), guarded("-1"), guarded("dog"), unguarded(guarded("'=1+1"))
    ("'=1+1", '-1', 'dog', "'=1+1")
    """
    return f"'{text}" if FORMULA.match(text) and not NUMBER.fullmatch(text) else text


def unguarded(text: str) -> str:
    """Take back what :func:`guarded` has done."""
    return text[1:] if text.startswith("'") and FORMULA.match(text) else text


def check_names(names: Iterable[str]) -> None:
    """Raise for a file name that is not UTF-8: no table can hold it."""
    for name in names:
        try:
            name.encode()
        except UnicodeEncodeError:
            shown = printable(name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace"))
            raise SarbError(
                f"{shown}: this name is not UTF-8, so no table can hold it; rename the file"
            ) from None


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
