"""How filled labels are written: a long table, Open Images rows, Label Studio tasks, and the conflicts.

The wide table in the source's own encoding is written by :mod:`sarb.data.writers.write`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sarb.errors import DataError, check_choice
from sarb.files import atomic_write, csv_text, write_json
from sarb.labelling.conflicts import Conflict
from sarb.labels import PRESENT, UNKNOWN, word_of

if TYPE_CHECKING:
    from sarb.labelling.completion import Filled
    from sarb.scores import Scores

LONG = ("file_name", "label", "given", "probability", "calibrated", "filled", "threshold", "source")
CONFLICTS = ("file_name", "label", "given", "calibrated", "belief")
OPEN_IMAGES = ("ImageID", "Source", "LabelName", "Confidence")
#: names of the Choices and of the Image of a Label Studio project
CONTROL = "labels"
OBJECT = "image"


def table(header: Sequence[str], rows: Iterable[Sequence[Any]], path: str | Path | None = None) -> str:
    """Return CSV text, and write it to ``path`` if given."""
    text = csv_text(header, rows)
    if path is not None:
        with atomic_write(path) as file:
            file.write(text)
    return text


def long_csv(filled: Filled, path: str | Path | None = None) -> str:
    """One row per image and category: what was given, what is said about it, what it is now, and who says so.

    ``source`` is ``given``, ``machine``, or ``none`` where the label is left unknown. ``threshold`` is the
    probability from which on the category is filled as present, blank if it never is.
    """
    return table(LONG, _long_rows(filled), path)


def _long_rows(filled: Filled) -> Iterator[tuple[str, ...]]:
    words = {code: word_of(code) for code in (-1, 0, 1)}
    thresholds = [f"{value:.6g}" if np.isfinite(value) else "" for value in filled.thresholds]
    raw = filled.scores.probabilities
    for row, name in enumerate(filled.labels.paths):
        cells = zip(
            filled.labels.categories,
            filled.given.values[row].tolist(),
            raw[row].tolist(),
            filled.calibrated[row].tolist(),
            filled.labels.values[row].tolist(),
            thresholds,
            strict=True,
        )
        for label, given, probability, calibrated, now, threshold in cells:
            source = "given" if given != UNKNOWN else "machine" if now != UNKNOWN else "none"
            yield (
                name,
                label,
                words[given],
                f"{probability:.6g}",
                f"{calibrated:.6g}",
                words[now],
                threshold,
                source,
            )


def both_csv(raw: Scores, calibrated: Scores, path: Path, top_k: int | None, threshold: float | None) -> None:
    """``file_name,label,probability,calibrated`` of the labels whose calibrated probability passes."""
    place = {name: column for column, name in enumerate(raw.categories)}
    ranked = calibrated.top(max(1, len(place)) if top_k is None else top_k)
    rows = (
        (name, label, f"{own[place[label]]:.6g}", f"{p:.6g}")
        for name, found, own in zip(raw.paths, ranked, raw.probabilities, strict=True)
        for label, p in found
        if p >= (threshold or 0)
    )
    table(("file_name", "label", "probability", "calibrated"), rows, path)


def conflicts_csv(conflicts: Sequence[Conflict], path: str | Path | None = None) -> str:
    """The doubtful given labels, the most doubtful first."""
    rows = (
        [c.file_name, c.label, word_of(c.given), f"{c.calibrated:.6g}", f"{c.belief:.6g}"] for c in conflicts
    )
    return table(CONFLICTS, rows, path)


def save_filled(filled: Filled, path: str | Path, to: str = "long") -> Path:
    """Write a file in the format ``to``: ``long``, ``open_images`` or ``label_studio``."""
    writers: dict[str, Callable[[Filled, str | Path], object]] = {
        "long": long_csv,
        "open_images": open_images,
        "label_studio": label_studio,
    }
    check_choice("format of completed labels", to, writers)
    writers[to](filled, path)
    return Path(path)


def classes_file(path: str | Path) -> Path:
    """The class descriptions beside an Open Images table: ``filled.csv`` -> ``filled.classes.csv``."""
    return Path(path).with_name(Path(path).stem + ".classes.csv")


def open_images(filled: Filled, path: str | Path) -> None:
    """Rows ``ImageID,Source,LabelName,Confidence``: given ones ``verification`` 1 or 0, filled ones
    ``machine``.

    A machine row has the calibrated probability. Its reader counts machine rows, and takes none for
    knowledge; read the file with ``-o descriptions=FILE.classes.csv``. The ImageID is the file name without
    folder and suffix.
    """
    names = [Path(name).stem for name in filled.labels.paths]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise DataError(
            f"not written, two images would both have the ImageID '{twice}'; choose the format long or wide"
        )
    ids = [f"/sarb/{number}" for number in range(len(filled.labels.categories))]
    given = filled.given.values
    now = filled.labels.values
    rows = (
        (names[row], "verification", ids[column], int(given[row, column] == PRESENT))
        if given[row, column] != UNKNOWN
        else (names[row], "machine", ids[column], f"{filled.calibrated[row, column]:.6g}")
        for row, column in zip(*np.nonzero(now), strict=True)
    )
    table(("LabelName", "DisplayName"), zip(ids, filled.labels.categories, strict=True), classes_file(path))
    table(OPEN_IMAGES, rows, path)


def label_studio(filled: Filled, path: str | Path) -> None:
    """An array of tasks to import: given present labels as annotations, filled present ones as predictions.

    The project needs ``<Choices name="labels" toName="image" choice="multiple">``. Choices cannot say
    "absent", so absent labels are not written; an image with nothing given has no annotation.
    """
    write_json(path, [_task(filled, row) for row in range(len(filled.labels))])


def _task(filled: Filled, row: int) -> dict[str, Any]:
    names = np.array(filled.labels.categories, object)
    known = filled.given.known[row]
    machine = filled.present[row]
    task: dict[str, Any] = {"data": {OBJECT: filled.labels.paths[row]}, "annotations": [], "predictions": []}
    if known.any():
        task["annotations"] = [{"result": _choices(names[filled.given.values[row] == PRESENT])}]
    if machine.any():
        score = round(float(filled.confidence[row][machine].mean()), 6)
        task["predictions"] = [{"model_version": "sarb", "score": score, "result": _choices(names[machine])}]
    return task


def _choices(names: Any) -> list[dict[str, Any]]:
    if not len(names):
        return []
    return [{"from_name": CONTROL, "to_name": OBJECT, "type": "choices", "value": {"choices": list(names)}}]
