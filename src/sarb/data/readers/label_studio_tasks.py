"""The tasks of a Label Studio export: their images, and what each annotator chose."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

from sarb.data.check.problems import Problems, fault
from sarb.data.parse.messages import counted
from sarb.data.readers.label_studio_names import YES_NO, local_name, looks_like_image
from sarb.errors import data_option, did_you_mean, unknown_name

AGAIN = "export it again from Label Studio as JSON"
#: names of JSON types in messages
TYPE_NAMES = {dict: "an object {…}", list: "a list […]", str: "text", bool: "true or false"}


class Task(NamedTuple):
    """One image, and for every annotation that was not cancelled, a dict control -> choices."""

    name: str
    value: str
    line: int
    answers: list[dict[str, set[str]]]


class Export:
    """The tasks of a file, with counts of choices and predictions."""

    def __init__(self, path: Path, image_key: str | None) -> None:
        self.path = path
        self.image_key = image_key
        self.problems = Problems(path)
        self.tasks: list[Task] = []
        self.choices: Counter[str] = Counter()  # by control
        self.predictions = 0
        self._by_name: dict[str, Task] = {}
        self._result_types: Counter[str] = Counter()

    def add(self, content: Any, line: int) -> None:
        """Add one element of the array, or report what is wrong with it."""
        if isinstance(content, dict) and not {"data", "annotations"} & set(content):
            text = f"a task has neither 'data' nor 'annotations'; if this is JSON-MIN, {AGAIN}"
            raise fault(self.path, text, line=line, kind="bad-layout")
        try:
            task = self._task(content, line)
        except ValueError as error:
            self.problems.add(str(error), line=line, kind="bad-task")
            return
        predictions = content.get("predictions")
        self.predictions += len(predictions) if isinstance(predictions, list) else 0
        first = self._by_name.setdefault(task.name, task)
        if first.value == task.value:
            self.tasks.append(task)
        else:
            images = f"{short(first.value)} on line {first.line} and {short(task.value)}"
            text = f"{images} would be the same file '{task.name}'"
            self.problems.add(text, line=line, kind="same-name", value=task.value[:60])

    def _task(self, content: Any, line: int) -> Task:
        value = self._image(_member(content, "data", dict, "a task"))
        # before version 1.0, annotations were called completions
        key = "completions" if "completions" in content and "annotations" not in content else "annotations"
        annotations = _member(content, key, list, "a task") if key in content else []
        answers = [self._answer(item) for item in annotations if not _cancelled(item)]
        return Task(local_name(value), value, line, answers)

    def _image(self, data: dict[str, Any]) -> str:
        key = self.image_key or ("image" if "image" in data else None)
        if key is None:
            texts = {name: value for name, value in data.items() if isinstance(value, str)}
            images = [name for name, value in texts.items() if looks_like_image(value)]
            if len(images) != 1:
                names = ", ".join(map(repr, images or data)) or "(none)"
                hint = f"choose the image with {data_option('image_key', 'NAME')}"
                raise ValueError(f"a task's data has the keys {names[:200]}; {hint}")
            key = images[0]
        return str(_member(data, key, str, "a task's data"))

    def _answer(self, annotation: Any) -> dict[str, set[str]]:
        answer: dict[str, set[str]] = {}
        for result in _member(annotation, "result", list, "an annotation"):
            result_type = _member(result, "type", str, "a result")
            self._result_types[result_type] += 1
            if result_type == "choices":
                control = _member(result, "from_name", str, "a result of type choices")
                value = _member(result, "value", dict, "a result of type choices")
                chosen = _leaves(_member(value, "choices", list, f"the value of {short(control)}"))
                answer.setdefault(control, set()).update(chosen)
                self.choices[control] += len(chosen)
        return answer

    def asks_yes_no(self, chosen: str | None) -> bool:
        """Whether every choice in the controls to read is yes or no: then each control is a category."""
        controls = self.choices.keys() if chosen is None else {chosen, *map(str.strip, chosen.split(","))}
        choices = [
            choice
            for task in self.tasks
            for answer in task.answers
            for control, names in answer.items()
            if control in controls
            for choice in names
        ]
        return bool(choices) and all(choice.strip().lower() in YES_NO for choice in choices)

    def controls(self, chosen: str | None, yes_no: bool = False) -> list[str]:
        """Return the controls to read; if the user must choose, report the controls with their counts.

        Args:
            chosen: value of option ``control``.
            yes_no: each control is a category, so all of them are read unless ``chosen`` says otherwise.
        """
        self._check_answers()
        if chosen is not None:
            names = [chosen] if chosen in self.choices else [name.strip() for name in chosen.split(",")]
            for name in (name for name in names if name not in self.choices):
                text = unknown_name("value of option control:", name, self.choices)
                raise fault(self.path, text, kind="option")
            return list(dict.fromkeys(names))
        if len(self.choices) > 1 and not yes_no:
            shown = ""
            for name, times in self.choices.items():
                shown += f"\n  {data_option('control', name)}: {counted(times, 'choice')}"
            every = data_option("control", ",".join(self.choices))
            shown += f"\n  {every}: {self.choices.total():,} choices, all of them"
            text = f"contains answers to {len(self.choices)} Choices controls; declare which to read:{shown}"
            self.problems.add(text, kind="undeclared-control")
        return list(self.choices)

    def _check_answers(self) -> None:
        """Raise if nothing was chosen; report predictions, which are ignored."""
        if not self.tasks:
            self.problems.raise_any()
            raise fault(self.path, f"contains no task; {AGAIN}", kind="empty")
        if not self.choices.total():
            self.problems.raise_any()
            others = [f"{name} ({times})" for name, times in self._result_types.items() if name != "choices"]
            more = f"; the results are {', '.join(others)}" if others else ""
            raise fault(self.path, f"no task has a choice{more}", kind="empty")
        if self.predictions:
            text = f"{counted(self.predictions, 'prediction')} ignored: predictions come from a model"
            self.problems.add(text, kind="predictions", level="note")


def _member(holder: Any, key: str, expected: type, holder_name: str) -> Any:
    """Return ``holder[key]`` if it has the expected type; raise ValueError otherwise."""
    if not isinstance(holder, dict):
        raise ValueError(f"{holder_name} is {short(holder)}; expected {TYPE_NAMES[dict]}")
    if key not in holder:
        raise ValueError(f"{holder_name} has no '{key}'.{did_you_mean(key, holder)}")
    value = holder[key]
    if not isinstance(value, expected) or value == "":
        raise ValueError(f"'{key}' of {holder_name} is {short(value)}; expected {TYPE_NAMES[expected]}")
    return value


def _cancelled(annotation: Any) -> bool:
    if not isinstance(annotation, dict) or "was_cancelled" not in annotation:
        return False
    return bool(_member(annotation, "was_cancelled", bool, "an annotation"))


def _leaves(choices: list[Any]) -> list[str]:
    """Return the chosen names; for a nested choice, a list from parent to leaf, return the leaf."""
    leaves = [choice[-1] if isinstance(choice, list) and choice else choice for choice in choices]
    for leaf in leaves:
        if not isinstance(leaf, str) or not leaf.strip():
            raise ValueError(f"'choices' contains {short(leaf)}; expected names")
    return leaves


def short(value: Any) -> str:
    """Return the value for a message, shortened so that it can still be found in the file."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}…"
