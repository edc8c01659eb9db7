"""``sarb data pull label-studio``: the answers of a project go into a copy of the table they are about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from sarb.data import Data, load
from sarb.data.writers.rewrite import Reading, rewrite
from sarb.data.writers.write import target
from sarb.errors import DataError, check_choice
from sarb.files import write_rows
from sarb.label_studio.answers import answers_of, combined, row_of
from sarb.label_studio.config import read_config
from sarb.label_studio.host import Host
from sarb.label_studio.tasks import image_names
from sarb.labels import ABSENT, PRESENT, UNKNOWN, LabelMatrix, word_of

RULES = ("all", "any")


@dataclass
class Pulled:
    """What a pull found.

    Attributes:
        tasks: how many tasks have an answer that counts.
        new: label -> how many unknown entries the answers made known.
        conflicts: answers that contradict a known label: file name, category, given, answer.
        disputed: entries for which people gave different answers.
        test: answered tasks that show a test image.
        strangers: tasks whose image is not in the table.
        reading: how to read the file.
    """

    out: Path
    tasks: int = 0
    new: dict[int, int] = field(default_factory=lambda: {PRESENT: 0, ABSENT: 0})
    conflicts: list[dict[str, str]] = field(default_factory=list)
    disputed: int = 0
    test: int = 0
    strangers: int = 0
    unknown: int = 0
    reading: Reading = field(default_factory=lambda: Reading("", {}))

    def __str__(self) -> str:
        parts = [
            f"{self.tasks:,} tasks answered",
            f"{self.new[PRESENT]:,} unknown labels are now present and {self.new[ABSENT]:,} absent",
            f"{self.unknown:,} stay unknown",
        ]
        if self.disputed:
            parts.append(f"people disagree on {self.disputed:,}")
        if self.conflicts:
            parts.append(f"{len(self.conflicts):,} answers contradict a known label")
        if self.strangers:
            parts.append(f"{self.strangers:,} tasks show an image that is not in the table")
        return f"{self.out}: {', '.join(parts)}"


def pull_session(
    source: str,
    host: Host,
    project: int,
    out: Path,
    *,
    options: Mapping[str, Any] | None = None,
    annotators: str = "all",
    replace_known: bool = False,
    overwrite: bool = False,
) -> Pulled:
    """Write a copy of the table with the project's answers; a question that nobody answered stays as it was.

    Args:
        source: the labels; never changed.
        host: the server.
        project: its number.
        out: file to write, in the form of the source. ``OUT.conflicts.csv`` beside it lists the answers that
            contradict a known label.
        options: of the source.
        annotators: where one person said yes and another no, ``all`` leaves the label unknown and ``any``
            makes it present.
        replace_known: let an answer replace the known label it contradicts.
        overwrite: replace an existing file.
    """
    check_choice("value of --annotators:", annotators, RULES)
    target(out, None)  # a wrong name is an error before anything is downloaded
    if out.exists() and not overwrite:
        raise DataError(f"{out}: exists already; add --overwrite to replace it")
    data = load(source, **(options or {}))
    with host.errors():
        client = host.client()
        image_key = read_config(client.projects.get(id=project).label_config).image_key
        tasks = client.projects.exports.as_json(project)
    pulled = Pulled(out)
    answered = _answered(data, tasks, image_key, annotators, replace_known, pulled)
    pulled.reading = rewrite(answered, out, overwrite=overwrite)
    file = conflicts_file(out)
    if pulled.conflicts:
        write_rows(file, pulled.conflicts)
    else:
        file.unlink(missing_ok=True)
    return pulled


def conflicts_file(out: Path) -> Path:
    """Return where contradicted labels are listed: ``OUT.conflicts.csv``."""
    return out.with_name(out.name + ".conflicts.csv")


def _answered(
    data: Data,
    tasks: Sequence[Mapping[str, Any]],
    image_key: str,
    annotators: str,
    replace_known: bool,
    pulled: Pulled,
) -> Data:
    """Return the data with the answers filled in."""
    parts = list(data.splits.items())
    names = [(split, row, name) for split, own in image_names(data).items() for row, name in enumerate(own)]
    places = {name: place for place, (_, _, name) in enumerate(names)}
    columns = {name: column for column, name in enumerate(data.categories)}
    values = {split: part.labels.values.copy() for split, part in parts}
    for place, given_by_people in _by_image(tasks, places, image_key, pulled).items():
        split, row, name = names[place]
        answers, disputed = combined([answers_of(annotation) for annotation in given_by_people], annotators)
        answers = {category: label for category, label in answers.items() if category in columns}
        pulled.tasks += bool(answers)
        pulled.test += bool(answers) and split == "test"
        pulled.disputed += len(disputed & columns.keys())
        for category, label in answers.items():
            given = int(values[split][row, columns[category]])
            if label in (UNKNOWN, given):
                continue
            if given == UNKNOWN:
                pulled.new[label] += 1
            else:
                pulled.conflicts.append(
                    {"file_name": name, "label": category, "given": word_of(given), "answer": word_of(label)}
                )
            if given == UNKNOWN or replace_known:
                values[split][row, columns[category]] = label
    pulled.unknown = sum(int((matrix == UNKNOWN).sum()) for matrix in values.values())
    filled: dict[str, Any] = {
        split: replace(part, labels=LabelMatrix(values[split], data.categories, part.labels.paths))
        for split, part in parts
    }
    return replace(data, **filled)


def _by_image(
    tasks: Sequence[Mapping[str, Any]], places: Mapping[str, int], image_key: str, pulled: Pulled
) -> dict[int, list[Mapping[str, Any]]]:
    """Return the annotations of each image of the table; an image may be in several tasks."""
    found: dict[int, list[Mapping[str, Any]]] = {}
    for task in tasks:
        place = row_of(task.get("data") or {}, places, image_key)
        if place is None:
            pulled.strangers += 1
        elif annotations := task.get("annotations"):
            found.setdefault(place, []).extend(annotations)
    return found
