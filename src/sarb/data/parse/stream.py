"""Read a large JSON file element by element, without loading the whole file into memory."""

# Written by hand: no streaming JSON library reports the line and column of an element.

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from sarb.data.check.problems import Problems, fault
from sarb.data.parse.element import Element
from sarb.data.parse.text import note_byte_order_mark
from sarb.errors import DataError
from sarb.files import open_regular

CHUNK = 1 << 20
#: an error this close to the end of the buffer may only be a token that was cut in two
MARGIN = 32
_LONG_NUMBER = re.compile(r"\d{640,}")
_HALF_CHARACTER = re.compile(r"\\u[dD][89a-fA-F]")


def elements(path: str | Path, keys: Collection[str] = (), chunk: int = CHUNK) -> Iterator[Element]:
    """Yield the elements of the arrays in a JSON file, each with its line.

    The elements of a top-level array have the key ``""``. In a top-level object, yield the elements of the
    arrays under ``keys``, in file order, and skip everything else. Memory holds about one element and one
    chunk. NaN and Infinity are accepted, as in Python's own JSON. If a key occurs twice in an object *inside*
    an element, the last one counts, as in any JSON reader; at the top level it is an error.

    Raises:
        DataError: not JSON (with line and column), not UTF-8 (with the line), or unreadable.
    """
    with _opened(path, chunk) as stream:
        if stream.peek() == "[":
            yield from stream.array("")
        else:
            yield from stream.arrays(keys)
        stream.end()


def members(path: str | Path, chunk: int = CHUNK) -> Iterator[Element]:
    """Yield the members of a JSON file that is one object, with key and line; see :func:`elements`."""
    with _opened(path, chunk) as stream:
        if stream.peek() == "[":
            raise stream.fault("expected a JSON object, not an array")
        for number, key in enumerate(stream.keys()):
            line = stream.here()
            yield Element(key, stream.value(), number, line)
        stream.end()


@contextmanager
def _opened(path: str | Path, chunk: int) -> Iterator[_Stream]:
    path = Path(path)
    try:
        with open_regular(path) as file:
            if file.peek(3).startswith(codecs.BOM_UTF8):
                problems = Problems(path)
                note_byte_order_mark(problems)
                problems.raise_any()
            yield _Stream(file, path, chunk)
    except OSError as error:
        raise fault(path, f"cannot be read ({error.strerror})", kind="unreadable") from None


