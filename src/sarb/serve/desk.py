"""The review desk: hands out questions, saves answers, takes them back, and never loses one."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sarb.errors import SarbError, unknown_name
from sarb.labels import UNKNOWN
from sarb.serve.answers import ANSWERS, OPEN, Answers
from sarb.serve.journal import Journal, journal_of
from sarb.serve.leases import Leases
from sarb.serve.questions import Question, Questions
from sarb.serve.saver import Saver
from sarb.serve.table import Table

#: how many questions to look at together when searching for free ones
BLOCK = 4096


class Desk:
    """The state of a review. All public methods may be called from any thread.

    Each person (each browser tab) has a name. A question handed to one person is not handed to another,
    unless the first one falls silent (:class:`Leases`). If two people answer the same question anyway, the
    last answer counts and the journal keeps both. People can take back only their own answers.

    Args:
        table: the labels.
        questions: what to ask about them.
        out: the CSV; the journal is next to it.
        clock: seconds, for the leases.

    Attributes:
        reading: options with which ``sarb.load`` reads the CSV.
        ignored: how many answers in the journal are about labels that are known or gone now.
        saver: writes the CSV.
    """

    def __init__(
        self,
        table: Table,
        questions: Questions,
        out: Path,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.table = table
        self.questions = questions
        self.out = out
        self.categories = table.labels.categories
        self.reading: dict[str, Any] = {}
        self.ignored = 0
        self._answers = Answers(*table.labels.shape)
        self._leases = Leases(clock)
        self._lock = threading.Lock()
        self._journal = self._open_journal()
        try:
            self._replay()
            self._write()  # now, so that a failure shows up before the first answer
        except BaseException:
            self._journal.close()
            raise
        self.saver = Saver(self._write)

    def _open_journal(self) -> Journal:
        path = journal_of(self.out)
        if self.out.exists() and not path.exists():
            raise SarbError(
                f"{self.out}: exists already and was not written by a review (there is no {path.name}); "
                "choose another --out"
            )
        return Journal(path)

    def _replay(self) -> None:
        """Resume from the journal, unless the CSV holds labels that the journal does not explain."""
        values = self.table.labels.values
        explained = np.zeros((values.size, 3), bool)
        explained[np.arange(values.size), values.ravel().astype(np.int64) + 1] = True
        for record in self._journal.read():
            entry = self.questions.entry_named(str(record.get("file_name")), str(record.get("label")))
            if entry is None:
                self.ignored += 1
                continue
            answer = record.get("answer")
            answer = answer if answer in ANSWERS else OPEN
            self._answers.apply(entry, answer, str(record.get("who")), str(record.get("kind")))
            explained[entry, ANSWERS.get(answer, UNKNOWN) + 1] = True
        if self.out.exists():
            self.table.check_out(self.out, explained.reshape(*values.shape, 3))

    def _record(self, entries: Sequence[int], answer: str, who: str, action: str) -> None:
        """Write to disk first, then to memory."""
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        shared = {"kind": action, "answer": answer, "who": who, "time": now}
        questions = [self.questions[entry] for entry in entries]
        self._journal.append(
            [{**shared, "file_name": asked.file_name, "label": asked.label} for asked in questions]
        )
        for entry in entries:
            self._answers.apply(entry, answer, who, action)
        self.saver.touch()

    def next(self, who: str, category: str | None = None, count: int = 4) -> list[Question]:
        """Hand out up to ``count`` questions: those this person holds, then the most valuable free ones."""
        with self._lock:
            column = self.questions.column(category)
            held = [
                entry
                for entry in self._leases.of(who)
                if not self._answers.answered[entry] and self._in_column(entry, column)
            ]
            held = held[:count]
            taken = self._leases.others(who).union(held)
            held += self._free(column, taken, count - len(held))
            self._leases.give(who, held)
            return [self.questions[entry] for entry in held]

    def _free(self, column: int | None, taken: set[int], count: int) -> list[int]:
        """Return the first ``count`` entries that are neither answered nor taken."""
        entries = self.questions.in_column(column)
        free: list[int] = []
        for start in range(0, len(entries), BLOCK):
            if len(free) >= count:
                break
            block = entries[start : start + BLOCK]
            unanswered = block[~self._answers.answered[block]].tolist()
            free += [entry for entry in unanswered if entry not in taken]
        return free[:count]

    def answer(self, who: str, question: str, answer: str) -> None:
        """Save an answer: yes, no or skip. Repeating it changes nothing."""
        if answer not in ANSWERS:
            raise SarbError(unknown_name("answer", answer, ANSWERS))
        with self._lock:
            entry = self.questions.entry_with_id(question)
            if not self._answers.is_from(who, entry, answer):
                self._record([entry], answer, who, "answer")

    def undo(self, who: str, question: str | None = None) -> Question | None:
        """Take back this person's last answer and return its question; None if there is nothing to undo.

        With the id of a ``question``, only if that was the last one, so that sending it twice takes back one
        answer.
        """
        with self._lock:
            step = self._answers.last_step(who)
            if step is None:
                return None
            undone = self.questions[step.entry]
            if question not in (None, undone.id):
                return None
            self._record([step.entry], step.before, who, "undo")
            if step.before == OPEN:
                others = [entry for entry in self._leases.of(who) if entry != step.entry]
                self._leases.give(who, [step.entry, *others])
            return undone

    def reopen(self, who: str, category: str | None = None) -> int:
        """Ask all skipped questions again; return how many."""
        with self._lock:
            column = self.questions.column(category)
            skipped = [
                entry
                for entry, answer in self._answers.given.items()
                if answer == "skip" and self._in_column(entry, column)
            ]
            if skipped:
                self._record(skipped, OPEN, who, "reopen")
            return len(skipped)

    def progress(self, who: str = "", category: str | None = None) -> dict[str, Any]:
        """Return how many questions have which answer, in one category or in all, and how saving is going."""
        with self._lock:
            column = self.questions.column(category)
            chosen = slice(None) if column is None else slice(column, column + 1)
            questions = int(self.questions.counts[chosen].sum())
            counts = {answer: int(count[chosen].sum()) for answer, count in self._answers.counts.items()}
            last = self._answers.last_step(who)
            return {
                "questions": questions,
                "open": questions - sum(counts.values()),
                **counts,
                "undo": None if last is None else self.questions[last.entry].id,
                "out": str(self.out),
                "problem": self.saver.problem,
            }

    def open_by_category(self) -> list[dict[str, Any]]:
        """Return how many questions each category has, and how many are open."""
        with self._lock:
            total = self.questions.counts
            still_open = total - sum(self._answers.counts.values())
            return [
                {"label": name, "questions": int(total[column]), "open": int(still_open[column])}
                for column, name in enumerate(self.categories)
            ]

    def _in_column(self, entry: int, column: int | None) -> bool:
        return column is None or entry % len(self.categories) == column

    def values(self) -> NDArray[np.int8]:
        """Return the labels (N, C) with all answers filled in."""
        with self._lock:
            return self._answers.fill(self.table.labels.values)

    def _write(self) -> None:
        self.reading = self.table.write(self.values(), self.out)

    def close(self) -> None:
        """Write the CSV and close the journal."""
        try:
            self.saver.close()
        finally:
            self._journal.close()
