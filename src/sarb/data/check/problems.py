"""Problems of a data source and where they are: ``load`` raises them, ``sarb data check`` collects them."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from sarb.errors import DataError, DataNote

#: how many findings of one kind are kept as text; the rest are only counted, so that a million bad cells
#: cost no memory
LIMIT = 20
#: most characters in a line of a message
LONGEST = 400
T = TypeVar("T")
LEVELS = ("error", "warning", "note")
#: kind of the notes that ``load`` says aloud: how a file was read that can be read in one way only
READ_AS = "read-as"


class DataWarning(UserWarning):
    """The data can be used but is probably not what the user meant."""


@dataclass(frozen=True)
class Finding:
    """One problem of a source, or a remark on it.

    Args:
        level: ``error``: training on it would be wrong; ``warning``: probably not what the user meant;
            ``note``: harmless.
        kind: a short machine-readable name, such as ``bad-value``.
        message: the problem, without its location.
        file: where it is.
        line: counted from 1.
        column: name of the column, or position in a line of JSON or XML.
        value: what the file has.
        expected: what it may have.
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
        """Return location and message; leave out the file name if it is ``file``."""
        parts = [self.file] if self.file and self.file != file else []
        if self.line is not None:
            parts.append(f"line {self.line}")
        if self.column is not None:
            parts.append(f"column {self.column!r}")
        return f"{', '.join(parts)}: {self.message}" if parts else self.message

    def __str__(self) -> str:
        return self.within("")


class Findings:
    """Findings with exact counts; only the first of each kind are kept as text.

    Args:
        limit: how many of a kind to keep.
        detailed: whether readers should report each missing file instead of a summary.
    """

    def __init__(self, limit: int = LIMIT, detailed: bool = True) -> None:
        self.limit = limit
        self.detailed = detailed
        self.shown: list[Finding] = []
        self.counts: Counter[tuple[str, str]] = Counter()
        #: how many the texts speak of: one each, or all of those that a single line sums up
        self.told: Counter[tuple[str, str]] = Counter()
        self._kept: Counter[tuple[str, str]] = Counter()

    def add(self, finding: Finding, times: int = 1, summed: bool = False) -> None:
        """Add a finding and count it ``times`` times; a note once, however often the file is read.

        ``summed``: its text speaks of all of them.
        """
        if finding.level == "note" and finding in self.shown:
            return
        key = finding.level, finding.kind
        if self._kept[key] < self.limit:
            self.shown.append(finding)
            self._kept[key] += 1
            self.told[key] += times if summed else 1
        self.counts[key] += times

    def merge(self, other: Findings) -> None:
        """Add all findings of another object."""
        for finding in other.shown:
            self.add(finding)
        for key, times in other.counts.items():
            shown = sum((finding.level, finding.kind) == key for finding in other.shown)
            self.counts[key] += times - shown
            self.told[key] += other.told[key] - shown

    def count(self, level: str) -> int:
        """Return the number of findings of a level, shown or not."""
        return sum(times for (counted, _), times in self.counts.items() if counted == level)

    def of(self, level: str) -> list[Finding]:
        """Return the findings of a level that were kept as text."""
        return [finding for finding in self.shown if finding.level == level]

    def raise_any(self, source: str) -> None:
        """Raise one :class:`DataError` with all errors, or else issue the warnings and how it was read."""
        if self.count("error"):
            raise DataError(_text(source, self), self.of("error"))
        for note in self.of("note"):
            if note.kind == READ_AS:
                warnings.warn(str(note), DataNote, stacklevel=4)
        for warning in self.of("warning"):
            warnings.warn(str(warning), DataWarning, stacklevel=4)


_GATHERED: ContextVar[Findings | None] = ContextVar("gathered", default=None)


@contextmanager
def gather(limit: int = LIMIT, detailed: bool = True) -> Iterator[Findings]:
    """Collect findings: inside this block :meth:`Problems.raise_any` does not raise, so readers continue."""
    findings = Findings(limit, detailed)
    token = _GATHERED.set(findings)
    try:
        yield findings
    finally:
        _GATHERED.reset(token)


def gathering() -> Findings | None:
    """Return the findings being collected by :func:`gather`, None outside of it."""
    return _GATHERED.get()


def all_at_once(read: Callable[[], T]) -> T:
    """Call a reader and raise all its errors together; inside :func:`gather` just call it."""
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
    """Problems of one source, collected so that the user sees all of them at once."""

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
        summed: bool = False,
    ) -> None:
        """Add a problem, counted ``times`` times; the message may be empty if ``expected`` is given.

        ``summed``: the message speaks of all of them.
        """
        shown = None if value is None else short(value)
        text = message or f"value {shown!r}; expected {expected}"
        path = self.source if file is None else str(file)
        column = short(column) if isinstance(column, str) else column
        self.found.add(Finding(level, kind, short(text), path, line, column, shown, expected), times, summed)

    def counted(self, items: Sequence[T]) -> Iterator[tuple[T, int]]:
        """Yield up to ``limit`` items with their ``times``; the last one also counts those left out."""
        left_out = max(0, len(items) - self.limit)
        for number, item in enumerate(items[: self.limit], 1):
            yield item, 1 + left_out if number == self.limit else 1

    def raise_any(self) -> None:
        """Raise :class:`DataError` with all errors so far, or else issue the warnings.

        Inside :func:`gather` nothing is raised: the reader must be able to continue without the faulty part.
        """
        gathered = gathering()
        findings = self.found
        self.found = Findings(self.limit)
        if gathered is not None:
            gathered.merge(findings)
        else:
            findings.raise_any(self.source)


def short(text: str) -> str:
    """Cut long lines, so that a huge field does not make a huge message."""
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
    """Return the error for a file that cannot be read any further."""
    column = short(column) if isinstance(column, str) else column
    finding = Finding("error", kind, short(message), str(path), line, column)
    return DataError(str(finding), [finding])


def warn_size(name: str, expected: int, images: int, file: str | Path) -> None:
    """Warn if a file of a published set does not have the official number of images."""
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
