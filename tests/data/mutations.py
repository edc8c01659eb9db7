"""Seeded damage to label files, as done by editors, spreadsheets, disks, people and attackers."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

#: suffix -> family of formats; any other suffix is a separate family
FAMILIES = {".csv": "csv", ".tsv": "csv", ".json": "json", ".jsonl": "jsonl", ".xml": "xml", ".txt": "txt"}
TEXT = ("csv", "json", "jsonl", "xml", "txt")
WORDS = [
    *("maybe", "", " ", "2", "-0", "1e400", "nan", "-1130179", "9" * 400, "0x1"),
    *("\u0661", "é" * 3, "=1+1", "..", "/"),
]


@dataclass(frozen=True)
class Mutation:
    """A damaged file.

    Args:
        kind: name of the damage.
        data: the new content, None where the file is no longer a file.
        line: the only damaged line; a reader that rejects the file must name it.
        located: a reader that rejects the file must name a line.
        harmless: the labels must be read unchanged.
    """

    kind: str
    data: bytes | None = None
    line: int | None = None
    located: bool = False
    harmless: bool = False

    def apply(self, path: Path) -> None:
        """Damage a file on disk."""
        path.unlink()
        if self.data is not None:
            path.write_bytes(self.data)
            path.chmod(0 if self.kind == "no permission" else 0o644)
        elif self.kind == "folder":
            path.mkdir()
        elif self.kind == "symlink loop":
            path.symlink_to(path.name)

    def undo(self, path: Path, content: bytes) -> None:
        """Bring the file back."""
        path.rmdir() if path.is_dir() else path.unlink(missing_ok=True)
        path.write_bytes(content)


#: takes the content and a random generator; raises IndexError if the file cannot be damaged in this way
Change = Callable[[bytes, random.Random], Mutation | bytes]
#: name -> families it applies to (empty: all), and the change
KINDS: dict[str, tuple[tuple[str, ...], Change]] = {}


def kind(*families: str) -> Callable[[Change], Change]:
    """Register a kind of damage under the name of its function."""

    def keep(change: Change) -> Change:
        KINDS[change.__name__.replace("_", " ")] = families, change
        return change

    return keep


def mutations(content: bytes, suffix: str, seed: int, count: int = 30) -> Iterator[Mutation]:
    """Yield ``count`` damaged versions of a file; every kind once before any is repeated."""
    import tests.data.mutation_kinds  # noqa: F401 - registers the kinds of single formats

    family = FAMILIES.get(suffix.lower(), suffix.lower().lstrip("."))
    names = [name for name, (families, _) in KINDS.items() if not families or family in families]
    made = turn = 0
    while made < count:
        for name in random.Random(f"{seed} {turn}").sample(names, len(names)):
            try:
                result = KINDS[name][1](content, random.Random(f"{seed} {turn} {name}"))
            except IndexError:  # nothing to choose from: no attributes, no numbers, no second line
                continue
            if made < count:
                made += 1
                yield Mutation(name, result) if isinstance(result, bytes) else result
        turn += 1


def insert(data: bytes, place: int, more: bytes) -> bytes:
    """Insert bytes at a position."""
    return data[:place] + more + data[place:]


def spans(pattern: bytes, data: bytes) -> list[tuple[int, int]]:
    """Return (start, end) of every match."""
    return [match.span() for match in re.finditer(pattern, data)]


def line_of(data: bytes, place: int) -> int:
    """Return the line number of a position."""
    return data.count(b"\n", 0, place) + 1


@kind()
def empty(data: bytes, draw: random.Random) -> bytes:
    return b""


@kind()
def missing(data: bytes, draw: random.Random) -> Mutation:
    return Mutation("missing")


@kind()
def folder(data: bytes, draw: random.Random) -> Mutation:
    return Mutation("folder")


@kind()
def symlink_loop(data: bytes, draw: random.Random) -> Mutation:
    return Mutation("symlink loop")


@kind()
def no_permission(data: bytes, draw: random.Random) -> bytes:
    return data  # only the superuser can still read it


@kind()
def picture(data: bytes, draw: random.Random) -> bytes:
    return b"\xff\xd8\xff\xe0\x00\x10JFIF\x00\x01" + draw.randbytes(200) + b"\xff\xd9"


@kind()
def truncated(data: bytes, draw: random.Random) -> Mutation:
    cut = data[: draw.randrange(1, max(2, len(data.rstrip())))]
    return Mutation("truncated", cut, located=data[:1] in b"[<" or data[:2] in (b"{\n", b"{}"))


@kind()
def bytes_flipped(data: bytes, draw: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(3):
        changed[draw.randrange(len(changed))] ^= 1 << draw.randrange(8)
    return bytes(changed)


@kind()
def block_lost(data: bytes, draw: random.Random) -> bytes:
    start = draw.randrange(len(data))
    return data[:start] + data[start + draw.randrange(1, 40) :]


@kind()
def block_repeated(data: bytes, draw: random.Random) -> bytes:
    start = draw.randrange(len(data))
    size = draw.randrange(1, 60)
    return data[: start + size] + data[start:]


@kind(*TEXT)
def latin_1_byte(data: bytes, draw: random.Random) -> Mutation:
    place = draw.choice(spans(rb"[A-Za-z0-9]", data))[1]
    return Mutation("latin 1 byte", insert(data, place, b"\xe9"), line=line_of(data, place))


@kind(*TEXT)
def utf_16(data: bytes, draw: random.Random) -> bytes:
    return data.decode().encode("utf-16")


@kind(*TEXT)
def byte_order_mark(data: bytes, draw: random.Random) -> Mutation:
    return Mutation("byte order mark", b"\xef\xbb\xbf" + data, harmless=True)


@kind(*TEXT)
def crlf(data: bytes, draw: random.Random) -> Mutation:
    return Mutation("crlf", data.replace(b"\n", b"\r\n"), harmless=True)


@kind(*TEXT)
def cr_only(data: bytes, draw: random.Random) -> bytes:
    return data.replace(b"\n", b"\r")


@kind(*TEXT)
def nul(data: bytes, draw: random.Random) -> bytes:
    return insert(data, draw.randrange(len(data)), b"\0")


@kind(*TEXT)
def huge_field(data: bytes, draw: random.Random) -> bytes:
    more = b"x" * draw.choice([300, 5_000, 200_000, 3_000_000])
    return insert(data, draw.choice(spans(rb"[A-Za-z0-9]", data))[1], more)


@kind(*TEXT)
def quote(data: bytes, draw: random.Random) -> bytes:
    return insert(data, draw.randrange(len(data)), b'"')


@kind(*TEXT)
def white_space_only(data: bytes, draw: random.Random) -> bytes:
    return b" \n\t\n"


@kind(*TEXT)
def first_line_only(data: bytes, draw: random.Random) -> bytes:
    return data.split(b"\n")[0]


@kind(*TEXT)
def lines_shuffled(data: bytes, draw: random.Random) -> bytes:
    lines = data.splitlines(keepends=True)
    return b"".join(draw.sample(lines, len(lines)))


@kind(*TEXT)
def line_deleted(data: bytes, draw: random.Random) -> bytes:
    lines = data.splitlines(keepends=True)
    del lines[draw.randrange(len(lines))]
    return b"".join(lines)


@kind(*TEXT)
def line_doubled(data: bytes, draw: random.Random) -> bytes:
    lines = data.splitlines()
    place = draw.randrange(len(lines))
    return b"\n".join([*lines[: place + 1], *lines[place:], b""])


@kind(*TEXT)
def first_line_doubled(data: bytes, draw: random.Random) -> bytes:
    return data.splitlines()[0] + b"\n" + data


@kind(*TEXT)
def foreign_digits(data: bytes, draw: random.Random) -> bytes:
    return re.sub(
        rb"[0-9]", lambda digit: chr(0x0660 + int(digit[0])).encode(), data, count=draw.randrange(1, 9)
    )


@kind(*TEXT)
def strange_number(data: bytes, draw: random.Random) -> bytes:
    start, end = draw.choice(spans(rb"-?\d+", data))
    return data[:start] + draw.choice(WORDS).encode() + data[end:]
