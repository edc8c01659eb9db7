"""Resume a review: put the answers of its journal into memory, and note which labels they explain."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sarb.errors import SarbError
from sarb.labels import UNKNOWN
from sarb.serve.answers import ANSWERS, OPEN, Answers
from sarb.serve.journal import Journal
from sarb.serve.questions import Questions


@dataclass
class Resumed:
    """What a journal holds besides the answers that count.

    Attributes:
        explained: (N · C, 3) whether absent, unknown, present comes from the source or from any answer so far.
        ignored: how many answers are about labels that are known or gone now.
        elsewhere: how many are about photos of another split, from before a journal belonged to one split.
    """

    explained: NDArray[np.bool_]
    ignored: int = 0
    elsewhere: int = 0


def resume(
    journal: Journal, questions: Questions, answers: Answers, values: NDArray[np.int8], ask: str
) -> Resumed:
    """Apply a journal's records to ``answers``.

    Args:
        journal: the journal.
        questions: what is asked now.
        answers: where the answers go.
        values: (N, C), the labels of the source.
        ask: the split that is asked about.

    Raises:
        SarbError: the journal belongs to another split.
    """
    explained = np.zeros((values.size, 3), bool)
    explained[np.arange(values.size), values.ravel().astype(np.int64) + 1] = True
    found = Resumed(explained)
    for record in journal.read():
        _check_split(journal, record, ask)
        entry = questions.entry_named(str(record.get("file_name")), str(record.get("label")))
        if entry is None:
            found.ignored += 1
            continue
        answer = record.get("answer")
        answer = answer if answer in ANSWERS else OPEN
        explained[entry, ANSWERS.get(answer, UNKNOWN) + 1] = True
        if not questions.asks_about(entry):
            found.elsewhere += 1
            continue
        who, kind, page = (str(record.get(key, "")) for key in ("who", "kind", "page"))
        answers.apply(entry, answer, who, kind, page)
    return found


def _check_split(journal: Journal, record: Mapping[str, Any], ask: str) -> None:
    asked = record.get("ask", ask)
    if asked != ask:
        raise SarbError(
            f"{journal.path}: holds answers about {asked} photos, which are kept apart from those about "
            f"{ask} photos; choose another --out"
        )
