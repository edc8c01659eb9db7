"""Talk goes to stderr: a progress bar with time left on a terminal, plain lines otherwise."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class Progress:
    """Says what is going on.

    Args:
        enabled: False says nothing at all (library use).
    """

    def __init__(self, enabled: bool = True) -> None:
        self.enabled = enabled
        self.terminal = enabled and sys.stderr.isatty()
        self._said: set[str] = set()

    @classmethod
    def of(cls, given: bool | Progress) -> Progress:
        """One that is there already, or a new one."""
        return given if isinstance(given, cls) else cls(bool(given))

    def say(self, line: str) -> None:
        """Print one line to stderr."""
        if self.enabled:
            print(line, file=sys.stderr, flush=True)

    def once(self, line: str) -> None:
        """Print a line that need not be said again."""
        if line not in self._said:
            self._said.add(line)
            self.say(line)

    @contextmanager
    def bar(self, description: str, total: int | None) -> Iterator[Callable[[int], None]]:
        """Yield ``advance(count)``; draws a bar on a terminal, with the time left where the total is
        known.
        """
        if not self.terminal:
            yield lambda count: None
            return
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
        )
        with Progress(*columns, console=Console(stderr=True), transient=True) as display:
            task = display.add_task(description, total=total)
            yield lambda count: display.advance(task, count)
