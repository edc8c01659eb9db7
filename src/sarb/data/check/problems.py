"""What is wrong with a data source, and where: raised by ``load``, gathered by ``sarb data check``."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from sarb.errors import DataError

#: how many findings of one kind are kept as text; the others are only counted, so a million bad cells cost
#: no memory
LIMIT = 20
#: characters of a line of a message
LONGEST = 400
T = TypeVar("T")
LEVELS = ("error", "warning", "note")


class DataWarning(UserWarning):
    """Data that can be used, but is probably not what was meant."""


@dataclass(frozen=True)
class Finding:
    """One thing to know about a source.

    Args:
        level: ``error``: training on it would be wrong; ``warning``: probably not what was meant; ``note``:
            harmless.
        kind: a short name for machines, such as ``bad-value``.
        message: what it is, without the place.
        file: the file it is in.
        line: counted from 1.
        column: the name of a column, or its number in a line of JSON or XML.
        value: what the file says.
        expected: what it may say.
    """

    level: str
    kind: str
    message: str
    file: str = ""
    line: int | None = None
    column: str | int | None = None
    value: str | None = None
    expected: str | None = None

    def within(self, file: str) -> str:
        """Return place and message, leaving out the name of the file that was said before."""
        parts = [self.file] if self.file and self.file != file else []
        if self.line is not None:
            parts.append(f"line {self.line}")
        if self.column is not None:
            parts.append(f"column {self.column!r}")
        return f"{', '.join(parts)}: {self.message}" if parts else self.message

    def __str__(self) -> str:
        return self.within("")


class Findings:
    """Findings with exact counts, of which the first of each kind are kept as text.

    Args:
        limit: how many of a kind to keep.
        detailed: whether readers should name every missing file instead of summing up.
    """

    def __init__(self, limit: int = LIMIT, detailed: bool = True) -> None:
        self.limit = limit
        self.detailed = detailed
        self.shown: list[Finding] = []
        self.counts: Counter[tuple[str, str]] = Counter()

    def add(self, finding: Finding, times: int = 1) -> None:
        """Take one finding, standing for ``times`` like it."""
        key = finding.level, finding.kind
        if self.counts[key] < self.limit:
            self.shown.append(finding)
        self.counts[key] += times

    def merge(self, other: Findings) -> None:
        """Take all of another."""
        for finding in other.shown:
            self.add(finding)
        for key, times in other.counts.items():
            self.counts[key] += times - sum((finding.level, finding.kind) == key for finding in other.shown)

    def count(self, level: str) -> int:
        """Return how many of a level there are, shown or not."""
        return sum(times for (counted, _), times in self.counts.items() if counted == level)

    def of(self, level: str) -> list[Finding]:
        """Return the kept findings of a level."""
        return [finding for finding in self.shown if finding.level == level]

    def raise_any(self, source: str) -> None:
        """Raise one :class:`DataError` with every error, or pass on the warnings; the notes are for
        ``check``.
        """
        if self.count("error"):
            raise DataError(_text(source, self), self.of("error"))
        for warning in self.of("warning"):
            warnings.warn(str(warning), DataWarning, stacklevel=4)


_GATHERED: ContextVar[Findings | None] = ContextVar("gathered", default=None)


@contextmanager
def gather(limit: int = LIMIT, detailed: bool = True) -> Iterator[Findings]:
    """Inside this block :meth:`Problems.raise_any` hands over what it has and lets the reader go on."""
    findings = Findings(limit, detailed)
    token = _GATHERED.set(findings)
    try:
        yield findings
    finally:
        _GATHERED.reset(token)


def gathering() -> Findings | None:
    """Return where problems are being gathered, None when they are raised at once."""
    return _GATHERED.get()


def all_at_once(read: Callable[[], T]) -> T:
    """Call a reader and raise everything it found together; inside :func:`gather` just call it."""
    if gathering() is not None:
        return read()
    with gather(detailed=False) as findings:
        try:
            result = read()
        except DataError as error:
            if not findings.count("error"):
                raise
            for finding in error.findings or [Finding("error", "data", str(error))]:
                findings.add(finding)
    findings.raise_any(next((error.file for error in findings.of("error")), ""))
    return result


class Problems:
    """Faults of one source, collected so that the user sees them all at once."""

    def __init__(self, source: str | Path, limit: int | None = None) -> None:
        gathered = gathering()
        self.source = str(source)
        self.limit = limit or (LIMIT if gathered is None else gathered.limit)
        self.found = Findings(self.limit)

    @property
    def count(self) -> int:
        """Number of errors so far."""
        return self.found.count("error")

    def add(
        self,
        message: str = "",
        *,
        kind: str = "data",
        level: str = "error",
        line: int | None = None,
        column: str | int | None = None,
        value: str | None = None,
        expected: str | None = None,
        file: str | Path | None = None,
        times: int = 1,
    ) -> None:
        """Note one fault, standing for ``times`` like it; a value with what was expected needs no message."""
        shown = None if value is None else short(value)
        text = message or f"value {shown!r}; expected {expected}"
        path = self.source if file is None else str(file)
        column = short(column) if isinstance(column, str) else column
        self.found.add(Finding(level, kind, short(text), path, line, column, shown, expected), times)

    def counted(self, items: Sequence[T]) -> Iterator[tuple[T, int]]:
        """Yield the first items, up to the limit, with their ``times``: the last counts for all left out."""
        left_out = max(0, len(items) - self.limit)
        for number, item in enumerate(items[: self.limit], 1):
            yield item, 1 + left_out if number == self.limit else 1

    def raise_any(self) -> None:
        """Raise :class:`DataError` with every error noted so far, or pass on the warnings.

        Inside :func:`gather` nothing is raised: the reader must be able to go on, with the faulty part left
        out.
        """
        gathered = gathering()
        findings = self.found
        self.found = Findings(self.limit)
        if gathered is not None:
            gathered.merge(findings)
        else:
            findings.raise_any(self.source)


def short(text: str) -> str:
    """Cut every line to what a person reads; a huge field must not become a huge message."""
    if len(text) <= LONGEST:
        return text
    lines = text.split("\n")
    return "\n".join(line if len(line) <= LONGEST else f"{line[: LONGEST - 1]}…" for line in lines)


def _text(source: str, findings: Findings) -> str:
    errors = findings.of("error")
    count = findings.count("error")
    if count == 1:
        return str(errors[0]) if errors[0].file.startswith(source) else f"{source}: {errors[0]}"
    shown = errors[:LIMIT]
    lines = "".join(f"\n  {finding.within(source)}" for finding in shown)
    more = f"\n  … and {count - len(shown):,} more" if count > len(shown) else ""
    return f"{source}: {count:,} problems{lines}{more}"


def fault(
    path: str | Path,
    message: str,
    *,
    line: int | None = None,
    column: str | int | None = None,
    kind: str = "data",
) -> DataError:
    """Return the error for a file that cannot be read further."""
    column = short(column) if isinstance(column, str) else column
    finding = Finding("error", kind, short(message), str(path), line, column)
    return DataError(str(finding), [finding])


def warn_size(name: str, expected: int, images: int, file: str | Path) -> None:
    """Warn when an official set does not have its official number of images, and say which file differs."""
    if images != expected:
        problems = Problems(file)
        problems.add(
            f"{name} has {images:,} images, the official set has {expected:,}: results cannot be compared",
            kind="official-size",
            level="warning",
            value=str(images),
            expected=str(expected),
        )
        problems.raise_any()
