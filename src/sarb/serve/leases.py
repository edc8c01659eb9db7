"""Who is looking at which question, so that two people are not asked the same one.

A name costs nothing, so whoever wants to can invent people and hold questions with them. What one client and all
together hold is bounded, and when no question is free, those of people who do not answer are asked of others. An answer
needs no lease: nobody's answer is lost when a question was handed on.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

#: seconds of silence after which a person's questions go to others
LEASE = 300.0
#: seconds without an answer after which they go to someone for whom no other question is left
PATIENCE = 60.0
#: questions that all people of one client (an address) may hold, and that all may hold
MOST_OF_CLIENT = 400
MOST = 4000
#: people who are remembered; more who have never answered than this are a crowd, for which nobody has to wait
MOST_PEOPLE = 256
CROWD = 8


@dataclass
class _Person:
    """What a person holds; ``heard`` is the last sign of life, ``answered`` the last answer, 0 if there is none."""

    client: str
    heard: float
    since: float
    answered: float = 0.0
    held: list[int] = field(default_factory=list)

    def merit(self) -> tuple[bool, float]:
        """Sorts those first whose questions go to others first."""
        return self.answered > 0, max(self.answered, self.since)


class Leases:
    """The entries that each person holds, until that person has been silent for ``LEASE`` seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._people: dict[str, _Person] = {}

    def of(self, who: str, client: str = "") -> list[int]:
        """Return what this person holds, in order; the call counts as a sign of life."""
        now = self._clock()
        silent = [name for name, person in self._people.items() if now - person.heard > LEASE and name != who]
        for name in silent:
            del self._people[name]
        person = self._people.setdefault(who, _Person(client, now, now))
        person.heard = now
        if client:
            person.client = client
        return person.held

    def others(self, who: str) -> set[int]:
        """Return what everybody else holds."""
        return {entry for name, person in self._people.items() if name != who for entry in person.held}

    def knows(self, who: str) -> bool:
        """Whether this person was heard of lately."""
        return who in self._people

    def give(self, who: str, entries: list[int]) -> None:
        """Let this person hold exactly these entries; if that is too much together, others let go."""
        self.of(who)
        person = self._people[who]
        if not set(entries) <= set(person.held):
            person.since = person.heard
        person.held = entries
        same = [other for other in self._people.values() if other.client == person.client]
        self._let_go(same, person, MOST_OF_CLIENT)
        self._let_go(list(self._people.values()), person, MOST)
        if len(self._people) > MOST_PEOPLE:
            del self._people[min((name for name in self._people if name != who), key=self._merit)]

    def _merit(self, name: str) -> tuple[bool, float]:
        return self._people[name].merit()

    def _let_go(self, people: list[_Person], keep: _Person, most: int) -> None:
        """Take all questions from some of these people, so that together they hold no more than ``most``."""
        total = sum(len(person.held) for person in people)
        for person in sorted(people, key=_Person.merit):
            if total <= most:
                return
            if person is not keep:
                total -= len(person.held)
                person.held = []

    def answered(self, who: str) -> None:
        """Note that this person has answered something."""
        self.of(who)
        self._people[who].answered = self._clock()

    def stale(self, who: str) -> list[int]:
        """Return what others hold but do not answer, for someone to whom nothing else can be given."""
        now = self._clock()
        holding = [person for name, person in self._people.items() if person.held and name != who]
        crowded = sum(not person.answered for person in self._people.values()) > CROWD
        return [
            entry
            for person in sorted(holding, key=_Person.merit)
            if now - max(person.answered, person.since) > PATIENCE or (crowded and not person.answered)
            for entry in person.held
        ]

    def take(self, entries: list[int]) -> None:
        """Let nobody hold these entries."""
        taken = set(entries)
        for person in self._people.values():
            if not taken.isdisjoint(person.held):
                person.held = [entry for entry in person.held if entry not in taken]
