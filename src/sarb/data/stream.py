"""Read a large JSON file element by element: annotation files of hundreds of MB never sit in memory whole."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import IO, Any

from sarb.errors import DataError

CHUNK = 1 << 20
#: an error this close to the end of the buffer may only mean that a token was cut in two
MARGIN = 32


def elements(path: str | Path, keys: Collection[str] = (), chunk: int = CHUNK) -> Iterator[tuple[str, Any]]:
    """Yield the elements of the arrays in a JSON file, each with the key of its array.

    A top-level array yields ``("", element)``. Of a top-level object the arrays under ``keys`` yield
    ``(key, element)`` in file order; everything else is skipped. At most about one element and one chunk are held.

    Raises:
        DataError: not JSON (with line and column), not UTF-8, or unreadable.
    """
    path = Path(path)
    try:
        with path.open(encoding="utf-8-sig") as file:
            yield from _Stream(file, path, chunk).walk(keys)
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: not UTF-8 text ({error.reason})") from None
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror})") from None


class _Stream:
    """A window on the text of a file: ``text[place:]`` is what has been read but not yet used."""

    def __init__(self, file: IO[str], path: Path, chunk: int) -> None:
        self.file, self.path, self.chunk = file, path, chunk
        self.text, self.place, self.ended = "", 0, False
        self.line, self.column = 1, 1  # of text[0]
        self.decoder = json.JSONDecoder()

    def walk(self, keys: Collection[str]) -> Iterator[tuple[str, Any]]:
        first = self.peek()
        if first == "[":
            yield from (("", element) for element in self.array())
        elif first == "{":
            yield from self.members(keys)
        else:
            raise self.fault("expected a JSON array or object")
        if self.peek():
            raise self.fault("extra text after the end of the JSON value")

    def members(self, keys: Collection[str]) -> Iterator[tuple[str, Any]]:
        for _ in self.items("{", "}"):
            key = self.value()
            if not isinstance(key, str):
                raise self.fault("expected a key in double quotes")
            self.expect(":")
            if self.peek() != "[":
                self.value()
                continue
            for element in self.array():
                if key in keys:
                    yield key, element

    def array(self) -> Iterator[Any]:
        for _ in self.items("[", "]"):
            yield self.value()

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
            else:
                # a number near the end of the window may go on, 12|34, or be read as 1 with an exponent cut off, 1e-|7
                if end < len(self.text) - 2 or self.ended:
                    self.place = end
                    return value
            self.read(max(self.chunk, len(self.text) - self.place))

    def read(self, size: int) -> None:
        """Drop what was used, keeping count of lines, and append up to ``size`` characters."""
        self.line, self.column = self.position(self.place)
        more = self.file.read(size)
        self.ended = not more
        self.text, self.place = self.text[self.place :] + more, 0

    def position(self, place: int) -> tuple[int, int]:
        newlines = self.text.count("\n", 0, place)
        if not newlines:
            return self.line, self.column + place
        return self.line + newlines, place - self.text.rfind("\n", 0, place)

    def fault(self, message: str, place: int | None = None) -> DataError:
        place = self.place if place is None else place
        line, column = self.position(place)
        end = " (the file ends here)" if self.ended and not self.text[place:].strip() else ""
        return DataError(f"{self.path}, line {line}, column {column}: not valid JSON, {message}{end}")
