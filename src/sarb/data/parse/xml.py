"""Read XML element by element, with line numbers, and refuse the features that make XML dangerous."""

# Written by hand: ElementTree has no line numbers and expands entities; defusedxml fixes only the second.

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from xml.parsers import expat

from sarb.data.check.problems import fault
from sarb.data.parse.text import unreadable
from sarb.files import open_regular

CHUNK = 1 << 20
#: annotation files have about five levels; many more mean an attack or a broken file
DEEPEST = 100

#: called with the stack of open elements, innermost last; copy the stack to keep it
Start = Callable[[list[str], dict[str, str], int], None]
Text = Callable[[list[str], str], None]
End = Callable[[list[str]], None]


def parse(path: Path, start: Start, text: Text | None = None, end: End | None = None) -> None:
    """Parse a file of any size and call back for every element.

    Args:
        path: the file.
        start: called when an element opens, with the stack of open elements, its attributes and its line.
        text: called with the stack and a piece of text; a long text may come in several pieces.
        end: called when an element closes, with the stack; the element is still the last one.

    Raises:
        DataError: not XML (with line and column), nested too deeply, unreadable, or with a document type
            declaration: annotation files have none, and it can define entities that expand without limit
            or read other files.
    """
    walk = _Walk(path, start, text, end)
    try:
        with open_regular(path) as file:
            while block := file.read(CHUNK):
                walk.parser.Parse(block, False)
        walk.parser.Parse(b"", True)
    except expat.ExpatError as error:
        message = f"not valid XML: {expat.errors.messages.get(error.code, 'unreadable')}"
        raise fault(path, message, line=error.lineno, column=error.offset + 1, kind="bad-xml") from None
    except OSError as error:
        raise unreadable(path, error) from None
    except (ValueError, LookupError) as error:
        # the file declares an encoding that Python does not know or expat cannot use
        message = f"not valid XML: its encoding is not supported ({error})"
        raise fault(path, message, line=1, kind="bad-xml") from None


class _Walk:
    """Keeps the stack of open elements while expat calls back."""

    def __init__(self, path: Path, start: Start, text: Text | None, end: End | None) -> None:
        self.path = path
        self.stack: list[str] = []
        self.start = start
        self.text = text
        self.end = end
        self.parser = expat.ParserCreate()
        self.parser.buffer_text = True
        self.parser.StartElementHandler = self.open
        self.parser.EndElementHandler = self.close
        self.parser.StartDoctypeDeclHandler = self.refuse
        if text is not None:
            self.parser.CharacterDataHandler = self.words

    def open(self, tag: str, attributes: dict[str, str]) -> None:
        self.stack.append(tag)
        line = self.parser.CurrentLineNumber
        if len(self.stack) > DEEPEST:
            raise fault(self.path, "nested too deeply", line=line, kind="bad-xml")
        self.start(self.stack, attributes, line)

    def words(self, data: str) -> None:
        if self.text is not None:
            self.text(self.stack, data)

    def close(self, _: str) -> None:
        if self.end is not None:
            self.end(self.stack)
        self.stack.pop()

    def refuse(self, *_: object) -> None:
        line = self.parser.CurrentLineNumber
        raise fault(self.path, "a document type declaration is not allowed", line=line, kind="bad-xml")
