"""Progress messages on stderr: a progress bar on a terminal, plain lines otherwise."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class Progress:
    """Prints progress messages.

    Args:
        enabled: False prints nothing, for use as a library.
    """

    def __init__(self, enabled: bool = True) -> None:
        self.enabled = enabled
        self.terminal = enabled and sys.stderr.isatty()
        self._said: set[str] = set()

    @classmethod
    def of(cls, given: bool | Progress) -> Progress:
        """Return ``given`` if it is a Progress, else a new one, enabled if ``given`` is true."""
        return given if isinstance(given, cls) else cls(bool(given))

    def say(self, line: str) -> None:
        """Print one line to stderr."""
        if self.enabled:
            print(line, file=sys.stderr, flush=True)

    def once(self, line: str) -> None:
        """Print a line the first time only."""
        if line not in self._said:
            self._said.add(line)
            self.say(line)

    @contextmanager
    def bar(self, description: str, total: int | None) -> Iterator[Callable[[int], None]]:
        """Yield ``advance(count)``; on a terminal show a bar, with the time left if ``total`` is known."""
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
