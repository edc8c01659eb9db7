"""Engines: what runs the frozen trunk on the CPU: PyTorch, or ONNX Runtime or OpenVINO if that is faster here.

The trunk is exported once, each installed engine is compared with PyTorch on a batch of real images, and the
fastest one is used. An engine must equal PyTorch within ``CLOSE`` (1e-4) of the largest activation, as folded
batch norms must. The cache rounds to fp16, which changes that activation by up to 5e-4 of it, so the engine is
no part of the cache key. An engine that cannot be used never stops a run.

``SARB_ENGINE`` names the engine: ``torch``, ``onnxruntime``, ``openvino``, or ``auto`` (the default), which
measures if PyTorch alone would take more than ``LEAST_SECONDS``. Training on image files, without the cache,
keeps PyTorch unless an engine is named: a run that is taken up again must not depend on a measurement.
"""

from __future__ import annotations

import io
import os
import time
import warnings
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from typing import NamedTuple

import torch
from torch import Tensor, nn

from sarb.batches.openvino_engine import openvino_engine
from sarb.errors import ConfigError, SarbError, unknown_name
from sarb.networks.backbones.base import Backbone
from sarb.networks.backbones.fold import CLOSE, folded

Run = Callable[[Tensor], Tensor]

VARIABLE = "SARB_ENGINE"
#: fewer images are not worth exporting the trunk
LEAST_IMAGES = 256
#: PyTorch must need at least this long; export and measurement take about three seconds
LEAST_SECONDS = 10.0
#: images of the batch on which an engine is compared with PyTorch
COMPARED = 4
#: timed runs per engine, in turn; the best one counts
ROUNDS = 2


class Engine(NamedTuple):
    """What computes activations: a name for people, and images (B, 3, S, S) -> activations (B, c, h, w)."""

    name: str
    run: Run


class _Key(NamedTuple):
    """All that decides which engine is the fastest."""

    wanted: str
    trunk: str
    size: int
    threads: int


#: the last choice, for the next data set with the same trunk; None for PyTorch
_chosen: dict[_Key, Engine | None] = {}


def wanted_engine() -> str:
    """Return the value of ``SARB_ENGINE``, ``auto`` by default; a wrong one is an error."""
    wanted = os.environ.get(VARIABLE, "").strip().lower() or "auto"
    if wanted not in ("auto", "torch", *BUILDERS):
        raise ConfigError([f"{VARIABLE}: {unknown_name('engine', wanted, ('auto', 'torch', *BUILDERS))}"])
    return wanted


def choose_engine(
    backbone: Backbone,
    sample: Callable[[], Tensor],
    images: int,
    say: Callable[[str], None],
    wanted: str | None = None,
) -> Engine:
    """Return the engine for the frozen stages of a backbone in eval mode, and say which one if it measured.

    Args:
        backbone: on its device; engines other than PyTorch run on the CPU only.
        sample: returns a batch (B, 3, S, S) of the images to come; called only if it is needed.
        images: how many images there are.
        say: receives the lines for the user.
        wanted: name of the engine, or ``auto``; None is what ``SARB_ENGINE`` says.
    """
    plain = Engine("PyTorch", backbone.frozen)
    wanted = wanted or wanted_engine()
    if wanted == "torch":
        return plain
    if next(backbone.parameters()).device.type != "cpu":
        if wanted != "auto":
            say(f"features by PyTorch: {NAMES[wanted]} runs on the CPU only")
        return plain
    if wanted == "auto" and images < LEAST_IMAGES:
        return plain
    batch = sample()
    if not len(batch):
        return plain
    key = _Key(wanted, backbone.frozen_fingerprint(), batch.shape[-1], torch.get_num_threads())
    with torch.inference_mode():
        if key not in _chosen:
            if wanted == "auto" and _estimate(plain, batch, images) < LEAST_SECONDS:
                return plain
            _chosen.clear()
            _chosen[key] = _fastest(plain, wanted, backbone, batch, say)
    return _chosen[key] or plain


def named_engine(backbone: Backbone, sample: Callable[[], Tensor], say: Callable[[str], None]) -> Run | None:
    """Return the engine that ``SARB_ENGINE`` names, for training on image files; None for PyTorch."""
    wanted = wanted_engine()
    if wanted in ("auto", "torch") or backbone.train_stages == len(backbone.stage_names):
        return None
    chosen = choose_engine(folded(backbone), sample, 0, say, wanted)
    return chosen.run if chosen.name in NAMES.values() else None


def _estimate(engine: Engine, batch: Tensor, images: int) -> float:
    """Seconds for all images, from one batch after a small one."""
    engine.run(batch[:COMPARED])
    return _seconds(engine, batch) * images / len(batch)


