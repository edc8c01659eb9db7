"""``sarb predict``: label images with a model, or with an exported one without torch."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sarb.data.images import find_images
from sarb.errors import ImageError
from sarb.inference.onnx import OnnxModel
from sarb.labelling.calibration import Calibration
from sarb.labelling.formats import both_csv
from sarb.scores import Scores

Labels = list[tuple[str, float]]


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
    """Everything behind ``sarb predict``; return the scores as they are printed.

    A calibrated model gives calibrated probabilities, and without ``top_k`` and ``threshold`` its own
    thresholds decide.
    """
    files = find_images(images)
    raw, calibration = _score(run, onnx, files, progress=len(files) > 1, **options)
    if not len(raw):
        raise ImageError("\n".join(reason for _, reason in raw.skipped))
    scores = calibration.scores(raw)
    own_thresholds = calibration.fitted and top_k is None and threshold is None
    if out is not None:
        _write(raw, scores, calibration.fitted and not own_thresholds, out, top_k, threshold)
    chosen = calibration.decided(raw) if own_thresholds else _ranked(scores, top_k, threshold)
    if own_thresholds and out is None:
        print(
            "sarb: each category has its own threshold (best F1 on held-out labels); "
            "use --threshold 0.5 to set one for all",
            file=sys.stderr,
        )
    if as_json:
        rows = [
            {"file_name": path, "labels": dict(labels)}
            for path, labels in zip(scores.paths, chosen, strict=True)
        ]
        print(json.dumps(rows, indent=2, ensure_ascii=False))
    elif out is None:
        for path, labels in zip(scores.paths, chosen, strict=True):
            text = ", ".join(f"{label} {probability:.2f}" for label, probability in labels)
            print(f"{path}: {text or 'nothing above the threshold'}")
    else:
        print(f"{len(scores):,} images labelled in {out}", file=sys.stderr)
    return raw


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
    """Per image the most probable labels: five, ``top_k``, or all that reach ``threshold``."""
    count = len(scores.categories) if threshold is not None else (top_k or 5)
    return [
        [(label, probability) for label, probability in ranked[:top_k] if probability >= (threshold or 0)]
        for ranked in scores.top(count)
    ]
