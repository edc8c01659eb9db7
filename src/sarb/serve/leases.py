"""Who is looking at which question, so that two people are not asked the same."""

from __future__ import annotations

import time
from collections.abc import Callable

#: seconds without a word after which somebody's questions are given to others
LEASE = 300.0


class Leases:
    """The places handed out to each person, for as long as that person is heard of."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._held: dict[str, list[int]] = {}
        self._heard: dict[str, float] = {}

    def of(self, who: str) -> list[int]:
        """What this person holds, the first to be answered first; counts as a sign of life."""
        now = self._clock()
        for name in [name for name, heard in self._heard.items() if now - heard > LEASE and name != who]:
            del self._held[name], self._heard[name]
        self._heard[who] = now
        return self._held.setdefault(who, [])

    def others(self, who: str) -> set[int]:
        """What everybody else holds."""
        return {place for name, places in self._held.items() if name != who for place in places}

    def give(self, who: str, places: list[int]) -> None:
        """Let this person hold these places and no others."""
        self.of(who)
        self._held[who] = places
