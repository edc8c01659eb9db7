"""OpenVINO as an engine for the frozen trunk, without what it does to a process beside that.

- Its import reports to its makers by default; here it sends nothing.
- Each core sets a signal stack and puts the previous one back when it goes. With several cores that one may
  be gone already, and the next signal (Ctrl-C, the end of a worker) would end the process: so there is one.
- On some processors some versions end the process when they compile a model (SIGFPE on AMD Zen 4,
  https://github.com/openvinotoolkit/openvino/issues/35943): so another process tries it first.
"""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import numpy as np
import torch
from torch import Tensor

from sarb.errors import SarbError

#: seconds that the other process may take; it needs one
PATIENCE = 60.0

TRIAL = """
import sys
sys.modules["openvino_telemetry"] = None
import numpy, openvino
core = openvino.Core()
model = core.read_model(sys.stdin.buffer.read())
sizes = [size.get_length() for size in list(model.input().partial_shape)[1:]]
core.compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})(numpy.zeros([2, *sizes], "float32"))
"""


def openvino_engine(content: bytes, threads: int) -> Callable[[Tensor], Tensor]:
    """Compile an ONNX model; return images (B, 3, S, S) -> activations (B, c, h, w)."""
    _try_elsewhere(content)
    core = _core()
    settings = {
        "PERFORMANCE_HINT": "LATENCY",  # all threads work on one batch
        "INFERENCE_NUM_THREADS": threads,
        "INFERENCE_PRECISION_HINT": "f32",  # it would take bf16 on processors that have it
        "ENABLE_CPU_PINNING": False,  # the threads that decode, and other processes, need the same cores
    }
    request = core.compile_model(core.read_model(content), "CPU", settings).create_infer_request()
    lock = threading.Lock()  # a request has one input and one output

    def run(images: Tensor) -> Tensor:
        with lock:
            found = request.infer({0: images.numpy()}, share_inputs=True, share_outputs=True)[0]
            return torch.from_numpy(np.array(found))

    return run


def _try_elsewhere(content: bytes) -> None:
    """Compile and run the model in another process; raise if that fails or ends by a signal."""
    command = [sys.executable, "-c", TRIAL]
    done = subprocess.run(command, input=content, capture_output=True, timeout=PATIENCE, check=False)
    if done.returncode < 0:
        raise SarbError(f"it ended a trial process by signal {-done.returncode}")
    if done.returncode > 0:
        last = done.stderr.decode(errors="replace").strip().splitlines()[-1:]
        raise SarbError(f"a trial process failed: {' '.join(last)}")


@cache
def _core() -> Any:
    """The only core of this process."""
    with _no_telemetry():
        import openvino
    return openvino.Core()


@contextmanager
def _no_telemetry() -> Iterator[None]:
    """Import openvino as if its telemetry package were not installed; it does without."""
    package = "openvino_telemetry"
    before = sys.modules.get(package)
    sys.modules[package] = None  # type: ignore[assignment]
    try:
        yield
    finally:
        if before is None:
            del sys.modules[package]
        else:
            sys.modules[package] = before
