"""What ``sarb evaluate`` says about a table that a review has written: how many labels it scores are answers."""

from __future__ import annotations

from sarb.data import Dataset
from sarb.labels import ABSENT, PRESENT
from sarb.serve.journal import journal_of, read_journal

LABELS = {"yes": PRESENT, "no": ABSENT}


def audit_note(data: Dataset) -> str:
    """Return one line if labels of these images come from a review, else "".

    The journal beside the table says so. An answer was helped by a model if its order of asking came from the
    model, or if its opinion was shown first; a journal that does not say was written when both were usual.
    """
    if data.source is None or not journal_of(data.source).is_file():
        return ""
    journal = journal_of(data.source)
    helped: dict[tuple[str, str], bool] = {}
    answers: dict[tuple[str, str], str] = {}
    for record in read_journal(journal):
        place = (str(record.get("file_name")), str(record.get("label")))
        answers[place] = str(record.get("answer"))
        if record.get("kind") == "answer":
            helped[place] = record.get("order") != "random" or record.get("assisted") is not False
    rows = _rows(data)
    columns = {name: column for column, name in enumerate(data.categories)}
    counted = [
        place
        for place, answer in answers.items()
        if place[0] in rows
        and place[1] in columns
        and data.labels.values[rows[place[0]], columns[place[1]]] == LABELS.get(answer)
    ]
    if not counted:
        return ""
    with_model = sum(helped.get(place, True) for place in counted)
    return (
        f"labels of these images that were answered in a review ({journal.name}): {len(counted):,}, of which "
        f"{with_model:,} chosen by a model or with its opinion in view; compare models only on the same labels"
    )


def _rows(data: Dataset) -> dict[str, int]:
    """Return the row of each image by its name, and by every unambiguous end of its path.

    A table that was written to another folder names its images from there, and the journal as the source does.
    """
    rows: dict[str, int] = {}
    repeated: set[str] = set()
    for row, path in enumerate(data.paths):
        parts = path.resolve().parts
        for end in ("/".join(parts[start:]) for start in range(1, len(parts))):
            if rows.setdefault(end, row) != row:
                repeated.add(end)
    for end in repeated:
        del rows[end]
    rows |= {str(path): row for row, path in enumerate(data.paths)}
    return rows | {name: row for row, name in enumerate(data.labels.paths)}
