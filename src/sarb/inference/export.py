"""Export a model to ONNX or torch.export, after comparing it with torch."""

from __future__ import annotations

import copy
import io
import logging
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from sarb.data.demo.scene import draw_scene
from sarb.data.images import Source, decode
from sarb.errors import ConfigError, SarbError, unknown_name
from sarb.files import atomic_write
from sarb.inference.onnx import INPUT, OUTPUT, OnnxModel, describe
from sarb.labelling.calibration import Calibration
from sarb.model import Model, as_model
from sarb.networks.base import Network
from sarb.progress import Progress

#: format -> suffix of its files
FORMATS = {"onnx": ".onnx", "torch": ".pt2"}
#: sizes of the batches that are compared
BATCHES = (1, 7)
#: largest difference of a logit from torch, relative to the largest logit of the image where that is above 1
TOLERANCE = 1e-4
#: the packages that write and check ONNX
PACKAGES = ("onnx", "onnxscript", "onnxruntime")

Run = Callable[[NDArray[np.float32]], NDArray[np.float32]]


@dataclass(frozen=True)
class Exported:
    """What was written.

    Attributes:
        path: the file.
        format: ``"onnx"`` or ``"torch"``.
        differences: batch size -> largest difference of a logit from torch.
        images: how many images were compared.
        size: bytes.
        reading: which probabilities and thresholds the file holds, in words.
    """

    path: Path
    format: str
    differences: dict[int, float]
    images: int
    size: int
    reading: str = ""

    def __str__(self) -> str:
        found = ", ".join(f"batch of {batch}: {value:.1e}" for batch, value in self.differences.items())
        return (
            f"{self.path}: {self.size / 1e6:.1f} MB; largest difference from torch on {self.images} images: {found} "
            f"(at most {TOLERANCE:g}); {self.reading}"
        )


def export(
    model: Model | str | Path,
    path: str | Path,
    *,
    format: str | None = None,
    images: Sequence[Source] = (),
    calibration: Calibration | None = None,
    progress: bool = True,
) -> Exported:
    """Write a model as ONNX (any batch size) or as a ``torch.export`` program, after comparing it with torch.

    The file also holds the categories, the preprocessing and the calibration, so it is enough on its own.

    Args:
        model: a model, or the folder or hub id of one.
        path: ``model.onnx`` or ``model.pt2``.
        format: ``"onnx"`` or ``"torch"``; None goes by the suffix of ``path``.
        images: compare on these as well as on noise and on drawn scenes.
        calibration: to keep in the file, where ``sarb predict --onnx`` uses it; None takes the model's own,
            if any.
        progress: print the comparison to stderr.

    Raises:
        SarbError: a difference above 1e-4 in a logit; nothing is written then.
    """
    path = Path(path)
    kind = _format(path, format)
    model = as_model(model)
    network = model.network.for_export()
    reading = calibration or model.calibration()
    metadata = describe(model.categories, model.transform, model.config, reading)
    with torch.no_grad(), _quiet():
        program = _program(network, model.transform.size)
        content = (_onnx if kind == "onnx" else _torch)(program, metadata)
    inputs = _inputs(model, images)
    differences = compare(_run_torch(model), _runner(kind, content), inputs)
    worst = max(differences.values())
    if not worst <= TOLERANCE:
        raise SarbError(
            f"{path}: not written, a logit differs by {worst:.1e} from torch (at most {TOLERANCE:g})"
        )
    with atomic_write(path, "wb") as file:
        file.write(content)
    done = Exported(path, kind, differences, len(inputs), len(content), str(reading))
    Progress(progress).say(str(done))
    return done


def _format(path: Path, format: str | None) -> str:
    """The format asked for, or that of the suffix; they must not contradict each other."""
    if format is not None and format not in FORMATS:
        raise ConfigError([unknown_name("format", format, FORMATS)])
    by_suffix = {suffix: name for name, suffix in FORMATS.items()}
    kind = format or by_suffix.get(path.suffix.lower())
    if kind is None or path.suffix.lower() != FORMATS[kind]:
        expected = f"a file that ends in {FORMATS[kind] if kind else '.onnx or .pt2'}"
        raise ConfigError([f"export: expected {expected}, got {path.name}"])
    missing = [name for name in PACKAGES if find_spec(name) is None] if kind == "onnx" else []
    if missing:
        raise SarbError(f"export: ONNX needs {' and '.join(missing)}: pip install 'sarb[export]'")
    return kind


