"""Progress messages on stderr: a progress bar on a terminal, a line per 10 % otherwise."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

from sarb.errors import printable

#: seconds of work before the first line of progress where there is no terminal
SHORT = 2.0


class Advance(Protocol):
    """Called after each piece of work."""

    def __call__(self, count: int, note: str = "", /) -> None:
        """Add to what is done; ``note`` says more about it in a few words."""


class Progress:
    """Prints progress messages.

    Args:
        enabled: False prints nothing, for use as a library.
        verbose: also print details, such as a row per epoch.
        clock: seconds since any fixed moment.
    """

    def __init__(
        self, enabled: bool = True, verbose: bool = False, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.enabled = enabled
        self.verbose = verbose
        self.terminal = enabled and sys.stderr.isatty()
        self._clock = clock
        self._said: set[str] = set()
        self._open = False

    @classmethod
    def of(cls, given: bool | Progress) -> Progress:
        """Return ``given`` if it is a Progress, else a new one, enabled if ``given`` is true."""
        return given if isinstance(given, cls) else cls(bool(given))

    def say(self, line: str) -> None:
        """Print one line to stderr."""
        if self.enabled:
            print(printable(line), file=sys.stderr, flush=True)

    def detail(self, line: str) -> None:
        """Print a line that only a verbose command shows."""
        if self.verbose:
            self.say(line)

    def once(self, line: str) -> None:
        """Print a line the first time only."""
        if line not in self._said:
            self._said.add(line)
            self.say(line)

    @contextmanager
    def bar(self, description: str, total: int | None, done: int = 0) -> Iterator[Advance]:
        """Yield ``advance(count, note)``: a bar on a terminal, otherwise a line per 10 % if it takes long.

        Both show the time left if ``total`` is known. A bar inside another one shows nothing.
        """
        if self._open or not self.enabled:
            yield lambda count, note="": None
            return
        self._open = True
        try:
            if self.terminal:
                with _drawn(description, total, done) as advance:
                    yield advance
            else:
                yield _Lines(self, self._clock, description, total or 0, done)
        finally:
            self._open = False


class _Lines:
    """A line per 10 %, from the moment on when the work turns out to be long."""

    def __init__(
        self, talk: Progress, clock: Callable[[], float], description: str, total: int, done: int
    ) -> None:
        self._talk = talk
        self._clock = clock
        self._description = description
        self._total = total
        self._first = done
        self._done = done
        self._said = 0
        self._started = clock()

    def __call__(self, count: int, note: str = "") -> None:
        self._done += count
        tenth = 10 * self._done // self._total if self._total else 0
        seconds = self._clock() - self._started
        if tenth <= self._said or seconds < SHORT:
            return
        self._said = tenth
        remaining = seconds / max(1, self._done - self._first) * (self._total - self._done)
        more = f", {note}" if note else ""
        left = f", {about(remaining)} left" if remaining > 0 else ""
        done = f"{self._done:,} of {self._total:,}"
        self._talk.say(f"{self._description}: {10 * tenth} % ({done}){more}{left}")


@contextmanager
def _drawn(description: str, total: int | None, done: int) -> Iterator[Advance]:
    """A bar on the terminal."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}"),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as display:
        task = display.add_task(printable(description), total=total, completed=done, note="")
        yield lambda count, note="": display.update(task, advance=count, note=note)


def about(seconds: float) -> str:
    """A time in words."""
    return f"about {seconds:.0f} s" if seconds < 100 else f"about {seconds / 60:.0f} min"
