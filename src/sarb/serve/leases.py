"""Who is looking at which question, so that two people are not asked the same one."""

from __future__ import annotations

import time
from collections.abc import Callable

#: seconds of silence after which a person's questions go to others
LEASE = 300.0


class Leases:
    """The entries that each person holds, until that person has been silent for ``LEASE`` seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._held: dict[str, list[int]] = {}
        self._heard: dict[str, float] = {}

    def of(self, who: str) -> list[int]:
        """Return what this person holds, in order; the call counts as a sign of life."""
        now = self._clock()
        silent = [name for name, heard in self._heard.items() if now - heard > LEASE and name != who]
        for name in silent:
            del self._held[name]
            del self._heard[name]
        self._heard[who] = now
        return self._held.setdefault(who, [])

    def others(self, who: str) -> set[int]:
        """Return what everybody else holds."""
        return {entry for name, entries in self._held.items() if name != who for entry in entries}

    def give(self, who: str, entries: list[int]) -> None:
        """Let this person hold exactly these entries."""
        self.of(who)
        self._held[who] = entries
