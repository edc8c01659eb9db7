"""The labelling configuration: one yes/no question per category. Untouched stays unknown."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from xml.etree.ElementTree import Element, SubElement, indent, tostring
from xml.parsers import expat

from sarb.data.readers.label_studio_names import YES_NO, category_name, control_name
from sarb.errors import DataError
from sarb.labels import PRESENT

#: key of the image in a task's data, and name of the tag that shows it
IMAGE = "image"
#: key of the text in a task's data that says which labels are known
KNOWN = "known"


@dataclass(frozen=True)
class Question:
    """A Choices control with the choices yes and no; ``choices``: label -> the choice as it is spelled."""

    category: str
    control: str
    shown: str
    choices: dict[int, str] = field(compare=False)

    def answer(self, label: int, score: float | None = None) -> dict[str, object]:
        """Return a result: this label is the answer, with the probability that it is right."""
        result: dict[str, object] = {
            "from_name": self.control,
            "to_name": self.shown,
            "type": "choices",
            "value": {"choices": [self.choices[label]]},
        }
        return result if score is None else {**result, "score": round(score, 6)}


@dataclass(frozen=True)
class Config:
    """What a labelling configuration asks, and the key of the image in a task's data."""

    questions: tuple[Question, ...]
    image_key: str


def labelling_config(categories: Sequence[str]) -> str:
    """Return the configuration of a project that asks yes or no about each of these categories."""
    shown = IMAGE
    while shown in map(control_name, categories):  # the names of all tags must differ
        shown += "_"
    view = Element("View")
    SubElement(view, "Image", name=shown, value=f"${IMAGE}", zoom="true")
    SubElement(view, "Header", value=f"${KNOWN}", size="6")
    for category in categories:
        row = SubElement(view, "View", style="display:flex;align-items:baseline;gap:1em")
        # a value that starts with a dollar sign would be taken for a key of the task's data
        SubElement(row, "Header", value=f" {category}" if category.startswith("$") else category, size="5")
        control = SubElement(
            row, "Choices", name=control_name(category), toName=shown, choice="single", showInline="true"
        )
        for choice in YES_NO:
            SubElement(control, "Choice", value=choice)
    indent(view)
    return tostring(view, encoding="unicode")


def read_config(text: str) -> Config:
    """Return the yes/no questions of a configuration; other tags are ignored.

    Raises:
        DataError: not XML, or there is no image.
    """
    controls: list[tuple[dict[str, str], list[str]]] = []
    images: list[str] = []

    def opened(tag: str, attributes: dict[str, str]) -> None:
        if tag == "Choices":
            controls.append((attributes, []))
        elif tag == "Choice" and controls:
            controls[-1][1].append(attributes.get("alias") or attributes.get("value", ""))
        elif tag == "Image":
            images.append(attributes.get("value", "").removeprefix("$"))

    _walk(text, opened)
    if not images:
        raise DataError("the labelling configuration has no <Image>")
    asked = (_question(attributes, choices) for attributes, choices in controls)
    return Config(tuple(question for question in asked if question is not None), images[0] or IMAGE)


def _question(attributes: dict[str, str], choices: list[str]) -> Question | None:
    """Return the question that a Choices control asks, None if its choices are not yes and no."""
    labels = {YES_NO.get(choice.strip().lower()): choice for choice in choices}
    if len(choices) != len(YES_NO) or labels.keys() != set(YES_NO.values()):
        return None
    control = attributes.get("name", "")
    spelled = {label: choice for label, choice in labels.items() if label is not None}
    return Question(category_name(control), control, attributes.get("toName", IMAGE), spelled)


def _walk(text: str, opened: Callable[[str, dict[str, str]], None]) -> None:
    parser = expat.ParserCreate()
    parser.StartElementHandler = opened
    parser.StartDoctypeDeclHandler = _refuse
    try:
        parser.Parse(text, True)
    except (expat.ExpatError, ValueError) as error:
        raise DataError(f"the labelling configuration is not valid XML: {error}") from None


def _refuse(*_: object) -> None:
    raise ValueError("a document type declaration is not allowed")


def said(label: int) -> str:
    """Return the word for a known label: yes or no."""
    return "yes" if label == PRESENT else "no"
