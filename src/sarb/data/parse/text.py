"""Read text files with any line ending, with or without a byte order mark; report text that is not UTF-8."""

from __future__ import annotations

import codecs
import csv
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import IO

from sarb.data.check.problems import Problems, fault
from sarb.errors import ConfigError, DataError, data_option
from sarb.files import open_regular, open_text

CHUNK = 1 << 22
#: rows between two progress reports
STRIDE = 10_000
_WATCHED: ContextVar[Callable[[int], None] | None] = ContextVar("watched", default=None)
_WIDE = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


@contextmanager
def watch(advance: Callable[[int], None]) -> Iterator[None]:
    """Inside this block, reading a long table calls ``advance(rows)`` from time to time."""
    token = _WATCHED.set(advance)
    try:
        yield
    finally:
        _WATCHED.reset(token)


def survey(path: Path, charset: str | None = None) -> str:
    """Scan a file once as bytes and return the name of the codec to open it with.

    Reports a byte order mark and mixed line endings. For text that is not UTF-8 the error names the line and
    the option to add; while problems are gathered, reading goes on as Latin-1, which accepts any byte.
    """
    if charset is not None:
        return _known_codec(charset)
    problems = Problems(path)
    try:
        with open_regular(path) as file:
            start = file.read(4)
            file.seek(0)
            newlines, pairs, wrong_byte = _scan(file)
    except OSError as error:
        raise unreadable(path, error) from None
    if wrong_byte is not None:
        codec = "utf-16" if start.startswith(_WIDE) else "latin-1"
        problems.add(
            f"not UTF-8 text (byte 0x{wrong_byte:02x}); save the file as UTF-8 or add "
            f"{data_option('charset', codec)}",
            kind="not-utf8",
            line=newlines + 1,
        )
        problems.raise_any()
        return codec
    if start.startswith(codecs.BOM_UTF8):
        note_byte_order_mark(problems)
    if 0 < pairs < newlines:
        text = f"{pairs} of {newlines} lines end with CR LF (Windows), the others with LF; both work"
        problems.add(text, kind="crlf", level="note")
    problems.raise_any()
    return "utf-8-sig"


def _scan(file: IO[bytes]) -> tuple[int, int, int | None]:
    """Return the number of newlines and of CR LF pairs, and the first byte that is not UTF-8.

    The scan stops at that byte, so the number of newlines gives its line.
    """
    decoder = codecs.getincrementaldecoder("utf-8")()
    newlines = 0
    pairs = 0
    after_cr = False
    while block := file.read(CHUNK):
        # the end of a block may split a pair
        pairs += block.count(b"\r\n") + (after_cr and block.startswith(b"\n"))
        after_cr = block.endswith(b"\r")
        try:
            decoder.decode(block)
        except UnicodeDecodeError as error:
            newlines += error.object.count(b"\n", 0, error.start)
            return newlines, pairs, error.object[error.start]
        newlines += block.count(b"\n")
    return newlines, pairs, None


def unreadable(path: Path, error: OSError) -> DataError:
    """Return the error for a file that cannot be opened or read."""
    return fault(path, f"cannot be read ({error.strerror})")


def wrong_charset(path: Path, codec: str, error: UnicodeError, line: int | None = None) -> DataError:
    """Return the error for text that does not match the declared character set."""
    return fault(path, f"not {codec} text ({error})", line=line, kind="bad-charset")


def note_byte_order_mark(problems: Problems) -> None:
    """Report that the file starts with a byte order mark."""
    problems.add("starts with a byte order mark, which is skipped", kind="bom", level="note", line=1)


def _known_codec(charset: str) -> str:
    try:
        return codecs.lookup(charset).name
    except LookupError:
        raise ConfigError(
            [f"option charset: unknown character set '{charset}'; common ones are utf-8, latin-1 and utf-16"]
        ) from None


def read_text(path: Path, charset: str | None = None) -> str:
    """Return the text of a file, with its line endings unchanged."""
    codec = survey(path, charset)
    try:
        with open_text(path, codec) as file:
            return file.read()
    except UnicodeError as error:
        raise wrong_charset(path, codec, error) from None
    except OSError as error:
        raise unreadable(path, error) from None


def text_lines(path: Path, charset: str | None = None) -> Iterator[tuple[int, str]]:
    """Yield (line number, line) for every line that is not blank, without its line ending."""
    for number, line in enumerate(read_text(path, charset).split("\n"), 1):
        if line.strip():
            yield number, line.removesuffix("\r")


def usual_delimiter(path: Path) -> str:
    """Return the delimiter that the suffix of a table implies."""
    return "tab" if path.suffix.lower() == ".tsv" else ","


def csv_rows(path: Path, delimiter: str = ",", charset: str | None = None) -> Iterator[tuple[int, list[str]]]:
    """Yield (number of the first line, fields) for every row of a CSV file that is not blank."""
    if delimiter == "tab":
        delimiter = "\t"
    if len(delimiter) != 1 or delimiter in '"\r\n':
        raise ConfigError([f"option delimiter must be one character or 'tab', got {delimiter!r}"])
    codec = survey(path, charset)
    line = 1
    advance = _WATCHED.get()
    try:
        with open_text(path, codec) as file:
            reader = csv.reader(file, delimiter=delimiter, strict=True)
            for row in reader:
                if row:
                    yield line, row
                line = reader.line_num + 1
                if advance is not None and line % STRIDE == 0:
                    advance(STRIDE)
    except UnicodeError as error:
        raise wrong_charset(path, codec, error, line) from None
    except csv.Error as error:
        reason = "a quote that is never closed" if "end of data" in str(error) else str(error)
        raise fault(path, f"not a CSV file ({reason})", line=line, kind="bad-csv") from None
    except OSError as error:
        raise unreadable(path, error) from None
