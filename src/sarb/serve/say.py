"""How the server talks to the person who started it."""

from __future__ import annotations

import sys
import time

from sarb.errors import printable

#: seconds between two messages of the same kind
PAUSE = 60.0


def say(text: str) -> None:
    """Print a message to stderr."""
    print(printable(f"sarb: {text}"), file=sys.stderr, flush=True)


class Seldom:
    """Says the same thing at most once per minute: a client must not be able to fill the log."""

    def __init__(self) -> None:
        self._said: dict[str, float] = {}

    def __call__(self, text: str) -> None:
        """Say it, unless it was said a moment ago."""
        now = time.monotonic()
        if now - self._said.get(text, -PAUSE) >= PAUSE:
            self._said[text] = now
            say(text)
