"""What annotations say about each category: yes, no, or nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sarb.data.readers.label_studio_names import YES_NO, category_name, local_name
from sarb.label_studio.config import IMAGE
from sarb.label_studio.tasks import FILE_NAME
from sarb.labels import PRESENT, UNKNOWN


def answers_of(annotation: Mapping[str, Any]) -> dict[str, int]:
    """Return category -> present or absent for the questions that an annotation answers.

    A cancelled annotation answers none, and an untouched question is not in it.
    """
    answers: dict[str, int] = {}
    results = annotation.get("result")
    if annotation.get("was_cancelled") or not isinstance(results, list):
        return answers
    for result in results:
        value = result.get("value") if isinstance(result, Mapping) else None
        chosen = value.get("choices") if isinstance(value, Mapping) else None
        if not isinstance(chosen, list) or len(chosen) != 1:
            continue
        label = YES_NO.get(str(chosen[0]).strip().lower())
        if label is not None:
            answers[category_name(str(result.get("from_name", "")))] = label
    return answers


def combined(answers: Sequence[Mapping[str, int]], rule: str = "all") -> tuple[dict[str, int], set[str]]:
    """Return category -> label of several annotations together, and the categories on which they disagree.

    Args:
        answers: of each annotation.
        rule: ``all``: unknown where yes and no were said. ``any``: present where yes was said.
    """
    said: dict[str, set[int]] = {}
    for answer in answers:
        for category, label in answer.items():
            said.setdefault(category, set()).add(label)
    disputed = {category for category, labels in said.items() if len(labels) > 1}
    settled = PRESENT if rule == "any" else UNKNOWN
    return {
        category: settled if category in disputed else next(iter(labels)) for category, labels in said.items()
    }, disputed


def row_of(data: Mapping[str, Any], rows: Mapping[str, int], image_key: str = IMAGE) -> int | None:
    """Return the row of a task's image in the user's table: by its name there, or by the file it shows.

    Args:
        data: the task's data.
        rows: image name -> row.
        image_key: key of the image in the data.
    """
    name = data.get(FILE_NAME)
    if isinstance(name, str) and name in rows:
        return rows[name]
    image = data.get(image_key)
    if not isinstance(image, str) or image.startswith("data:"):
        return None
    return rows.get(local_name(image))
