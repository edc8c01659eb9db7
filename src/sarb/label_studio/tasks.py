"""Tasks, predictions and annotations, in the form in which Label Studio imports and stores them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from sarb.data.dataset import Data
from sarb.label_studio.config import IMAGE, KNOWN, Question, said
from sarb.labels import ABSENT, PRESENT, UNKNOWN
from sarb.runs.folder import LAST, ModelFolder

#: keys of a task's data: the image as the user's table names it, and its known labels as yes or no
FILE_NAME = "file_name"
LABELS = "labels"


def image_names(data: Data) -> dict[str, list[str]]:
    """Return split -> the names of its images; whole paths if two splits use the same name."""
    names = {split: list(part.labels.paths) for split, part in data.splits.items()}
    every = [name for own in names.values() for name in own]
    if len(set(every)) < len(every):
        return {split: [str(path) for path in part.paths] for split, part in data.splits.items()}
    return names


def model_version(folder: ModelFolder) -> str:
    """Return the name of a model in Label Studio: its run, and the first digits of its checksum."""
    path = folder.path.resolve()
    name = path.parent.name if path.name == LAST else path.name
    return f"sarb {name} {folder.checksum()[:8]}"


def task_data(image: str, file_name: str, known: Mapping[str, int]) -> dict[str, Any]:
    """Return the data of a task.

    Args:
        image: where Label Studio finds the image.
        file_name: the image's name in the user's table, by which answers find their way back.
        known: category -> present or absent.
    """
    words = {category: said(label) for category, label in known.items() if label != UNKNOWN}
    text = ", ".join(f"{category}: {word}" for category, word in words.items())
    return {IMAGE: image, FILE_NAME: file_name, LABELS: words, KNOWN: f"Known: {text}" if text else " "}


def known_labels(data: Mapping[str, Any]) -> dict[str, int]:
    """Return the labels that a task's data give as known: category -> label."""
    words = data.get(LABELS)
    labels = {"yes": PRESENT, "no": ABSENT}
    if not isinstance(words, Mapping):
        return {}
    return {
        str(name): labels[word] for name, word in words.items() if isinstance(word, str) and word in labels
    }


def annotation(questions: Sequence[Question], known: Mapping[str, int]) -> dict[str, Any]:
    """Return an annotation with the known labels as answers."""
    answered = [question for question in questions if known.get(question.category, UNKNOWN) != UNKNOWN]
    return {"result": [question.answer(known[question.category]) for question in answered]}


def prediction(
    questions: Sequence[Question],
    probabilities: Mapping[str, float],
    thresholds: Mapping[str, float],
    known: Mapping[str, int],
    version: str,
    min_confidence: float = 0.0,
) -> dict[str, Any]:
    """Return the prediction for a task: an answer per question, each with the probability that it is right.

    The score of the task is the mean of these probabilities over the labels that are not known: the share of
    right answers to be expected. Label Studio's order of uncertainty asks the lowest score first.

    Args:
        questions: what the project asks; questions about other categories than the model's get no answer.
        probabilities: category -> probability.
        thresholds: category -> the probability from which on it counts as present.
        known: category -> label; a known label is answered as it is, and does not count in the score.
        version: name of the model.
        min_confidence: leave out an answer that is less probable; it counts in the score all the same.
    """
    results = []
    confidences = []
    for question in questions:
        category = question.category
        if known.get(category, UNKNOWN) != UNKNOWN:
            results.append(question.answer(known[category], 1.0))
        elif category in probabilities:
            p = float(probabilities[category])
            label = PRESENT if p >= thresholds[category] else ABSENT
            confidence = p if label == PRESENT else 1 - p
            confidences.append(confidence)
            if confidence >= min_confidence:
                results.append(question.answer(label, confidence))
    score = round(float(np.mean(confidences)), 6) if confidences else 1.0
    return {"result": results, "score": score, "model_version": version}
