"""The answers of a review in memory: what counts now, who gave it, and what each person can take back."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sarb.labels import ABSENT, PRESENT, UNKNOWN

#: what may be answered -> the label it becomes
ANSWERS = {"yes": PRESENT, "no": ABSENT, "skip": UNKNOWN}
#: in place of an answer: there is none
OPEN = "open"


class Step(NamedTuple):
    """What somebody answered, and what the answer was before, by whom."""

    entry: int
    after: str
    before: str
    author: str | None


class Answers:
    """The answers to entries (flat indices row · C + column) of a label matrix (N, C).

    Attributes:
        given: entry -> answer.
        answered: (N · C,) whether there is an answer.
        counts: answer -> (C,) how many.
    """

    def __init__(self, rows: int, columns: int) -> None:
        self.given: dict[int, str] = {}
        self.answered = np.zeros(rows * columns, bool)
        self.counts = {answer: np.zeros(columns, np.int64) for answer in ANSWERS}
        self._columns = columns
        self._author: dict[int, str | None] = {}
        self._steps: dict[str, list[Step]] = {}  # of each person, the last step last

    def apply(self, entry: int, answer: str, who: str, action: str) -> None:
        """Change the state; the same for a new answer and for one read from the journal.

        Args:
            entry: the label.
            answer: a key of ``ANSWERS``, or ``OPEN``.
            who: whose step it is.
            action: ``"answer"``, ``"undo"`` or ``"reopen"``.
        """
        author: str | None = who
        before = self.given.get(entry, OPEN)
        if action == "answer":
            self._steps.setdefault(who, []).append(Step(entry, answer, before, self._author.get(entry)))
        elif action == "undo" and (step := self.last_step(who)) is not None:
            author = step.author
            self._steps[who].remove(step)
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
        """Whether this is the answer that counts, and this person gave it."""
        return self.given.get(entry) == answer and self._author.get(entry) == who

    def last_step(self, who: str) -> Step | None:
        """Return this person's last step that still stands: not answered by others since, nor asked again."""
        for step in reversed(self._steps.get(who, [])):
            if self.is_from(who, step.entry, step.after):
                return step
        return None

    def fill(self, values: NDArray[np.int8]) -> NDArray[np.int8]:
        """Return labels (N, C) with all answers in them."""
        filled = values.copy()
        for entry, answer in self.given.items():
            filled.flat[entry] = ANSWERS[answer]
        return filled
