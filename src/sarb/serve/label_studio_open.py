"""Open the ML backend of Label Studio for a run: where its images come from and its answers go."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sarb.data import load
from sarb.errors import ConfigError
from sarb.inference.prediction import match_categories
from sarb.label_studio.host import DEFAULT_URL, Host
from sarb.serve.bodies import MAX_UPLOAD
from sarb.serve.collected import Collected
from sarb.serve.label_studio import Backend
from sarb.serve.recogniser import Recogniser
from sarb.serve.retraining import Retraining
from sarb.serve.say import say
from sarb.serve.table import Table, check_target
from sarb.serve.task_images import TaskImages
from sarb.workflows.labelled import run_data, run_source


@dataclass(frozen=True)
class LabelStudio:
    """How to serve Label Studio.

    Args:
        url: address of its server, the only one that images are fetched from.
        token: personal access token or legacy token for it; empty: the one that it sends.
        roots: folders with its local files.
        retrain_after: train again after this many answered images, 0 only when asked to, None never.
    """

    url: str = DEFAULT_URL
    token: str = ""
    roots: tuple[Path, ...] = ()
    retrain_after: int | None = None

    def __repr__(self) -> str:  # without the token
        return f"LabelStudio({self.url})"


def open_backend(
    run: Path,
    recogniser: Recogniser,
    given: LabelStudio,
    labels: str | None = None,
    options: Mapping[str, Any] | None = None,
    out: Path | None = None,
) -> Backend:
    """Return the backend; answers go into a copy of the labels, by default those that the run learned from."""
    images = TaskImages(Host(given.url, given.token, MAX_UPLOAD), given.roots)
    collected = _collected(run, recogniser, labels, options or {}, out)
    retraining = None
    if given.retrain_after is not None:
        if collected is None:
            raise ConfigError(["--retrain-after needs the labels to train on; add --labels SRC"])
        retraining = Retraining(run, recogniser, collected, given.retrain_after)
    if collected is None:
        say(f"answers are not collected: {run} does not say which labels it learned from; add --labels SRC")
    else:
        say(
            f"answers from Label Studio go to {collected.out}; {collected.tasks:,} images are answered so far"
        )
    return Backend(recogniser, images, collected, retraining)


def _collected(
    run: Path, recogniser: Recogniser, labels: str | None, options: Mapping[str, Any], out: Path | None
) -> Collected | None:
    try:
        source, _, _ = run_source(run, labels, options)
    except ConfigError:
        return None
    data = load(labels, **options) if labels is not None else run_data(run)
    for part in data.splits.values():
        match_categories(recogniser.model, part)  # raises if they differ
    table = Table(data)
    path = check_target(out or table.default_out().with_stem("answered"))
    return Collected(table, path, source)
