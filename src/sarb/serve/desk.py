"""The review desk: hands out questions, saves answers, takes them back, and never loses one."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sarb.data.writers.rewrite import reading, written_files
from sarb.errors import SarbError, unknown_name
from sarb.serve.answers import ANSWERS, OPEN, Answers
from sarb.serve.handout import Handout
from sarb.serve.journal import Journal, journal_of
from sarb.serve.questions import Question, Questions
from sarb.serve.resume import Resumed, resume
from sarb.serve.saver import Saver
from sarb.serve.table import Table


class Desk:
    """The state of a review. All public methods may be called from any thread.

    Each person (each browser tab) has a name. A question handed to one person is not handed to another,
    unless the first one falls silent (:mod:`sarb.serve.leases`). If two people answer the same question
    anyway, the last answer counts and the journal keeps both. People can take back only their own answers.

    Args:
        table: the labels.
        questions: what to ask about them.
        out: the CSV; the journal is next to it.
        clock: seconds, for the leases.
        ask: the split whose photos are asked about; a journal belongs to one split.
        assist: the model's opinion is shown with every question; the journal says so.
        run: the folder of the model that asks; the journal says so.

    Attributes:
        reading: how ``sarb.load`` reads the CSV.
        resumed: what the journal held at the start.
        saver: writes the CSV.
    """

    def __init__(
        self,
        table: Table,
        questions: Questions,
        out: Path,
        clock: Callable[[], float] = time.monotonic,
        *,
        ask: str = "train",
        assist: bool = False,
        run: Path | None = None,
    ) -> None:
        self.table = table
        self.questions = questions
        self.out = out
        self.ask = ask
        self.assist = assist
        self._facts = {"ask": ask, **({} if run is None else {"run": str(run.resolve())})}
        self.categories = table.labels.categories
        self.reading = reading(table.data, out)
        self._answers = Answers(*table.labels.shape)
        self._handout = Handout(questions, self._answers, clock)
        self._lock = threading.Lock()
        self._created = [file for file in self._files() if not file.exists()]
        self._journal = self._open_journal()
        try:
            self.resumed = self._resume()
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

    def _resume(self) -> Resumed:
        """Resume from the journal, unless the CSV holds labels that the journal does not explain."""
        labels = self.table.labels
        found = resume(self._journal, self.questions, self._answers, labels.values, self.ask)
        if self.out.exists():
            self.table.check_out(self.out, found.explained.reshape(*labels.shape, 3))
        return found

    def _record(
        self, changes: Sequence[tuple[int, str]], who: str, action: str, page: str = "", **facts: Any
    ) -> None:
        """Write (entry, answer) pairs to disk first, then to memory."""
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        shared = {"kind": action, "who": who, "time": now, **self._facts, **facts}
        if page:
            shared["page"] = page
        records = []
        for entry, answer in changes:
            asked = self.questions[entry]
            records.append({**shared, "answer": answer, "file_name": asked.file_name, "label": asked.label})
        self._journal.append(records)
        for entry, answer in changes:
            self._answers.apply(entry, answer, who, action, page)
        self.saver.touch()

    def next(
        self,
        who: str,
        category: str | None = None,
        count: int | None = None,
        order: str | None = None,
        client: str = "",
    ) -> list[Question]:
        """Hand out up to ``count`` questions: those this person holds, then the first free ones.

        Args:
            who: the person.
            category: one category, or None for all.
            count: how many; None for as many as last time.
            order: for the wall, ``"likely"`` or ``"doubtful"`` questions of a category first.
            client: where this person asks from; what one client holds is bounded.
        """
        with self._lock:
            entries = self._handout.next(who, self.questions.column(category), count, order, client)
            return [self.questions[entry] for entry in entries]

    def ahead(self, who: str, category: str | None, count: int, order: str | None = None) -> list[int]:
        """Return the numbers of up to ``count`` photos that probably come next; nobody holds them."""
        with self._lock:
            entries = self._handout.ahead(who, self.questions.column(category), count, order)
            return [self.questions[entry].image for entry in entries]

    def answer(self, who: str, question: str, answer: str, *, assisted: bool = False) -> None:
        """Save an answer: yes, no or skip. Repeating it changes nothing.

        ``assisted``: this person had seen the model's opinion on the question.
        """
        self.answer_page(who, {question: answer}, assisted=assisted)

    def answer_page(
        self,
        who: str,
        answers: Mapping[str, str],
        *,
        page: str = "",
        order: str | None = None,
        assisted: bool = False,
    ) -> None:
        """Save the answers to several questions, all of them or none. Repeating them changes nothing.

        Args:
            who: the person.
            answers: id of a question -> yes, no or skip.
            page: a name for these answers, so that one undo takes all of them back.
            order: the order in which the page was handed out, as in :meth:`next`.
            assisted: this person had seen the model's opinion.
        """
        for answer in answers.values():
            if answer not in ANSWERS:
                raise SarbError(unknown_name("answer", answer, ANSWERS))
        with self._lock:
            entries = {self.questions.entry_with_id(ident): answer for ident, answer in answers.items()}
            new = [pair for pair in entries.items() if not self._answers.is_from(who, *pair)]
            if new:
                facts = {"order": order or self.questions.own_order, "assisted": assisted or self.assist}
                self._record(new, who, "answer", page, **facts)
                self._handout.leases.answered(who)

    def undo(self, who: str, question: str | None = None) -> list[Question]:
        """Take back this person's last answer, or the last page of answers, and return the questions.

        With the id of a ``question``, only if that was the last one, so that sending it twice takes back one
        answer.
        """
        with self._lock:
            steps = self._answers.last_steps(who)
            if not steps or question not in (None, self.questions[steps[-1].entry].id):
                return []
            self._record([(step.entry, step.before) for step in steps], who, "undo")
            self._handout.return_to(who, [step.entry for step in steps if step.before == OPEN])
            return [self.questions[step.entry] for step in steps]

    def reopen(self, who: str, category: str | None = None) -> int:
        """Ask all skipped questions again; return how many."""
        with self._lock:
            column = self.questions.column(category)
            skipped = [
                entry
                for entry, answer in self._answers.given.items()
                if answer == "skip" and self.questions.in_column(entry, column)
            ]
            if skipped:
                self._record([(entry, OPEN) for entry in skipped], who, "reopen")
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

    def values(self) -> NDArray[np.int8]:
        """Return the labels (N, C) with all answers filled in."""
        with self._lock:
            return self._answers.fill(self.table.labels.values)

    def _write(self) -> None:
        self.reading = self.table.write(self.values(), self.out)

    def close(self) -> None:
        """Write the CSV and close the journal; leave no files behind if nobody has answered anything."""
        try:
            self.saver.close()
        finally:
            unused = self.out in self._created and self._journal.empty
            self._journal.close()
        if unused:
            for file in self._created:
                file.unlink(missing_ok=True)
        self._created = []  # what is there from now on belongs to the next review

    def _files(self) -> list[Path]:
        """All files that a review writes."""
        return [*written_files(self.table.data, self.out), journal_of(self.out)]
