"""Hands out questions: first those a person holds already, then the next free ones."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from sarb.serve.answers import Answers
from sarb.serve.leases import Leases
from sarb.serve.questions import Questions

#: questions that a person gets at a time
USUAL = 4
#: how many questions to look at together when searching for free ones
BLOCK = 4096
#: names after which those that were silent for long are forgotten
FORGET = 1024


class Handout:
    """Who gets which questions next. Not for several threads at once: the desk has a lock.

    Args:
        questions: all questions.
        answers: what has been answered.
        clock: seconds, for the leases.
    """

    def __init__(
        self, questions: Questions, answers: Answers, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.leases = Leases(clock)
        self._questions = questions
        self._answers = answers
        self._order: dict[str, str | None] = {}
        self._count: dict[str, int] = {}

    def next(
        self,
        who: str,
        column: int | None,
        count: int | None = None,
        order: str | None = None,
        client: str = "",
    ) -> list[int]:
        """Return up to ``count`` entries, and let this person hold exactly these.

        Args:
            who: the person.
            column: a category, or None for all.
            count: how many; None for as many as this person asked for last, at first ``USUAL``.
            order: None for the questions' own order, or one of ``ORDERS``. What was held in another order
                is let go.
            client: where this person asks from.
        """
        if len(self._count) > FORGET:
            self._count = {name: kept for name, kept in self._count.items() if self.leases.knows(name)}
            self._order = {name: kept for name, kept in self._order.items() if self.leases.knows(name)}
        count = self._count[who] = count or self._count.get(who, USUAL)
        entries = self._questions.in_order(column, order)
        own = self.leases.of(who, client)
        held = own if self._order.get(who) == order else []
        mine = [
            entry
            for entry in held
            if not self._answers.answered[entry] and self._questions.in_column(entry, column)
        ][:count]
        mine += self._free(entries, self.leases.others(who).union(mine), count - len(mine))
        if not mine:
            mine = self._stale(who, column, count)
        self.leases.give(who, mine)
        self._order[who] = order
        return mine

    def _stale(self, who: str, column: int | None, count: int) -> list[int]:
        """Return up to ``count`` entries of people who do not answer, and take them away from these."""
        found = [
            entry
            for entry in self.leases.stale(who)
            if not self._answers.answered[entry] and self._questions.in_column(entry, column)
        ][:count]
        self.leases.take(found)
        return found

    def ahead(self, who: str, column: int | None, count: int, order: str | None = None) -> list[int]:
        """Return up to ``count`` entries that come after those this person holds, without holding them."""
        taken = self.leases.others(who).union(self.leases.of(who))
        return self._free(self._questions.in_order(column, order), taken, count)

    def _free(self, entries: NDArray[np.int64], taken: set[int], count: int) -> list[int]:
        """Return the first ``count`` entries that are neither answered nor taken."""
        free: list[int] = []
        for start in range(0, len(entries), BLOCK):
            if len(free) >= count:
                break
            block = entries[start : start + BLOCK]
            unanswered = block[~self._answers.answered[block]].tolist()
            free += [entry for entry in unanswered if entry not in taken]
        return free[:count]

    def return_to(self, who: str, entries: list[int]) -> None:
        """Ask this person these questions again, before all others."""
        others = [entry for entry in self.leases.of(who) if entry not in entries]
        self.leases.give(who, [*entries, *others])
