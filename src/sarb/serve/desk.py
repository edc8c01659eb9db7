"""The review desk: hands out questions, takes answers, takes them back, and never loses one."""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sarb.errors import SarbError, unknown_name
from sarb.labels import ABSENT, PRESENT, UNKNOWN
from sarb.serve.journal import Journal, journal_of
from sarb.serve.leases import Leases
from sarb.serve.saver import Saver
from sarb.serve.table import Table

#: what may be answered -> the label it becomes
ANSWERS = {"yes": PRESENT, "no": ABSENT, "skip": UNKNOWN}
OPEN = "open"
#: questions that are looked at together when free ones are sought
BLOCK = 4096


class StaleError(SarbError):
    """A question of other labels than those that are served now."""


@dataclass(frozen=True)
class Question:
    """One unknown label. ``id`` names the same label after a restart; ``image`` is its row."""

    id: str
    image: int
    file_name: str
    label: str
    category: int
    probability: float
    reason: str = ""


class Step(NamedTuple):
    """What somebody did at a place, and what stood there before, by whom."""

    place: int
    after: str
    before: str
    author: str | None


class Desk:
    """The state of a review. All public methods may be called from any thread.

    Each person (each tab) has a name of its own. What is handed to one is not handed to another until it is
    answered or nothing was heard for a while (:class:`Leases`). If two answer the same question all the
    same, the last answer counts; the journal keeps both. One can take back only what one has answered
    oneself.

    Args:
        table: the labels.
        places: flat places row · C + column of the questions, the most valuable first.
        probabilities: (N, C).
        out: the CSV; the journal lies beside it.
        reasons: place -> why it is asked.
        clock: seconds, for the leases.
    """

    def __init__(
        self,
        table: Table,
        places: NDArray[np.int64],
        probabilities: NDArray[np.float64],
        out: Path,
        reasons: Mapping[int, str] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._reasons = reasons or {}
        self.table = table
        self.places = places
        self.probabilities = probabilities
        self.out = out
        self.categories = table.labels.categories
        self.reading: dict[str, Any] = {}
        self.ignored = 0
        self._rows = {name: row for row, name in enumerate(table.labels.paths)}
        self._columns = {name: column for column, name in enumerate(self.categories)}
        self._given: dict[int, str] = {}  # place -> answer
        self._author: dict[int, str | None] = {}
        self._past: dict[str, list[Step]] = {}  # the last step last
        self._answered = np.zeros(table.labels.values.size, bool)
        self._totals = np.bincount(places % len(self.categories), minlength=len(self.categories))
        self._counts = {answer: np.zeros(len(self.categories), np.int64) for answer in ANSWERS}
        self._lines: dict[int, NDArray[np.int64]] = {}
        self._leases = Leases(clock)
        self._lock = threading.Lock()
        self._start()

    def _start(self) -> None:
        """Go on where the journal ends, and write the CSV once, so that what hinders it is known before any
        answer.
        """
        path = journal_of(self.out)
        if self.out.exists() and not path.exists():
            raise SarbError(
                f"{self.out}: exists already and no review wrote it (there is no {path.name}); choose another --out"
            )
        self._journal = Journal(path)
        try:
            explained = np.zeros((self._answered.size, 3), bool)
            explained[
                np.arange(self._answered.size), self.table.labels.values.ravel().astype(np.int64) + 1
            ] = True
            for line in self._journal.read():
                place = self._replay(line)
                if place is not None:
                    explained[place, ANSWERS.get(line["answer"], UNKNOWN) + 1] = True
            if self.out.exists():
                self.table.check_out(self.out, explained.reshape(*self.table.labels.shape, 3))
            self._write()
        except BaseException:
            self._journal.close()
            raise
        self.saver = Saver(self._write)

    def _replay(self, line: dict[str, Any]) -> int | None:
        """Apply a line of the journal; return its place, None if the labels have no room for it any more."""
        row = self._rows.get(str(line.get("file_name")))
        column = self._columns.get(str(line.get("label")))
        if row is None or column is None or self.table.labels.values[row, column] != UNKNOWN:
            self.ignored += 1
            return None
        place = row * len(self.categories) + column
        answer = line.get("answer")
        self._apply(place, answer if answer in ANSWERS else OPEN, str(line.get("who")), str(line.get("kind")))
        return place

    def _apply(self, place: int, answer: str, who: str, kind: str) -> None:
        """Change the state; the same for a new answer and for one read from the journal."""
        author: str | None = who
        before = self._given.get(place, OPEN)
        column = place % len(self.categories)
        if kind == "answer":
            self._past.setdefault(who, []).append(Step(place, answer, before, self._author.get(place)))
        elif kind == "undo" and (step := self._last(who)) is not None:
            author = step.author
            self._past[who].remove(step)
        if before in ANSWERS:
            self._counts[before][column] -= 1
        if answer in ANSWERS:
            self._given[place] = answer
            self._counts[answer][column] += 1
        else:
            self._given.pop(place, None)
        self._author[place] = author
        self._answered[place] = answer in ANSWERS

    def _last(self, who: str) -> Step | None:
        """The last step of this person that still stands: nobody else has answered since, nor was it asked
        again.
        """
        for step in reversed(self._past.get(who, [])):
            if (self._given.get(step.place), self._author.get(step.place)) == (step.after, who):
                return step
        return None

    def _record(self, places: Sequence[int], answer: str, who: str, kind: str) -> None:
        """To the disk first, then into memory."""
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        head = {"kind": kind, "answer": answer, "who": who, "time": now}
        questions = [self._question(place) for place in places]
        self._journal.append(
            [{**head, "file_name": each.file_name, "label": each.label} for each in questions]
        )
        for place in places:
            self._apply(place, answer, who, kind)
        self.saver.touch()

    def next(self, who: str, category: str | None = None, count: int = 4) -> list[Question]:
        """Hand out up to ``count`` questions: those this person has already, then the most valuable free
        ones.
        """
        with self._lock:
            column = self._column(category)
            mine = [
                place
                for place in self._leases.of(who)
                if not self._answered[place] and self._in(place, column)
            ]
            mine = mine[:count]
            taken = self._leases.others(who).union(mine)
            line = self._line(column)
            for start in range(0, len(line), BLOCK):
                if len(mine) >= count:
                    break
                block = line[start : start + BLOCK]
                free = [place for place in block[~self._answered[block]].tolist() if place not in taken]
                mine += free[: count - len(mine)]
            self._leases.give(who, mine)
            return [self._question(place) for place in mine]

    def answer(self, who: str, question: str, answer: str) -> None:
        """Save an answer: yes, no or skip. The same once more changes nothing."""
        if answer not in ANSWERS:
            raise SarbError(unknown_name("answer", answer, ANSWERS))
        with self._lock:
            place = self._place(question)
            if (self._given.get(place), self._author.get(place)) != (answer, who):
                self._record([place], answer, who, "answer")

    def undo(self, who: str, question: str | None = None) -> Question | None:
        """Take back this person's last answer and hand the question out again; None if there is none.

        With the id of a ``question``, only if that is the last one: asking twice takes back one answer.
        """
        with self._lock:
            step = self._last(who)
            if step is None or question not in (None, self._question(step.place).id):
                return None
            self._record([step.place], step.before, who, "undo")
            if step.before == OPEN:
                self._leases.give(
                    who, [step.place, *(place for place in self._leases.of(who) if place != step.place)]
                )
            return self._question(step.place)

    def reopen(self, who: str, category: str | None = None) -> int:
        """Ask all skipped questions again; return how many."""
        with self._lock:
            column = self._column(category)
            places = [
                place for place, given in self._given.items() if given == "skip" and self._in(place, column)
            ]
            if places:
                self._record(places, OPEN, who, "reopen")
            return len(places)

    def progress(self, who: str = "", category: str | None = None) -> dict[str, Any]:
        """Counts of the questions (of one category), and how saving goes."""
        with self._lock:
            column = self._column(category)
            last = self._last(who)
            chosen = slice(None) if column is None else slice(column, column + 1)
            questions = int(self._totals[chosen].sum())
            counts = {answer: int(count[chosen].sum()) for answer, count in self._counts.items()}
            return {
                "questions": questions,
                "open": questions - sum(counts.values()),
                **counts,
                "undo": None if last is None else self._question(last.place).id,
                "out": str(self.out),
                "problem": self.saver.problem,
            }

    def open_by_category(self) -> list[dict[str, Any]]:
        """How many questions each category has, and how many are open."""
        with self._lock:
            left = self._totals - sum(self._counts.values())
            return [
                {"label": name, "questions": int(total), "open": int(rest)}
                for name, total, rest in zip(self.categories, self._totals, left, strict=True)
            ]

    def _column(self, category: str | None) -> int | None:
        if category is not None and category not in self._columns:
            raise SarbError(unknown_name("category", category, self.categories))
        return None if category is None else self._columns[category]

    def _in(self, place: int, column: int | None) -> bool:
        return column is None or place % len(self.categories) == column

    def _line(self, column: int | None) -> NDArray[np.int64]:
        """The questions of a category, the most valuable first; remembered, since it is asked with every
        answer.
        """
        if column is None:
            return self.places
        if column not in self._lines:
            self._lines[column] = self.places[self.places % len(self.categories) == column]
        return self._lines[column]

    def _question(self, place: int) -> Question:
        row, column = divmod(place, len(self.categories))
        name = self.table.labels.paths[row]
        label = self.categories[column]
        check = hashlib.sha256(f"{name}\0{label}".encode()).hexdigest()[:10]
        chance = float(self.probabilities[row, column])
        reason = self._reasons.get(place, "")
        return Question(f"{row}-{column}-{check}", row, name, label, column, chance, reason)

    def _place(self, ident: str) -> int:
        """The place of a question, if it still is the same label and nobody knew it."""
        parts = ident.split("-")
        if len(parts) == 3 and all(part.isascii() and part.isdecimal() for part in parts[:2]):
            row = int(parts[0])
            column = int(parts[1])
            if row < len(self._rows) and column < len(self.categories):
                place = row * len(self.categories) + column
                if self._question(place).id == ident and self.table.labels.values[row, column] == UNKNOWN:
                    return place
        raise StaleError("this question is not part of the labels that are served now; reload the page")

    def values(self) -> NDArray[np.int8]:
        """The labels (N, C) with all answers."""
        with self._lock:
            values = self.table.labels.values.copy()
            for place, given in self._given.items():
                values.flat[place] = ANSWERS[given]
            return values

    def _write(self) -> None:
        self.reading = self.table.write(self.values(), self.out)

    def close(self) -> None:
        """Write the CSV and let go of the journal."""
        try:
            self.saver.close()
        finally:
            self._journal.close()
