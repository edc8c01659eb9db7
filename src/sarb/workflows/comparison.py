"""``sarb compare``: several runs on the same test images, with paired intervals of their differences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from sarb.data import Dataset, load
from sarb.data.splits import chosen
from sarb.errors import ConfigError, SarbError, either
from sarb.labels import UNKNOWN, LabelMatrix
from sarb.model import Model
from sarb.report import Comparison
from sarb.report.report import FEW_POSITIVES
from sarb.runs.differences import settings_told
from sarb.scores import Scores
from sarb.workflows.tested import Tested, place, scored, stored


def compare(
    runs: Sequence[str | Path | Model],
    data: Dataset | None = None,
    *,
    names: Sequence[str] | None = None,
    resamples: int = 1000,
    seed: int = 0,
    **options: Any,
) -> Comparison:
    """Compare models on the same images: mAP with its interval, and the difference of each from the first.

    Without ``data``, runs are compared on the test images that they share, from the scores in their folders.
    Of images with different labels in two runs, a label that one knows counts; one they contradict each other
    on does not. With ``data``, all models score these images, without those that one of them was trained on.

    Args:
        runs: at least two run folders, model folders or hub ids; models too, if ``data`` is given.
        data: images with labels to compare on.
        names: of the runs in tables; by default the names of their folders.
        resamples: of the images, for the intervals.
        seed: of the resamples.
        options: as in :func:`sarb.predict`.

    Returns:
        The comparison; print it, or ``save`` its page and table.
    """
    _check(runs, names)
    labels_of = list(names) if names is not None else _names(runs)
    skipped: dict[str, str] = {}
    notes: list[str] = []
    if data is None:
        tested = [stored(run, name) for run, name in zip(runs, labels_of, strict=True)]
    else:
        tested, notes = scored(runs, labels_of, data, skipped, **options)
    categories = _common_categories(tested)
    paths = _common_images(tested)
    labels, contradictions = _merged([part.labels for part in tested], categories, paths)
    notes = [*_about(tested, labels), *_settings(tested), *notes, *contradictions]
    if not labels.known.any():
        raise SarbError(f"none of the labels of the {len(paths):,} common test images is known")
    named = [
        (
            part.name,
            None if part.run is None else part.run.path,
            _aligned(part.scores, categories, paths),
            part.facts,
        )
        for part in tested
    ]
    return Comparison.of(named, labels, notes, tuple(skipped.items()), resamples, seed)


def compare_session(
    runs: Sequence[Path],
    source: str | None,
    data_options: Mapping[str, str],
    split: str | None,
    out: Path | None,
    **options: Any,
) -> Comparison:
    """Everything behind ``sarb compare``; write the page and the table into ``out`` if it is given."""
    _check(runs, None)
    if source is None and (data_options or split is not None):
        raise ConfigError(["-o and --split need the data they belong to; add --data SRC"])
    data = None if source is None else chosen(load(source, **data_options), split)[0]
    found = compare(runs, data, progress=True, **options)
    if out is not None:
        found.save(out)
    return found


def _check(runs: Sequence[str | Path | Model], names: Sequence[str] | None) -> None:
    """Refuse what cannot be compared."""
    if len(runs) < 2:
        raise ConfigError([f"compare needs at least two runs, got {len(runs)}"])
    if names is not None and len(names) != len(runs):
        raise ConfigError([f"got {len(names)} names for {len(runs)} runs"])
    seen: set[str] = set()
    for run in runs:
        where = str(id(run)) if isinstance(run, Model) else place(run)
        if where in seen:
            raise ConfigError([f"{run}: given twice"])
        seen.add(where)


def _names(runs: Sequence[str | Path | Model]) -> list[str]:
    """The last part of each path if they differ, else the whole paths; numbers for models."""
    paths = [f"model {number}" if isinstance(run, Model) else str(run) for number, run in enumerate(runs, 1)]
    short = [Path(path).resolve().name if Path(path).exists() else path for path in paths]
    return short if len(set(short)) == len(short) else paths


def _common_categories(tested: Sequence[Tested]) -> list[str]:
    """Categories that all models and labels have, in the order of the first."""
    known = [set(part.scores.categories) & set(part.labels.categories) for part in tested]
    common = [name for name in tested[0].scores.categories if all(name in each for each in known)]
    if not common:
        counts = ", ".join(f"{part.name} {len(part.scores.categories)}" for part in tested)
        raise SarbError(f"the runs have no category in common (categories: {counts})")
    return common


def _common_images(tested: Sequence[Tested]) -> list[str]:
    """Images that all models have scored, in the order of the first."""
    others = [set(part.scores.paths) for part in tested[1:]]
    common = [path for path in tested[0].scores.paths if all(path in each for each in others)]
    if not common:
        examples = ", ".join(
            f"{part.name} has {len(part.scores):,} such as {part.scores.paths[0]}" for part in tested
        )
        raise SarbError(
            f"the runs have no test image in common ({examples}); "
            f"give the images to compare on with {either('--data SRC', 'data=…')}"
        )
    return common


def _aligned(scores: Scores, categories: Sequence[str], paths: Sequence[str]) -> Scores:
    """These images and categories, in this order."""
    rows = {path: row for row, path in enumerate(scores.paths)}
    columns = [scores.categories.index(name) for name in categories]
    chosen = scores.logits[[rows[path] for path in paths]][:, columns]
    return Scores(chosen, categories, paths)


def _merged(
    parts: Sequence[LabelMatrix], categories: Sequence[str], paths: Sequence[str]
) -> tuple[LabelMatrix, list[str]]:
    """Labels of these images and categories: known where one part knows them, unknown where two contradict."""
    values = []
    for part in parts:
        rows = {path: row for row, path in enumerate(part.paths)}
        columns = [part.categories.index(name) for name in categories]
        values.append(part.values[[rows[path] for path in paths]][:, columns])
    stack = np.stack(values)
    highest = stack.max(0)
    lowest = stack.min(0)
    contradicted = (highest > 0) & (lowest < 0)
    merged = np.where(contradicted, UNKNOWN, np.where(highest > 0, highest, lowest)).astype(np.int8)
    count = int(contradicted.sum())
    note = f"{count:,} labels are left out: the runs' test labels contradict each other."
    return LabelMatrix(merged, categories, paths), [note] if count else []


def _about(tested: Sequence[Tested], labels: LabelMatrix) -> list[str]:
    """How much is compared, and of what."""
    notes = [
        f"Compared on {len(labels):,} test images and {len(labels.categories):,} categories, "
        f"{int(labels.known.sum()):,} known labels."
    ]
    positives = int(labels.positives.sum())
    if positives < FEW_POSITIVES:
        notes.append(f"Rough: only {positives:,} known positives in these images; any verdict may be luck.")
    sizes = [len(part.scores) for part in tested]
    if max(sizes) > len(labels):
        each = ", ".join(f"{part.name} {size:,}" for part, size in zip(tested, sizes, strict=True))
        notes.append(f"These are the test images that all runs share; their own tests have: {each}.")
    counts = [len(part.scores.categories) for part in tested]
    if max(counts) > len(labels.categories):
        each = ", ".join(f"{part.name} {count:,}" for part, count in zip(tested, counts, strict=True))
        notes.append(f"These are the categories that all runs share; their own are: {each}.")
    return notes


def _settings(tested: Sequence[Tested]) -> list[str]:
    """In which settings the runs differ, if all of them say."""
    runs = [(part.name, part.run) for part in tested if part.run is not None]
    told = settings_told(runs) if len(runs) == len(tested) else ""
    return [told] if told else []
