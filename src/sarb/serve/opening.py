"""From a table of labels to a review: which photos are asked about, their scores, and the questions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sarb.data import Dataset, load
from sarb.errors import ImageError, SarbError, unknown_name
from sarb.inference.prediction import has_features, match_categories, predict
from sarb.runs.folder import RunFolder
from sarb.runs.lookup import find_run
from sarb.scores import Scores
from sarb.serve.desk import Desk
from sarb.serve.journal import journal_of
from sarb.serve.order import order, shuffled
from sarb.serve.questions import Questions
from sarb.serve.recogniser import Recogniser
from sarb.serve.say import say
from sarb.serve.score_cache import ScoreCache
from sarb.serve.table import Table, check_target

#: splits that can be asked about -> what their photos are called
PHOTOS = {"train": "training photos", "valid": "validation photos", "test": "test photos"}


def open_desk(
    recogniser: Recogniser,
    labels: str,
    options: Mapping[str, Any],
    out: Path | None,
    *,
    ask: str = "train",
    assist: bool = False,
    run: Path | None = None,
) -> Desk:
    """Read the labels, score the photos of one split, order the questions, and resume an earlier review."""
    if ask not in PHOTOS:
        raise SarbError(unknown_name("split", ask, PHOTOS))
    table = Table(load(labels, **options))
    path = check_target(out or default_out(table, ask))
    _refuse_answers(table, path)
    for part in table.data.splits.values():
        match_categories(recogniser.model, part)  # raises if they differ
    folder = None if run is None or not run.exists() else find_run(run)
    asked = asked_about(table, ask, labels, _hidden(folder))
    _say_fewer(folder, table, labels)
    questions = _questions(recogniser, table, asked, path, ask, folder is not None and folder.cached)
    desk = Desk(table, questions, path, ask=ask, assist=assist, run=run)
    for count, reason in (
        (desk.resumed.ignored, "labels that are known or gone now"),
        (desk.resumed.elsewhere, f"photos that are not {PHOTOS[ask]}"),
    ):
        if count:
            say(f"ignored {count:,} earlier answers about {reason}; they stay in the journal")
    return desk


def default_out(table: Table, ask: str) -> Path:
    """Return ``reviewed.csv`` next to the labels; ``audited-test.csv`` for an audit of the test photos."""
    reviewed = table.default_out()
    return reviewed if ask == "train" else reviewed.with_name(f"audited-{ask}{reviewed.suffix}")


def _hidden(folder: RunFolder | None) -> str:
    """What a run that hid labels has to do with a table without unknown ones; empty for other runs."""
    record = {} if folder is None else folder.data_record
    if record.get("single_positive", False):
        option = "--single-positive"
    elif record.get("known", 1) < 1:
        option = f"--known {record['known']:g}"
    else:
        return ""
    seed = f" --mask-seed {record['mask_seed']}" if record.get("mask_seed") else ""
    return (
        f". This run hid labels with {option.split()[0]}; in the table they are known. "
        f"'sarb data convert SRC {option}{seed} --out gaps.csv' writes a table with gaps"
    )


def _say_fewer(folder: RunFolder | None, table: Table, labels: str) -> None:
    """Warn about a table that is older than the run: the answers since then would be asked for again."""
    learned = None if folder is None else folder.train
    if learned is None:
        return
    rows = {path: row for row, path in enumerate(table.labels.paths)}
    same = [(rows[path], row) for row, path in enumerate(learned.paths) if path in rows]
    columns = [
        (table.labels.categories.index(name), place)
        for place, name in enumerate(learned.categories)
        if name in table.labels.categories
    ]
    if not same or not columns:
        return
    here, there = np.array(same).T
    own, its = np.array(columns).T
    now = int(table.labels.known[np.ix_(here, own)].sum())
    then = int(learned.known[np.ix_(there, its)].sum())
    if now < then:
        say(
            f"{labels}: has {now:,} known labels of the run's training photos, but the run was trained on {then:,}; "
            "if this is an older table, labels that were answered since then are asked again"
        )


def asked_about(table: Table, ask: str, labels: str, hidden: str = "") -> NDArray[np.bool_]:
    """Return which photos (N,) are in the split; raise if none of their labels is unknown.

    ``hidden`` ends the message where a run has hidden labels.
    """
    parts = table.data.splits
    splits = np.repeat(np.array(list(parts), "<U5"), [len(part) for part in parts.values()])
    unknown = {name: int((~table.labels.known[splits == name]).sum()) for name in PHOTOS}
    if not unknown[ask]:
        others = [f"--ask {name} for {count:,} of {PHOTOS[name]}" for name, count in unknown.items() if count]
        hint = f"; other labels are unknown: {', '.join(others)}" if others else ""
        absent = ask not in parts
        reason = f"has no {PHOTOS[ask]}" if absent else f"every label of the {PHOTOS[ask]} is known"
        raise SarbError(f"{labels}: {reason}, so there is nothing to review{hint}{hidden}")
    return np.asarray(splits == ask)


def _questions(
    recogniser: Recogniser, table: Table, asked: NDArray[np.bool_], out: Path, ask: str, cached: bool = False
) -> Questions:
    """Score the photos that are asked about, and order the questions: valuable first, or random in a test."""
    rows = np.flatnonzero(asked)
    labels = table.labels.take(rows)
    photos = table.data.splits[ask] if cached else None
    scores, readable = _scored(recogniser, [table.files[row] for row in rows], out, photos)
    columns = [recogniser.categories.index(name) for name in labels.categories]
    scores = Scores(scores.logits[:, columns], labels.categories, labels.paths)
    if ask == "train":
        entries, found = order(scores, labels, recogniser.calibration, readable)
    else:
        entries, found = shuffled(labels, readable), {}
    in_table = rows[entries // len(columns)] * len(columns) + entries % len(columns)
    reasons = {
        place: found.get(entry, "") for place, entry in zip(in_table.tolist(), entries.tolist(), strict=True)
    }
    probabilities = np.zeros(table.labels.shape)
    probabilities[rows] = recogniser.probabilities(scores)
    own_order = "valuable" if ask == "train" else "random"
    return Questions(table.labels, in_table, probabilities, reasons, asked, own_order)


def _refuse_answers(table: Table, out: Path) -> None:
    """Say how to resume a review if its output is given as the labels."""
    source = table.data.train.source
    if source is None or not (source.exists() and out.exists() and journal_of(out).exists()):
        return
    if out.samefile(source):
        raise SarbError(
            f"{out}: this is the source itself, which a review never changes. "
            "To resume a review, pass its original table (--labels labels.csv); your answers are kept. "
            "To review this file, choose another --out"
        )


def _scored(
    recogniser: Recogniser, files: Sequence[Path], out: Path, photos: Dataset | None = None
) -> tuple[Scores, NDArray[np.bool_]]:
    """Return the scores of the images, 0 for unreadable ones, and which images can be read (N,).

    Scores from the last start are reused if neither the model nor the photo has changed, and at the first start the
    features that training has stored for the same ``photos``.
    """
    skipped: list[tuple[str, str]] = []
    cache = ScoreCache(recogniser.model, out, files)
    logits, known = cache.read()
    unscored = [file for file, scored in zip(files, known, strict=True) if not scored]
    if photos is not None and not known.any() and has_features(recogniser.model, photos):
        fresh = predict(recogniser.model, photos, cache=True, progress=True, unreadable="skip")
        whole = dict(zip(photos.labels.paths, files, strict=True))
        skipped += [(str(whole[name]), reason) for name, reason in fresh.skipped]
    else:
        fresh = predict(recogniser.model, unscored, progress=bool(unscored), skipped=skipped)
    for _, reason in skipped:
        say(f"skipped: {reason}")
    unreadable = {name for name, _ in skipped}
    readable = known | np.array([str(file) not in unreadable for file in files])
    if not readable.any():
        raise ImageError("none of the images can be read")
    logits[readable & ~known] = fresh.logits
    if len(fresh):
        with suppress(OSError):  # if they cannot be stored, the next start computes them again
            cache.write(logits, readable)
    return Scores(logits, recogniser.categories, [str(file) for file in files]), readable