@contextmanager
def _quiet() -> Iterator[None]:
    """The exporter talks about its own future at length; errors still come through."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)


class _Whole(nn.Module):
    """A network one level down: torch's programs have an attribute ``graph`` of their own, which ours would
    hide.
    """

    def __init__(self, network: Network) -> None:
        super().__init__()
        self.network = network

    def forward(self, images: Tensor) -> Tensor:
        logits: Tensor = self.network(images)
        return logits


def _program(network: Network, size: int) -> torch.export.ExportedProgram:
    """Trace images (B, 3, S, S) -> logits (B, C) for any B; an example of one would fix B to 1."""
    example = torch.zeros(2, 3, size, size)
    return torch.export.export(_Whole(network), (example,), dynamic_shapes=({0: torch.export.Dim("batch")},))


def _onnx(program: torch.export.ExportedProgram, metadata: dict[str, str]) -> bytes:
    made = torch.onnx.export(program, dynamo=True, verbose=False, input_names=[INPUT], output_names=[OUTPUT])
    assert made is not None
    proto = made.model_proto
    for node in proto.graph.node:  # where in our source each one came from: large, and nobody's business
        del node.metadata_props[:]
        node.doc_string = ""
    del proto.metadata_props[:]
    for key, value in metadata.items():
        proto.metadata_props.add(key=key, value=value)
    content: bytes = proto.SerializeToString()
    return content


def _torch(program: torch.export.ExportedProgram, metadata: dict[str, str]) -> bytes:
    buffer = io.BytesIO()
    torch.export.save(program, buffer, extra_files={f"{key}.json": value for key, value in metadata.items()})
    return buffer.getvalue()


def _inputs(model: Model, images: Sequence[Source]) -> NDArray[np.float32]:
    """(N, 3, S, S): seven of noise, seven drawn scenes, and the given images."""
    noise = np.random.default_rng(0).integers(0, 256, (7, 64, 64, 3), dtype=np.uint8)
    pictures = [*(decode(array) for array in noise), *(draw_scene(0, number, 160)[0] for number in range(7))]
    pictures += [decode(image, model.transform.least) for image in images]
    return np.stack([model.transform(picture) for picture in pictures])


def compare(expected: Run, found: Run, inputs: NDArray[np.float32]) -> dict[int, float]:
    """Batch size -> largest difference of a logit over all inputs; nan where one of the two is nan.

    Rounding grows with the numbers that are added up, so a difference is divided by the largest logit of its
    image where that is above 1.
    """
    differences = {}
    for batch in BATCHES:
        parts = [inputs[start : start + batch] for start in range(0, len(inputs), batch)]
        differences[batch] = float(np.max([_difference(expected(part), found(part)) for part in parts]))
    return differences


def _difference(expected: NDArray[np.float32], found: NDArray[np.float32]) -> np.float32:
    scale = np.maximum(1, np.abs(expected).max(1, keepdims=True))
    largest: np.float32 = (np.abs(expected - found) / scale).max()
    return largest


def _run_torch(model: Model) -> Run:
    network = copy.deepcopy(model.network).eval()

    @torch.inference_mode()
    def run(images: NDArray[np.float32]) -> NDArray[np.float32]:
        logits: NDArray[np.float32] = network(torch.from_numpy(images).to(model.device)).cpu().numpy()
        return logits

    return run


def _runner(kind: str, content: bytes) -> Run:
    """What a user of the file would run."""
    if kind == "onnx":
        return OnnxModel(content).logits
    module = torch.export.load(io.BytesIO(content)).module()

    @torch.inference_mode()
    def run(images: NDArray[np.float32]) -> NDArray[np.float32]:
        logits: NDArray[np.float32] = module(torch.from_numpy(images)).numpy()
        return logits

    return run
