"""``sarb evaluate``: a model's scores against known labels."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sarb.data import Data, Dataset, load
from sarb.data.splits import ALL, chosen, drawn, own_splits
from sarb.errors import printable
from sarb.inference.prediction import evaluate
from sarb.methods.together import connected, meet
from sarb.model import load_model
from sarb.report import Report
from sarb.runs.lookup import find_run
from sarb.serve.audit import audit_note
from sarb.workflows.labelled import run_source
from sarb.workflows.seen import Seen


def evaluate_session(
    run: Path, source: str | None, data_options: Mapping[str, str], split: str | None = None, **options: Any
) -> Report:
    """Everything behind ``sarb evaluate``.

    Without ``split``, the run's own data give the images that were held out for the test, and another source
    its test images, or all images if it has no splits. Under ``torchrun``, each process scores its share, and the
    first one returns.
    """
    first = meet()
    model = load_model(run)
    own_data = source is None
    if own_data or "test" in data_options:  # -o test=0.3 asks for a share of another source
        split = split or "test"
    source, data_options, _ = run_source(run, source, data_options)
    data = load(source, **data_options)
    folder = find_run(run)
    seen = Seen.of(folder, data.train.root if own_data else None)
    images = choose_images(data, split, seen)
    learned = seen.trained_on(images.dataset)
    trained = int(learned.sum())
    if trained and first:
        print(f"sarb: {_too_good(images, trained, seen, data)}", file=sys.stderr)
    if first and (note := audit_note(images.dataset.take(~learned))):
        print(printable(f"sarb: {note}"), file=sys.stderr)
    # the run was tested from its cache, so this gives the same numbers again, and sooner
    cache = own_data and images.dataset is data.test and folder.cached
    with connected():
        report = evaluate(model, images.dataset, cache=cache, shared=True, **options, progress=first)
    if not first:
        raise SystemExit(0)
    count = int(report.metrics["images"])
    name = f"{run.resolve().name}: {count:,} of {images.total:,} images, {images}; data {source}"
    about = {
        "source": source,
        "split": images.split,
        "images_in_source": images.total,
        "training_images": trained,
    }
    return replace(report, name=name, about=about)


@dataclass(frozen=True)
class Images:
    """The images to evaluate: of which split, how it came about, and how many the source has."""

    dataset: Dataset
    split: str
    origin: str
    total: int

    def __str__(self) -> str:
        return f"split {self.split}" + (f" ({self.origin})" if self.origin else "")


def choose_images(data: Data, split: str | None, seen: Seen) -> Images:
    """Choose the images of a split; a test split that was drawn is the one that the run held out, if it is there."""
    dataset, split = chosen(data, split)
    origin = str(data.notes.get(f"{split}_split", "")) if split in drawn(data) else ""
    if split == ALL and not own_splits(data):
        origin = "the data have no splits"
    if split == "test" and origin and seen.trained_on(dataset).any():
        # the table has changed since, or is another one, so the same draw gives other images
        held = seen.held_out(data.all)
        if held.any():
            dataset = data.all.take(held)
            origin = "held out when the run was trained"
    return Images(dataset, split, origin, sum(map(len, data.splits.values())))


def _too_good(images: Images, trained: int, seen: Seen, data: Data) -> str:
    """Say how many images the model was trained on, and which of these data it was not."""
    text = f"{trained:,} of these {len(images.dataset):,} images were training images of this run, "
    text += "so the numbers are too good"
    held = int(seen.held_out(data.all).sum())
    return text + (f"; --split test takes the {held:,} images that it held out" if held else "")