def _fastest(
    plain: Engine, wanted: str, backbone: Backbone, batch: Tensor, say: Callable[[str], None]
) -> Engine | None:
    """Return the fastest engine that agrees with PyTorch, or the wanted one; None for PyTorch."""
    installed = [name for name in BUILDERS if find_spec(name) is not None and wanted in ("auto", name)]
    if not installed:
        which = "faster" if wanted == "auto" else f"{NAMES[wanted]} is not installed:"
        say(f"features by PyTorch ({which} with pip install 'sarb[fast]')")
        return None
    engines = _agreeing(installed, backbone, batch[:COMPARED], say)
    if not engines:
        say("features by PyTorch")
        return None
    if wanted != "auto":
        say(f"features by {engines[0].name}, as {VARIABLE} says")
        return engines[0]
    everyone = [plain, *engines]
    times = {engine.name: float("inf") for engine in everyone}
    for _ in range(ROUNDS):
        for engine in everyone:
            times[engine.name] = min(times[engine.name], _seconds(engine, batch))
    best = min(everyone, key=lambda engine: times[engine.name])
    speeds = {name: times[plain.name] / value for name, value in times.items()}
    say(_told(best.name, speeds))
    return None if best is plain else best


def _told(best: str, speeds: Mapping[str, float]) -> str:
    others = ", ".join(
        f"{name} {speed:.1f} x" for name, speed in speeds.items() if name not in ("PyTorch", best)
    )
    more = f" ({others})" if others else ""
    if best == "PyTorch":
        return f"features by PyTorch, the fastest on this machine{more}"
    return f"features by {best}: {speeds[best]:.1f} x PyTorch on this machine{more}"


def _seconds(engine: Engine, batch: Tensor) -> float:
    started = time.perf_counter()
    engine.run(batch)
    return time.perf_counter() - started


def _agreeing(
    names: list[str], backbone: Backbone, batch: Tensor, say: Callable[[str], None]
) -> list[Engine]:
    """Build engines; keep those that equal PyTorch on a batch and on one image, as the last batch may be."""
    try:
        content = _exported(backbone, batch.shape[-1])
    except Exception as error:  # an exporter may raise anything; PyTorch can still do the work
        say(f"the backbone cannot be exported for a faster engine: {_reason(error)}")
        return []
    engines = list[Engine]()
    expected = backbone.frozen(batch)
    largest = float(expected.abs().max())
    for name in names:
        try:
            run = BUILDERS[name](content, torch.get_num_threads())
            pairs = [(run(batch), expected), (run(batch[:1]), expected[:1])]
            difference = max(float((found - right).abs().max()) for found, right in pairs)
        except Exception as error:
            say(f"{NAMES[name]} is not used: {_reason(error)}")
            continue
        if difference <= CLOSE * largest:
            engines.append(Engine(NAMES[name], run))
        else:
            say(
                f"{NAMES[name]} is not used: it differs from PyTorch by {difference:.1e}, largest {largest:.1e}"
            )
    return engines


def _reason(error: Exception) -> str:
    name = "" if isinstance(error, SarbError) else f"{type(error).__name__}: "
    return name + " ".join(str(error).split())[:200]


class _Frozen(nn.Module):
    """The frozen stages as a module."""

    def __init__(self, backbone: Backbone) -> None:
        super().__init__()
        self.backbone = backbone

    def forward(self, images: Tensor) -> Tensor:
        return self.backbone.frozen(images)


def _exported(backbone: Backbone, size: int) -> bytes:
    """The frozen stages as ONNX, for images of this size and any number of them."""
    file = io.BytesIO()
    with torch.no_grad(), warnings.catch_warnings():
        # It warns that sizes become constants, as they should, and that a newer exporter exists. That one takes
        # five times as long, which is as long as several hundred images.
        warnings.simplefilter("ignore")
        torch.onnx.export(
            _Frozen(backbone).eval(),
            (torch.zeros(2, 3, size, size),),
            file,  # type: ignore[arg-type]
            dynamo=False,
            input_names=["images"],
            output_names=["maps"],
            dynamic_axes={"images": {0: "batch"}, "maps": {0: "batch"}},
        )
    return file.getvalue()


def _onnxruntime(content: bytes, threads: int) -> Run:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3  # warnings are about its own choices, nothing a user could mend
    # Waiting threads must leave the cores to the threads that decode the next images.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    return lambda images: torch.from_numpy(session.run(None, {"images": images.numpy()})[0])


NAMES = {"onnxruntime": "ONNX Runtime", "openvino": "OpenVINO"}
#: package -> what builds its engine from an ONNX model and a number of threads
BUILDERS: dict[str, Callable[[bytes, int], Run]] = {"onnxruntime": _onnxruntime, "openvino": openvino_engine}