class _Stream:
    """A window onto the text of a file: ``text[offset:]`` has been read but not yet used."""

    def __init__(self, file: IO[bytes], path: Path, chunk: int) -> None:
        self.file = file
        self.path = path
        self.chunk = chunk
        self.text = ""
        self.offset = 0
        self.ended = False
        # position of text[counted] in the file
        self.line = 1
        self.column = 1
        self.counted = 0
        self.escapes = False  # whether the window contains a backslash
        self.decoder = json.JSONDecoder()
        # decode here and not in the file object, to know the line of a bad byte without a second pass
        self.charset = codecs.getincrementaldecoder("utf-8-sig")()

    def arrays(self, wanted: Collection[str]) -> Iterator[Element]:
        """Yield the elements of the wanted arrays of an object and skip the rest."""
        for key in self.keys():
            if self.peek() != "[":
                self.value()
            elif key in wanted:
                yield from self.array(key)
            else:
                for _ in self.items("[", "]"):
                    self.value()

    def keys(self) -> Iterator[str]:
        """Yield the keys of an object; the caller must read the value before the next key."""
        if self.peek() != "{":
            raise self.fault("expected a JSON array or object")
        seen = set()
        for _ in self.items("{", "}"):
            key = self.value()
            if not isinstance(key, str):
                raise self.fault("expected a key in double quotes")
            if key in seen:
                raise self.fault(f"key {key[:60]!r} occurs twice")
            seen.add(key)
            self.expect(":")
            yield key

    def array(self, key: str) -> Iterator[Element]:
        for number, _ in enumerate(self.items("[", "]")):
            line = self.here()
            yield Element(key, self.value(), number, line)

    def here(self) -> int:
        """Return the line of the next token."""
        self.peek()
        self.count_lines(self.offset)
        return self.line

    def end(self) -> None:
        if self.peek():
            raise self.fault("extra text after the end of the JSON value")

    def items(self, opening: str, closing: str) -> Iterator[None]:
        """Yield once at the start of every item between the brackets."""
        self.expect(opening)
        if self.peek() != closing:
            yield
            while self.peek() == ",":
                self.offset += 1
                yield
        self.expect(closing)

    def expect(self, mark: str) -> None:
        if self.peek() != mark:
            raise self.fault(f"expected '{mark}'")
        self.offset += 1

    def peek(self) -> str:
        """Skip white space and return the next character, or an empty string at the end of the file."""
        while True:
            while self.offset < len(self.text) and self.text[self.offset] in " \t\r\n":
                self.offset += 1
            if self.offset < len(self.text) or self.ended:
                return self.text[self.offset : self.offset + 1]
            self.read(self.chunk)

    def value(self) -> Any:
        """Decode the value that starts here; read more, doubling the window, while it may be cut off."""
        self.peek()
        while True:
            try:
                value, end = self.decoder.raw_decode(self.text, self.offset)
            except json.JSONDecodeError as error:
                cut = error.msg.startswith("Unterminated string") or error.pos > len(self.text) - MARGIN
                if self.ended or not cut:
                    raise self.fault(error.msg, error.pos) from None
            except RecursionError:
                raise self.fault("nested too deeply") from None
            except ValueError:  # Python refuses to convert very long numbers
                long = _LONG_NUMBER.search(self.text, self.offset)
                raise self.fault("a number with too many digits", long.start() if long else None) from None
            else:
                # a number at the end of the window may continue: 12|34, or 1e-|7, which decodes as 1
                if end < len(self.text) - 2 or self.ended:
                    self.refuse_halves(value, end)
                    self.offset = end
                    return value
            self.read(max(self.chunk, len(self.text) - self.offset))

    def refuse_halves(self, value: Any, end: int) -> None:
        """Refuse an escaped surrogate without its other half, which can be neither saved nor printed."""
        surrogate = _HALF_CHARACTER.search(self.text, self.offset, end) if self.escapes else None
        if surrogate:
            try:
                json.dumps(value, ensure_ascii=False).encode()
            except RecursionError:
                raise self.fault("nested too deeply") from None
            except UnicodeEncodeError:
                raise self.fault(
                    "a string with half a character (a lone surrogate)", surrogate.start()
                ) from None

    def read(self, size: int) -> None:
        """Drop the used text, keeping count of its lines, and append about ``size`` characters."""
        self.count_lines(self.offset)
        block = self.file.read(size)
        try:
            more = self.charset.decode(block, final=not block)
        except UnicodeDecodeError as error:
            line = self.line_and_column(len(self.text))[0] + error.object.count(b"\n", 0, error.start)
            raise fault(
                self.path,
                f"not UTF-8 text (byte 0x{error.object[error.start]:02x}); save the file as UTF-8",
                line=line,
                kind="not-utf8",
            ) from None
        self.ended = not block
        self.text = self.text[self.offset :] + more
        self.offset = 0
        self.counted = 0
        self.escapes = "\\" in self.text  # much faster than searching for the two characters \u

    def count_lines(self, offset: int) -> None:
        """Advance the line count to ``offset``, so that every newline is counted once."""
        self.line, self.column = self.line_and_column(offset)
        self.counted = offset

    def line_and_column(self, offset: int) -> tuple[int, int]:
        """Return the line and column of an offset in the window."""
        newlines = self.text.count("\n", self.counted, offset)
        if not newlines:
            return self.line, self.column + offset - self.counted
        return self.line + newlines, offset - self.text.rfind("\n", self.counted, offset)

    def fault(self, message: str, offset: int | None = None) -> DataError:
        offset = self.offset if offset is None else offset
        line, column = self.line_and_column(offset)
        end = " (the file ends here)" if self.ended and not self.text[offset:].strip() else ""
        return fault(self.path, f"not valid JSON: {message}{end}", line=line, column=column, kind="bad-json")
