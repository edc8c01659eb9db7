"""The answers of a review, in memory: what counts now, who said so, and what each person can take back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sarb.labels import ABSENT, PRESENT, UNKNOWN

#: possible answers -> the label each becomes
ANSWERS = {"yes": PRESENT, "no": ABSENT, "skip": UNKNOWN}
#: instead of an answer: not answered yet
OPEN = "open"


class Step(NamedTuple):
    """One person's answer, and the answer it replaced with its author.

    ``page`` names the page of the wall that it was part of; "" for a single answer.
    """

    entry: int
    after: str
    before: str
    author: str | None
    page: str


class Answers:
    """The answers to entries (flat indices row · C + column) of a label matrix (N, C).

    Attributes:
        given: entry -> answer.
        answered: (N · C,) whether there is an answer.
        counts: answer -> (C,) how many there are in each category.
    """

    def __init__(self, rows: int, columns: int) -> None:
        self.given: dict[int, str] = {}
        self.answered = np.zeros(rows * columns, bool)
        self.counts = {answer: np.zeros(columns, np.int64) for answer in ANSWERS}
        self._columns = columns
        self._author: dict[int, str | None] = {}
        self._steps: dict[str, list[Step]] = {}  # of each person, the last step last

    def apply(self, entry: int, answer: str, who: str, action: str, page: str = "") -> None:
        """Change one answer; new answers and those read from the journal take the same path.

        Args:
            entry: the label.
            answer: a key of ``ANSWERS``, or ``OPEN``.
            who: the person.
            action: ``"answer"``, ``"undo"`` or ``"reopen"``.
            page: the page that the answer is part of, if any.
        """
        author: str | None = who
        before = self.given.get(entry, OPEN)
        if action == "answer":
            given = Step(entry, answer, before, self._author.get(entry), page)
            self._steps.setdefault(who, []).append(given)
        elif action == "undo":
            undone = next((step for step in self._counting(who) if step.entry == entry), None)
            if undone is not None:
                author = undone.author
                self._steps[who].remove(undone)
        column = entry % self._columns
        if before in ANSWERS:
            self.counts[before][column] -= 1
        if answer in ANSWERS:
            self.given[entry] = answer
            self.counts[answer][column] += 1
        else:
            self.given.pop(entry, None)
        self._author[entry] = author
        self.answered[entry] = answer in ANSWERS

    def is_from(self, who: str, entry: int, answer: str) -> bool:
        """Return whether this is the current answer and this person gave it."""
        return self.given.get(entry) == answer and self._author.get(entry) == who

    def last_step(self, who: str) -> Step | None:
        """Return this person's last answer that still counts: neither replaced by others nor reopened."""
        return next(self._counting(who), None)

    def last_steps(self, who: str) -> list[Step]:
        """Return what an undo takes back: the last answer, or with it all others of its page that count."""
        last = self.last_step(who)
        if last is None or not last.page:
            return [] if last is None else [last]
        latest = {step.entry: step for step in self._counting(who) if step.page == last.page}
        return list(latest.values())[::-1]

    def _counting(self, who: str) -> Iterator[Step]:
        """Yield this person's answers that still count, the last one first."""
        for step in reversed(self._steps.get(who, [])):
            if self.is_from(who, step.entry, step.after):
                yield step

    def fill(self, values: NDArray[np.int8]) -> NDArray[np.int8]:
        """Return a copy of the labels (N, C) with all answers filled in."""
        filled = values.copy()
        for entry, answer in self.given.items():
            filled.flat[entry] = ANSWERS[answer]
        return filled
