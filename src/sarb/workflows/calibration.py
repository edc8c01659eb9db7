"""``sarb calibrate``: out-of-fold scores of the known labels, then probabilities and thresholds."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np

from sarb.batches.features import check_elsewhere
from sarb.bulk.ranks import rank
from sarb.errors import SarbError
from sarb.inference.prediction import predict
from sarb.labelling.calibration import Calibration, calibrate
from sarb.labelling.folds import out_of_fold
from sarb.labelling.scale import on_scale
from sarb.labelling.thresholds import HALF
from sarb.model import load_model
from sarb.report import write_report
from sarb.report.report import FEW_POSITIVES
from sarb.report.stored import write_measured
from sarb.runs.folder import RunFolder
from sarb.runs.lookup import missing
from sarb.settings import Settings
from sarb.workflows.labelled import both, run_data, trained_on

#: how many extreme thresholds are named
NAMED = 5


def calibrate_session(
    run: Path, *, folds: int = 3, method: str = "platt", seed: int = 0, progress: bool = True
) -> Calibration:
    """Everything behind ``sarb calibrate``; write the out-of-fold scores, the calibration and what shows it."""
    folder = RunFolder(run)
    check_elsewhere(folder.cached, "this run was trained without it")
    train = trained_on(run, run_data(run).train)
    parts_of_fit = int(folder.config.get("out_of_fold", 0))  # a fitted run has its scores already
    scores = folder.out_of_fold if parts_of_fit else None
    folds = parts_of_fit or folds
    if scores is None:
        scores = out_of_fold(
            train, folds, part_seed=seed, out=folder.folds, progress=progress, settings=same_training(folder)
        )
        _only_the_first()
        final = predict(load_model(run), train, cache=folder.cached, unreadable="skip", progress=progress)
        final, labels = both(final, train.labels)
        scores, labels = both(scores, labels)
        final, _ = both(final, labels)
        scores = on_scale(scores, final, labels)
        folder.write_out_of_fold(scores)
    else:
        _only_the_first()
        # after fine-tuning, only the images that did not train the backbone have out-of-fold scores
        scores, labels = both(scores, train.labels)
    images = f", {len(labels):,} held-out images" if folder.train and len(labels) < len(folder.train) else ""
    source = f"out-of-fold scores of the known training labels{images}, {folds} parts"
    found = calibrate(scores, labels, method=method, source=source, kind="out-of-fold")
    found = replace(found, figures={**found.figures, "parts": folds})
    calibration = folder.write_calibration(found)
    shutil.rmtree(folder.folds, ignore_errors=True)
    show_again(folder)
    return calibration


def _only_the_first() -> None:
    """Under ``torchrun``, all processes train the parts, and the first one does the rest."""
    if rank():
        raise SystemExit(0)


def undo_calibration(run: Path) -> None:
    """Everything behind ``sarb calibrate --undo``: probabilities and thresholds are the network's own again."""
    if not run.exists():
        raise missing(run)
    folder = RunFolder(run)
    if not folder.remove_calibration():
        raise SarbError(f"{run}: is not calibrated, so there is nothing to undo")
    show_again(folder)


def show_again(folder: RunFolder) -> None:
    """Write the metrics and the report of a run again, so that they show its calibration."""
    write_measured(folder)
    if folder.report_page.is_file():
        write_report(folder.path)


def same_training(folder: RunFolder) -> Settings:
    """The settings of a run, for another training of the same length without validation images."""
    settings = folder.settings()
    # early stopping needs validation images; the epochs have grown to min_steps already
    return replace(settings, patience=None, min_steps=0, cache=True if folder.cached else None)


def describe(calibration: Calibration, run: str | Path = "RUN") -> str:
    """The figures of the calibration of a run in a few lines."""
    lines = [f"calibrated ({calibration.method}) on {calibration.source}"]
    for name, key in (("calibration error", "calibration_error"), ("Brier score", "brier_score")):
        figures = calibration.figures.get(key, {})
        parts = (f"{kind.replace('_', ' ')} {value:.4f}" for kind, value in figures.items())
        lines.append(f"{name}: " + ", ".join(parts))
    return "\n".join([*lines, *_decisions(calibration), *_doubt(calibration, run)])


def _decisions(calibration: Calibration) -> list[str]:
    """What the thresholds are worth on held-out labels that did not choose them, and which of them are extreme."""
    of1 = calibration.figures.get("OF1")
    if not of1:
        return []
    lines = [
        f"OF1 on the held-out labels: {of1['half']:.1f} at {HALF:g}, {of1['chosen']:.1f} at thresholds per category "
        "(each measured on labels that did not choose it)"
    ]
    if (calibration.thresholds == HALF).all():
        lines.append(f"thresholds: {HALF:g} is kept for all categories, because chosen ones are no better")
    extreme = calibration.figures.get("extreme", [])
    if extreme:
        more = f"; and {len(extreme) - NAMED:,} more" if len(extreme) > NAMED else ""
        lines.append(f"look at these thresholds: {'; '.join(extreme[:NAMED])}{more}")
    return lines


def _doubt(calibration: Calibration, run: str | Path) -> list[str]:
    """A sentence where the figures say little, or speak against the calibration; and how to undo it."""
    positives = int(calibration.counts[0].sum())
    error = calibration.figures.get("calibration_error", {})
    kept = f"The calibration is kept and used from now on; 'sarb calibrate {run} --undo' removes it"
    if positives < FEW_POSITIVES:
        few = f"only {positives} held-out labels are present: differences between these numbers are noise"
        return [f"{few}. {kept}"]
    if error.get("after", 0) >= error.get("before", np.inf):
        good = "no better than before: as far as these labels can tell, the probabilities were already good"
        return [f"{good}. {kept}"]
    brier = calibration.figures.get("brier_score", {})
    if brier.get("after", 0) > brier.get("before", np.inf):
        by = brier["after"] - brier["before"]
        mixed = (
            f"the calibration error is better, but the Brier score is worse (by {by:.4f}): "
            "on average the probabilities are nearer to the truth, single ones are not, so expect no improvement"
        )
        return [f"{mixed}. {kept}"]
    return []
