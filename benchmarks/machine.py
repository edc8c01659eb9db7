"""Describe this computer and measure its speed."""

from __future__ import annotations

import os
import platform
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.harness import seconds

#: matrix products (rows, inner, columns) in the paper's sizes
SHAPES = {
    "1024³": (1024, 1024, 1024),
    "SD image": (784, 1024, 512),
    "gate message": (1280, 2048, 1024),
    "gate state": (1280, 1024, 1024),
}


def machine() -> dict[str, Any]:
    """Return hardware, GFLOP/s of products in the paper's sizes, bandwidth of a copy, and versions."""
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "gpu": torch.cuda.get_device_name() if torch.cuda.is_available() else None,
        "gflops": {name: round(_gflops(*shape), 1) for name, shape in SHAPES.items()},
        "copy_gigabytes_per_second": round(_bandwidth(), 1),
        "load": os.getloadavg()[0],
        "versions": {
            "python": platform.python_version(),
            "torch": torch.__version__,
            "numpy": np.__version__,
        },
    }


def _processor() -> str:
    file = Path("/proc/cpuinfo")
    lines = file.read_text().splitlines() if file.is_file() else []
    return next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), "unknown")


def _device() -> str:
    return "cuda" if torch.cuda.is_available() else "cpu"


def _gflops(rows: int, inner: int, columns: int) -> float:
    left = torch.randn(rows, inner, device=_device())
    right = torch.randn(inner, columns, device=_device())
    best = min(seconds(lambda: left @ right) for _ in range(10))
    return 2 * rows * inner * columns / best / 1e9


def _bandwidth() -> float:
    """Return the gigabytes per second that a copy of 256 MB reads plus writes."""
    source = torch.ones(1 << 26, device=_device())
    target = torch.empty_like(source)
    best = min(seconds(lambda: target.copy_(source)) for _ in range(5))
    return 2 * source.numel() * 4 / best / 1e9
