"""``sarb predict``: label images with a model, or with an exported one without torch."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sarb.data.images import find_images
from sarb.errors import ImageError, printable
from sarb.files import check_names
from sarb.inference.onnx import OnnxModel
from sarb.labelling.calibration import Calibration
from sarb.labelling.formats import both_csv
from sarb.scores import Scores
from sarb.workflows.outputs import are_predictions, check_output

Labels = list[tuple[str, float]]

#: how many labels are named where none reaches its threshold
LIKELY = 3


def predict_session(
    run: Path,
    images: Sequence[Path],
    out: Path | None,
    top_k: int | None,
    threshold: float | None,
    as_json: bool,
    onnx: Path | None = None,
    **options: Any,
) -> Scores:
    """Everything behind ``sarb predict``; return the network's scores.

    A calibrated model gives calibrated probabilities. Without ``top_k`` and ``threshold``, a label is listed
    if it reaches the threshold of its category, which is 0.5 for a model that is not calibrated.
    """
    if out is not None:
        check_output(out, are_predictions, "predictions of 'sarb predict'")
    files = find_images(images)
    if out is not None:
        check_names(map(str, files))
    raw, calibration = _score(run, onnx, files, progress=len(files) > 1, **options)
    if not len(raw):
        raise ImageError("\n".join(reason for _, reason in raw.skipped))
    scores = calibration.scores(raw)
    by_thresholds = top_k is None and threshold is None
    if out is not None:
        _write(raw, scores, calibration.fitted and not by_thresholds, out, top_k, threshold)
    chosen = calibration.decided(raw) if by_thresholds else _ranked(scores, top_k, threshold)
    print(f"sarb: {_said(calibration, by_thresholds and out is None, threshold)}", file=sys.stderr)
    if as_json:
        rows = [
            {"file_name": path, "labels": dict(labels), "calibrated": calibration.fitted}
            for path, labels in zip(scores.paths, chosen, strict=True)
        ]
        print(printable(json.dumps(rows, indent=2, ensure_ascii=False)))
    elif out is None:
        for path, labels, likely in zip(scores.paths, chosen, scores.top(LIKELY), strict=True):
            none = f"nothing reaches the threshold (most likely: {_text(likely)})"
            print(printable(f"{path}: {_text(labels) or none}"))
    else:
        print(f"{len(scores):,} images labelled in {out}", file=sys.stderr)
    return raw


def _said(calibration: Calibration, by_thresholds: bool, threshold: float | None = None) -> str:
    """Which probabilities are printed, and by which thresholds labels were chosen."""
    if by_thresholds:
        return f"{calibration}; --threshold X sets one for all"
    which = (
        "" if threshold is None or not calibration.fitted else "; --threshold compares the calibrated ones"
    )
    return f"probabilities: {calibration.probabilities_are}{which}"


def _text(labels: Labels) -> str:
    return ", ".join(f"{label} {probability:.2f}" for label, probability in labels)


def _score(
    run: Path, onnx: Path | None, files: Sequence[Path], *, workers: int = 0, **options: Any
) -> tuple[Scores, Calibration]:
    """Scores and calibration of a model, or of an exported one, which must not load torch."""
    if onnx is not None:
        exported = OnnxModel(onnx)
        return exported.predict(files, unreadable="skip", **options), exported.calibration
    from sarb.inference.prediction import predict
    from sarb.model import load_model

    model = load_model(run)
    return predict(model, files, workers=workers, unreadable="skip", **options), model.calibration()


def _write(
    raw: Scores, scores: Scores, with_raw: bool, out: Path, top_k: int | None, threshold: float | None
) -> None:
    """Write the probabilities, in the long form beside the network's own where the model is calibrated."""
    if with_raw:
        both_csv(raw, scores, out, top_k, threshold)
    else:
        scores.to_csv(out, top_k=top_k, threshold=threshold)


def _ranked(scores: Scores, top_k: int | None, threshold: float | None) -> list[Labels]:
    """Per image the ``top_k`` most probable labels, or all, that reach ``threshold``."""
    count = top_k or len(scores.categories)
    return [
        [(label, probability) for label, probability in ranked if probability >= (threshold or 0)]
        for ranked in scores.top(count)
    ]
