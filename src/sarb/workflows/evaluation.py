"""``sarb evaluate``: a model's scores against known labels."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from sarb.data import load
from sarb.errors import ConfigError, SarbError, unknown_name
from sarb.inference.prediction import evaluate
from sarb.model import load_model
from sarb.report import Report
from sarb.workflows.labelled import run_source


def evaluate_session(
    run: Path, source: str | None, data_options: Mapping[str, str], split: str, **options: Any
) -> Report:
    """Everything behind ``sarb evaluate``."""
    model = load_model(run)
    source, data_options, _ = run_source(run, source, data_options)
    data = load(source, **data_options)
    splits = {"train": data.train, "valid": data.valid, "test": data.test}
    if split not in splits:
        raise ConfigError([unknown_name("split", split, splits)])
    chosen = splits[split]
    if chosen is None or not len(chosen):
        raise SarbError(f"{source}: has no images in split '{split}'")
    if split == "train":
        print(
            "sarb: the model may have been trained on these images, so the numbers are too good",
            file=sys.stderr,
        )
    return replace(evaluate(model, chosen, **options), name=f"{run.resolve().name}, {split} images")
