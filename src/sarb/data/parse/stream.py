"""Read a large JSON file element by element: annotation files of hundreds of MB never sit in memory whole."""

from __future__ import annotations

import codecs
import json
import re
import reprlib
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple

from sarb.data.check.problems import Problems, fault
from sarb.errors import DataError

CHUNK = 1 << 20
#: an error this close to the end of the buffer may only mean that a token was cut in two
MARGIN = 32
_LONG_NUMBER = re.compile(r"\d{640,}")
_HALF_CHARACTER = re.compile(r"\\u[dD][89a-fA-F]")


#: files name their images and categories by whole numbers, some by text
Identity = int | str


class Element(NamedTuple):
    """One element of an array.

    Args:
        key: of the array, empty for a top-level array.
        value: the element, decoded.
        number: its place in the array, from 0.
        line: where it starts in the file, from 1.
    """

    key: str
    value: Any
    number: int
    line: int

    @property
    def place(self) -> str:
        """``annotations[7]``, for messages: most annotation files are one long line."""
        return f"{self.key}[{self.number}]"

    def field(self, name: str) -> Any:
        """Return a field of the element, which must be an object with it; ValueError says what it is
        instead.
        """
        if not isinstance(self.value, dict):
            raise ValueError(f"is not an object: {reprlib.repr(self.value)}")
        if name not in self.value:
            raise ValueError(f"has no '{name}'")
        return self.value[name]

    def identity(self, name: str) -> Identity:
        """Return a field that is an id."""
        return checked_identity(name, self.field(name))

    def identities(self, name: str) -> list[Identity]:
        """Return a field that is a list of ids."""
        found = self.field(name)
        if not isinstance(found, list):
            raise ValueError(f"{name} is {reprlib.repr(found)}; expected a list of ids")
        return [checked_identity(f"{name}[{number}]", value) for number, value in enumerate(found)]

    def text(self, name: str) -> str:
        """Return a field that is a text."""
        found = self.field(name)
        if not isinstance(found, str) or not found.strip() or "\0" in found:
            raise ValueError(f"{name} is {reprlib.repr(found)}; expected a text")
        return found


def checked_identity(name: str, value: Any) -> Identity:
    """Return ``value`` if it can be an id; ValueError says what it is instead."""
    # not isinstance: True is an int, and 1.0 would be taken for id 1
    if type(value) is int or (type(value) is str and value):
        return value
    raise ValueError(f"{name} is {reprlib.repr(value)}; expected a whole number or a text")


def identity_order(identity: Identity) -> tuple[bool, int, str]:
    """Return the sort key of ids: numbers by value, then texts by alphabet."""
    return (True, 0, identity) if isinstance(identity, str) else (False, identity, "")


def elements(path: str | Path, keys: Collection[str] = (), chunk: int = CHUNK) -> Iterator[tuple[str, Any]]:
    """Yield (key, element) of what :func:`located_elements` yields."""
    return ((element.key, element.value) for element in located_elements(path, keys, chunk))


