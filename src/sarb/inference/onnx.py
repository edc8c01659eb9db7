"""An exported model at work: Pillow, NumPy and onnxruntime, no torch.

>>> from sarb.inference.onnx import OnnxModel
>>> OnnxModel("model.onnx").predict(["photo.jpg"]).top(3)  # doctest: +SKIP
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from sarb.batches.prefetch import Ahead, cores
from sarb.data.images import EvalTransform, decode
from sarb.errors import ImageError, SarbError
from sarb.labelling.calibration import Calibration
from sarb.progress import Progress
from sarb.scores import Scores

#: raised when the metadata change in a way that older code must not read
FORMAT = 1
#: names of input and output
INPUT = "images"
OUTPUT = "logits"


def describe(
    categories: Sequence[str],
    transform: EvalTransform,
    config: dict[str, Any],
    calibration: Calibration,
) -> dict[str, str]:
    """Metadata of an exported file, as JSON values, so that any program can use the model."""
    values = {
        "sarb_format": FORMAT,
        "categories": list(categories),
        "preprocessing": {
            **transform.config(),
            "colours": "RGB, 0 to 255, EXIF orientation applied, transparency on white",
            "resize": "bicubic with antialiasing, squashed to size × size",
            "normalise": "(pixel - mean) / std",
            "layout": "float32 (batch, 3, size, size)",
        },
        "config": config,
        "reading": {
            "probabilities": calibration.probabilities_are,
            "thresholds": calibration.thresholds_are,
        },
    }
    if calibration.fitted:
        values["calibration"] = calibration.ordered(categories).to_dict()
    return {key: json.dumps(value, ensure_ascii=False) for key, value in values.items()}


class OnnxModel:
    """A model written by :func:`sarb.export`.

    Args:
        file: the ``.onnx`` file, or its bytes.
        threads: of onnxruntime; 0 lets it choose.

    Attributes:
        categories: C names, in the order of the logits.
        transform: image -> input array, the same as in training.
        calibration: how to read the logits, as when the model was exported.
        config: network, backbone, image size.
    """

    def __init__(self, file: str | Path | bytes, threads: int = 0) -> None:
        self.session = _session(file, threads)
        name = "the model" if isinstance(file, bytes) else str(file)
        stored = self.session.get_modelmeta().custom_metadata_map
        if not {"sarb_format", "categories", "preprocessing"} <= set(stored):
            raise SarbError(
                f"{name}: not exported by sarb (its metadata name no categories); use 'sarb export'"
            )
        if json.loads(stored["sarb_format"]) > FORMAT:
            raise SarbError(f"{name}: exported by a newer sarb; please upgrade")
        self.categories = tuple(json.loads(stored["categories"]))
        wanted = json.loads(stored["preprocessing"])
        known = EvalTransform(1).config()
        self.transform = EvalTransform(**{key: value for key, value in wanted.items() if key in known})
        self.calibration = Calibration.identity(self.categories)
        if "calibration" in stored:
            self.calibration = Calibration.from_dict(json.loads(stored["calibration"]), name)
        self.config = json.loads(stored.get("config", "{}"))

    def __repr__(self) -> str:
        return f"OnnxModel({len(self.categories)} categories, {self.transform.size} px)"

    def logits(self, images: NDArray[np.float32]) -> NDArray[np.float32]:
        """Images (B, 3, S, S), as :attr:`transform` makes them -> logits (B, C)."""
        found: NDArray[np.float32] = self.session.run([OUTPUT], {INPUT: images})[0]
        return found

    def predict(
        self,
        images: Sequence[Any] | str | Path,
        *,
        batch_size: int = 32,
        progress: bool = False,
        unreadable: Literal["raise", "skip"] = "raise",
        skipped: list[tuple[str, str]] | None = None,
    ) -> Scores:
        """Score images, as :func:`sarb.predict` does; the next ones are decoded while the network works.

        The logits are the network's own: ``model.calibration(scores)`` gives calibrated probabilities.

        Args:
            images: a path, or a list of paths, Pillow images or arrays.
            batch_size: images per step.
            progress: draw a progress bar.
            unreadable: as in :func:`sarb.predict`.
            skipped: as in :func:`sarb.predict`.
        """
        sources = [images] if isinstance(images, str | Path) else list(images)
        names = [
            str(item) if isinstance(item, str | Path) else f"image {i}" for i, item in enumerate(sources)
        ]
        files = all(isinstance(item, str | Path) for item in sources)
        batches = [
            list(range(at, min(at + batch_size, len(sources)))) for at in range(0, len(sources), batch_size)
        ]
        ahead = Ahead(lambda row: self._input(sources[row]), _readable, batches, cores() if files else 1)
        logits = [np.zeros((0, len(self.categories)), np.float32)]
        kept = list[str]()
        left_out = list[tuple[str, str]]()
        with Progress(progress).bar("predicting", len(sources)) as advance:
            for rows, arrays, failures in ahead:
                if failures and unreadable == "raise" and skipped is None:
                    raise ImageError(failures[0][1])
                left_out += [(names[row], reason) for row, reason in failures]
                if rows:
                    logits.append(self.logits(np.stack(arrays)))
                    kept += [names[row] for row in rows]
                advance(len(rows) + len(failures))
        if skipped is not None:
            skipped += left_out
        return Scores(np.concatenate(logits), self.categories, kept, left_out)

    def _input(self, source: Any) -> NDArray[np.float32] | str:
        """The input array of one image, or why it cannot be read."""
        try:
            return self.transform(decode(source, self.transform.least))
        except ImageError as error:
            return str(error)


def _readable(
    rows: Sequence[int], items: list[NDArray[np.float32] | str]
) -> tuple[list[int], list[NDArray[np.float32]], list[tuple[int, str]]]:
    """Rows that could be read, their arrays, and (row, reason) of the others."""
    pairs = list(zip(rows, items, strict=True))
    found = [(row, item) for row, item in pairs if not isinstance(item, str)]
    return (
        [row for row, _ in found],
        [item for _, item in found],
        [(row, item) for row, item in pairs if isinstance(item, str)],
    )


def _session(file: str | Path | bytes, threads: int) -> Any:
    """Open a file in onnxruntime; what goes wrong is one line."""
    if not isinstance(file, bytes) and not Path(file).is_file():
        raise SarbError(f"{file}: no such file; 'sarb export RUN {Path(file).name}' writes one")
    try:
        import onnxruntime
    except ImportError as error:
        raise SarbError("ONNX models need onnxruntime: pip install 'sarb[export]'") from error
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads or cores()
    options.log_severity_level = 3  # warnings are about its own choices, nothing a user could mend
    try:
        given = file if isinstance(file, bytes) else str(file)
        providers = [name for name in onnxruntime.get_available_providers() if not name.startswith("Azure")]
        return onnxruntime.InferenceSession(given, options, providers=providers)
    except Exception as error:  # onnxruntime has a class for every status, all private
        reason = " ".join(str(error).split())[:200]
        raise SarbError(
            f"{'the model' if isinstance(file, bytes) else file}: not an ONNX model ({reason})"
        ) from error
