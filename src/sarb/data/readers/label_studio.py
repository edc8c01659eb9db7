"""Label Studio: the JSON export, an array of tasks whose annotations hold choices."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from sarb.data.assemble import assemble, declared_names
from sarb.data.check.problems import Problems, fault
from sarb.data.dataset import Data
from sarb.data.parse.facts import Facts
from sarb.data.parse.stream import located_elements
from sarb.data.parse.unlisted import check_unlisted, rest_label
from sarb.data.readers.label_studio_names import local_name, looks_like_image, places
from sarb.errors import check_choice, did_you_mean, unknown_name
from sarb.labels import PRESENT, UNKNOWN

AGAIN = "export it again from Label Studio as JSON"


def load_label_studio(
    path: Path,
    *,
    unlisted: str | None = None,
    annotators: str | None = None,
    control: str | None = None,
    image_key: str | None = None,
    categories: str | None = None,
    root: Path | None = None,
    check_files: bool = True,
) -> Data:
    """Read Label Studio's JSON export: a chosen category is present, the rest by ``unlisted``.

    A task that was skipped (every annotation cancelled) or not annotated is unknown as a whole; a cancelled
    annotation beside others says nothing. Predictions are not knowledge and are ignored. A choice within a
    region counts for the image. Of nested choices (a list from parent to leaf) the leaf is the category.
    Categories are in alphabetical order, since the export does not say which could have been chosen.

    Args:
        path: the exported ``.json``.
        unlisted: what a category that was not chosen is, ``absent`` or ``unknown``; must be said.
        annotators: when several people annotated a task and differ. ``any``: chosen by at least one is
            present. ``all``: chosen by all is present, by some is unknown. What nobody chose goes by
            ``unlisted`` in both.
        control: name of the Choices whose answers are meant (``from_name``), or several, ``a,b``; must be
            said when there is more than one.
        image_key: key in a task's ``data`` that holds the image, if it is not ``image`` or the only one that
            looks so.
        categories: the names there should be, ``a,b,c`` or a file with one per line.
        root: folder of the images; by default the file's own, or its ``images/`` when they are only there.
            Of an upload or a URL the last part is the name (without its prefix of 8 digits when only that
            file exists), of ``/data/local-files/?d=PATH`` the path.
        check_files: look for the image files to find their folder and names.

    Raises:
        DataError: every fault of the file with the line its task starts on; a reading that must be chosen,
            with counts.
    """
    check_unlisted(unlisted)
    check_choice("value of option annotators:", annotators or "any", ("any", "all"))
    if path.is_dir() or path.suffix.lower() in (".csv", ".tsv", ".zip"):
        raise fault(path, f"expected the exported .json file; {AGAIN}", kind="bad-layout")
    declared = declared_names(categories, path)
    export = _Export(path, image_key)
    for element in located_elements(path):
        export.add(element.value, element.line)
    controls = export.choose(control)
    facts, counts = _facts(export, controls, declared, annotators)
    values, names = facts.matrix(rest_label(export.problems, unlisted, *counts))
    silent = [row for row, task in enumerate(export.tasks) if not task.answers]
    values[silent] = UNKNOWN
    files, folder = places(path, [task.name for task in export.tasks], root, check_files)
    notes: dict[str, object] = {
        "unlisted": unlisted,
        "annotators": annotators,
        "control": ",".join(controls),
        "unanswered": len(silent),
        "predictions_ignored": export.predictions,
    }
    return assemble(
        export.problems,
        files,
        values,
        names,
        root=folder,
        lines=facts.lines,
        name="label_studio",
        notes=notes,
    )


class _Task(NamedTuple):
    """One image, and per annotation that was not cancelled: control -> what was chosen there."""

    name: str
    value: str
    line: int
    answers: list[dict[str, set[str]]]


class _Export:
    """The tasks of a file, and counts of what else is in it."""

    def __init__(self, path: Path, image_key: str | None) -> None:
        self.path = path
        self.image_key = image_key
        self.problems = Problems(path)
        self.tasks: list[_Task] = []
        self.values: dict[str, _Task] = {}
        self.choices: Counter[str] = Counter()  # by control
        self.types: Counter[str] = Counter()
        self.predictions = 0

    def add(self, task: Any, line: int) -> None:
        """Take one element of the array; note what is wrong with it and leave it out."""
        if isinstance(task, dict) and not {"data", "annotations"} & set(task):
            raise fault(
                self.path,
                f"a task without 'data' and 'annotations'; this may be JSON-MIN: {AGAIN}",
                line=line,
                kind="bad-layout",
            )
        try:
            value = self._image(_member(task, "data", dict, "a task"))
            # before 1.0 annotations were called completions
            key = "completions" if "completions" in task and "annotations" not in task else "annotations"
            annotations = _member(task, key, list, "a task") if key in task else []
            answers = [self._answer(item) for item in annotations if not _cancelled(item)]
            found = _Task(local_name(value), value, line, answers)
        except ValueError as error:
            self.problems.add(str(error), line=line, kind="bad-task")
            return
        predictions = task.get("predictions")
        self.predictions += len(predictions) if isinstance(predictions, list) else 0
        first = self.values.setdefault(found.name, found)
        if first.value != value:
            self.problems.add(
                f"{_short(first.value)} on line {first.line} and {_short(value)} would both be the file '{found.name}'",
                line=line,
                kind="same-name",
                value=value[:60],
            )
        else:
            self.tasks.append(found)

    def _image(self, data: dict[str, Any]) -> str:
        key = self.image_key or ("image" if "image" in data else None)
        if key is None:
            like = [
                name for name, value in data.items() if isinstance(value, str) and looks_like_image(value)
            ]
            if len(like) != 1:
                names = ", ".join(map(repr, like or data)) or "nothing"
                raise ValueError(
                    f"a task's data holds {names[:200]}; say which is the image: -o image_key=NAME "
                    '(Python: image_key="NAME")'
                )
            key = like[0]
        return str(_member(data, key, str, "a task's data"))

    def _answer(self, annotation: Any) -> dict[str, set[str]]:
        answer: dict[str, set[str]] = {}
        for result in _member(annotation, "result", list, "an annotation"):
            kind = _member(result, "type", str, "a result")
            self.types[kind] += 1
            if kind == "choices":
                name = _member(result, "from_name", str, "a result of type choices")
                value = _member(result, "value", dict, "a result of type choices")
                chosen = _leaves(_member(value, "choices", list, f"the value of {_short(name)}"))
                answer.setdefault(name, set()).update(chosen)
                self.choices[name] += len(chosen)
        return answer

    def choose(self, control: str | None) -> list[str]:
        """Return the controls to read; note the names with their counts when that must be said."""
        if not self.tasks or not self.choices.total():
            others = ", ".join(f"{kind} ({times})" for kind, times in self.types.items() if kind != "choices")
            what = f"nothing was chosen in any task{', the results are ' + others if others else ''}"
            self.problems.raise_any()
            raise fault(self.path, what if self.tasks else f"there is no task in it; {AGAIN}", kind="empty")
        if self.predictions:
            self.problems.add(
                f"{self.predictions} predictions are ignored: they are not knowledge",
                kind="predictions",
                level="note",
            )
        if control is not None:
            names = [control] if control in self.choices else [name.strip() for name in control.split(",")]
            for name in names:
                if name not in self.choices:
                    raise fault(
                        self.path, unknown_name("value of option control:", name, self.choices), kind="option"
                    )
            return list(dict.fromkeys(names))
        if len(self.choices) > 1:
            shown = "".join(
                _reading("control", name, f"{times} choices") for name, times in self.choices.items()
            )
            shown += _reading(
                "control", ",".join(self.choices), f"{self.choices.total()} choices, all of them"
            )
            self.problems.add(
                f"answers {len(self.choices)} Choices; say which are meant{shown}", kind="undeclared-control"
            )
        return list(self.choices)


def _facts(
    export: _Export, controls: Sequence[str], declared: Sequence[str] | None, annotators: str | None
) -> tuple[Facts, tuple[int, int, int]]:
    """Return what was chosen, and the numbers of entries (present, not chosen by anybody, unknown)."""
    facts = Facts(export.problems, declared)
    counts = Counter[int]()
    _check_shared(export, controls)
    chosen = [
        [set[str]().union(*(answer.get(name, ()) for name in controls)) for answer in t.answers]
        for t in export.tasks
    ]
    disputed = sum(len(set.union(*sets)) - len(set.intersection(*sets)) for sets in chosen if sets)
    if disputed and annotators is None:
        _note_disputes(export.problems, chosen, disputed)
    for number, (task, sets) in enumerate(zip(export.tasks, chosen, strict=True)):
        # by number: an image that occurs in two tasks must not become one row
        row = facts.image(str(number), line=task.line)
        for name in sorted(set[str]().union(*sets)):
            label = PRESENT if annotators == "any" or all(name in one for one in sets) else UNKNOWN
            facts.say(row, name, label, task.line)
            counts[label] += name in facts.columns
    if not facts.columns:
        export.problems.raise_any()
        raise fault(export.path, f"nothing was chosen in {', '.join(controls)}", kind="empty")
    answered = sum(map(bool, chosen))
    columns = len(facts.columns)
    rest = answered * columns - counts.total()
    return facts, (counts[PRESENT], rest, len(chosen) * columns - counts[PRESENT] - rest)


def _note_disputes(problems: Problems, chosen: list[list[set[str]]], disputed: int) -> None:
    tasks = sum(len(set(map(frozenset, sets))) > 1 for sets in chosen)
    agreed = sum(len(set.intersection(*sets)) for sets in chosen if sets)
    either = _reading("annotators", "any", f"{agreed + disputed} present")
    both = _reading("annotators", "all", f"{agreed} present, {disputed} unknown where they differ")
    problems.add(
        f"several people annotated {tasks} of the tasks and differ; say how to read them{either}{both}",
        kind="undeclared-annotators",
    )


def _check_shared(export: _Export, controls: Sequence[str]) -> None:
    """Note a choice that two controls have: 'yes' to two questions is not one category."""
    owners: dict[str, str] = {}
    noted: set[str] = set()
    for task in export.tasks if len(controls) > 1 else ():
        for control in controls:
            for name in set[str]().union(*(answer.get(control, ()) for answer in task.answers)) - noted:
                if owners.setdefault(name, control) != control:
                    noted.add(name)
                    export.problems.add(
                        f"{_short(name)} is a choice of '{owners[name]}' and of '{control}'; read one of them, "
                        f"{_reading('control', control).strip()}",
                        line=task.line,
                        kind="shared-choice",
                        value=name[:60],
                    )


def _reading(option: str, value: str, count: str = "") -> str:
    shell = shlex.quote(f"{option}={value}")
    return f'\n  -o {shell} (Python: {option}="{value}")' + (f": {count}" if count else "")


def _member(holder: Any, key: str, kind: type, what: str) -> Any:
    """Return ``holder[key]`` where it has the right type; ValueError with the words for a person
    otherwise.
    """
    kinds = {dict: "an object {…}", list: "a list […]", str: "text", bool: "true or false"}
    if not isinstance(holder, dict):
        raise ValueError(f"{what} is {_short(holder)}; expected an object {{…}}")
    if key not in holder:
        raise ValueError(f"{what} has no '{key}'.{did_you_mean(key, holder)}")
    if not isinstance(holder[key], kind) or holder[key] == "":
        raise ValueError(f"'{key}' of {what} is {_short(holder[key])}; expected {kinds[kind]}")
    return holder[key]


def _cancelled(annotation: Any) -> bool:
    given = isinstance(annotation, dict) and "was_cancelled" in annotation
    return given and bool(_member(annotation, "was_cancelled", bool, "an annotation"))


def _leaves(choices: list[Any]) -> list[str]:
    """Return the names chosen; of a nested choice, a list from parent to leaf, the leaf."""
    leaves = [choice[-1] if isinstance(choice, list) and choice else choice for choice in choices]
    for leaf in leaves:
        if not isinstance(leaf, str) or not leaf.strip():
            raise ValueError(f"'choices' holds {_short(leaf)}; expected names")
    return leaves


def _short(value: Any) -> str:
    """Return the value as a person may look for it in the file, cut where it is long."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}…"
