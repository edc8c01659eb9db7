"""Who is looking at which question, so that two people are not asked the same."""

from __future__ import annotations

import time
from collections.abc import Callable

#: seconds without a word after which somebody's questions are given to others
LEASE = 300.0


class Leases:
    """The entries handed out to each person, for as long as that person is heard of."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._held: dict[str, list[int]] = {}
        self._heard: dict[str, float] = {}

    def of(self, who: str) -> list[int]:
        """What this person holds, the first to be answered first; counts as a sign of life."""
        now = self._clock()
        silent = [name for name, heard in self._heard.items() if now - heard > LEASE and name != who]
        for name in silent:
            del self._held[name]
            del self._heard[name]
        self._heard[who] = now
        return self._held.setdefault(who, [])

    def others(self, who: str) -> set[int]:
        """What everybody else holds."""
        return {entry for name, entries in self._held.items() if name != who for entry in entries}

    def give(self, who: str, entries: list[int]) -> None:
        """Let this person hold these entries and no others."""
        self.of(who)
        self._held[who] = entries