def located_elements(path: str | Path, keys: Collection[str] = (), chunk: int = CHUNK) -> Iterator[Element]:
    """Yield the elements of the arrays in a JSON file, each with its place.

    A top-level array yields elements with key ``""``. Of a top-level object the arrays under ``keys`` yield
    theirs in file order; everything else is skipped. At most about one element and one chunk are held. The
    constants NaN and Infinity are read as Python's own writer means them; in an object *within* an element
    the last of two equal keys counts, as with any JSON reader, but a top-level key that occurs twice is
    refused.

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
    """Yield every member of a JSON file that is one object, with its key and place; see
    :func:`located_elements`.
    """
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
        with path.open("rb") as file:
            if file.peek(3).startswith(codecs.BOM_UTF8):
                problems = Problems(path)
                problems.add(
                    "starts with a byte order mark, which is skipped", kind="bom", level="note", line=1
                )
                problems.raise_any()
            yield _Stream(file, path, chunk)
    except OSError as error:
        raise fault(path, f"cannot be read ({error.strerror})", kind="unreadable") from None


class _Stream:
    """A window on the text of a file: ``text[place:]`` is what has been read but not yet used."""

    def __init__(self, file: IO[bytes], path: Path, chunk: int) -> None:
        self.file = file
        self.path = path
        self.chunk = chunk
        self.text = ""
        self.place = 0
        self.ended = False
        # line and column of text[counted]
        self.line = 1
        self.column = 1
        self.counted = 0
        self.escapes = False  # whether there is any in the window
        self.decoder = json.JSONDecoder()
        # decoded here, not by the file: only so is the line of a wrong byte known without reading the file
        # twice
        self.charset = codecs.getincrementaldecoder("utf-8-sig")()

    def arrays(self, wanted: Collection[str]) -> Iterator[Element]:
        """Yield the elements of the arrays of an object, skipping what is not wanted."""
        for key in self.keys():
            if self.peek() != "[":
                self.value()
            elif key in wanted:
                yield from self.array(key)
            else:
                for _ in self.items("[", "]"):
                    self.value()

    def keys(self) -> Iterator[str]:
        """Yield the keys of an object, placed before each value, which the caller takes."""
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
        """Return the line of what comes next."""
        self.peek()
        self.count(self.place)
        return self.line

    def end(self) -> None:
        if self.peek():
            raise self.fault("extra text after the end of the JSON value")

    def items(self, opening: str, closing: str) -> Iterator[None]:
        """Yield once for every item between the brackets, placed at its start."""
        self.expect(opening)
        if self.peek() != closing:
            yield
            while self.peek() == ",":
                self.place += 1
                yield
        self.expect(closing)

    def expect(self, mark: str) -> None:
        if self.peek() != mark:
            raise self.fault(f"expected '{mark}'")
        self.place += 1

    def peek(self) -> str:
        """Skip white space and return the next character, empty at the end of the file."""
        while True:
            while self.place < len(self.text) and self.text[self.place] in " \t\r\n":
                self.place += 1
            if self.place < len(self.text) or self.ended:
                return self.text[self.place : self.place + 1]
            self.read(self.chunk)

    def value(self) -> Any:
        """Decode the value that starts here; read on, doubling, while it may only be cut off."""
        self.peek()
        while True:
            try:
                value, end = self.decoder.raw_decode(self.text, self.place)
            except json.JSONDecodeError as error:
                cut = error.msg.startswith("Unterminated string") or error.pos > len(self.text) - MARGIN
                if self.ended or not cut:
                    raise self.fault(error.msg, error.pos) from None
            except RecursionError:
                raise self.fault("nested too deeply") from None
            except ValueError:  # Python refuses to convert very long numbers
                long = _LONG_NUMBER.search(self.text, self.place)
                raise self.fault("a number with too many digits", long.start() if long else None) from None
            else:
                # a number near the end of the window may go on, 12|34, or be read as 1 with an exponent cut
                # off, 1e-|7
                if end < len(self.text) - 2 or self.ended:
                    self.refuse_halves(value, end)
                    self.place = end
                    return value
            self.read(max(self.chunk, len(self.text) - self.place))

    def refuse_halves(self, value: Any, end: int) -> None:
        """Refuse an escaped surrogate without its other half: such text can be neither written nor
        printed.
        """
        found = _HALF_CHARACTER.search(self.text, self.place, end) if self.escapes else None
        if found:
            try:
                json.dumps(value, ensure_ascii=False).encode()
            except RecursionError:
                raise self.fault("nested too deeply") from None
            except UnicodeEncodeError:
                raise self.fault("half a character (a lone surrogate) in a text", found.start()) from None

    def read(self, size: int) -> None:
        """Drop what was used, keeping count of lines, and append about ``size`` characters."""
        self.count(self.place)
        block = self.file.read(size)
        try:
            more = self.charset.decode(block, final=not block)
        except UnicodeDecodeError as error:
            line = self.position(len(self.text))[0] + error.object.count(b"\n", 0, error.start)
            raise fault(
                self.path,
                f"not UTF-8 text (byte 0x{error.object[error.start]:02x}); save the file as UTF-8",
                line=line,
                kind="not-utf8",
            ) from None
        self.ended = not block
        self.text = self.text[self.place :] + more
        self.place = 0
        self.counted = 0
        self.escapes = "\\" in self.text  # one character is found several times faster than two

    def count(self, place: int) -> None:
        """Move the count of lines on to ``place``, so that every newline is counted once."""
        self.line, self.column = self.position(place)
        self.counted = place

    def position(self, place: int) -> tuple[int, int]:
        """Return line and column of a place in the window."""
        newlines = self.text.count("\n", self.counted, place)
        if not newlines:
            return self.line, self.column + place - self.counted
        return self.line + newlines, place - self.text.rfind("\n", self.counted, place)

    def fault(self, message: str, place: int | None = None) -> DataError:
        place = self.place if place is None else place
        line, column = self.position(place)
        end = " (the file ends here)" if self.ended and not self.text[place:].strip() else ""
        return fault(self.path, f"not valid JSON, {message}{end}", line=line, column=column, kind="bad-json")
