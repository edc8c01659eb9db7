"""What a training costs: time of the cores, whatever else the machine does, and the peak of memory."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

STATUS = Path("/proc/self/status")


@contextmanager
def measured() -> Iterator[dict[str, float | str]]:
    """Fill in ``cpu_seconds`` and ``peak_mb`` at the end; the latter is "" where the system does not tell it."""
    found: dict[str, float | str] = {}
    known = _reset_peak()
    started = time.process_time()
    yield found
    found["cpu_seconds"] = round(time.process_time() - started, 1)
    found["peak_mb"] = round(_peak() / 1e6) if known else ""


def _reset_peak() -> bool:
    """Set the high-water mark of memory to what is used now; whether the system can."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return False
    return STATUS.is_file()


def _peak() -> int:
    """High-water mark in bytes."""
    lines = STATUS.read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:"))
