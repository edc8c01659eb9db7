"""Measure one case: the literal formula, ours and a lower bound, alternating in one process.

    case = Case("square", literal=lambda: [x * x for x in range(10**6)], ours=lambda: np.arange(10**6) ** 2)
    result = run(case)          # result.ratio, result.memory_ratio, result.distance

Peak memory is what one call adds to the resident memory of the process: return free heap pages
(``malloc_trim``), reset the kernel's high-water mark (``/proc/self/clear_refs``), run the call, read the
mark. This does not sample, so it misses no short peak. It is left out if the kernel does not support it. On a
GPU it is ``torch.cuda.max_memory_allocated``.
"""

from __future__ import annotations

import ctypes
import gc
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TypeVar

#: if the literal formula takes more seconds than this, run only three rounds
LONG = 20.0
LONG_ROUNDS = 3
#: smaller peaks are noise and count as this many bytes
LEAST_MEMORY = 1 << 20

Work = Callable[[], object]
T = TypeVar("T")


@dataclass
class Case:
    """One row of the benchmark.

    Create data on first use (:func:`lazy`), so that listing the cases costs nothing.

    Attributes:
        name: ``part: what, sizes``; ``--only`` matches a part of it.
        literal: the formula as anyone would write it; None if there is none.
        ours: the implementation in the package.
        floor: work that no implementation can avoid.
        scale: factor for the time of the literal formula if it runs on a part of the data; its memory is then
            not compared.
        repeats: number of rounds.
        note: one line that explains the literal formula, the floor and the goal.
        memory: measure the peak memory of both.
        slow: run only if named or with ``--all``.
        items: images (or other items) per call, to print items per second.
        skip: reason why it cannot run here.
        detail: called after the measurement; its text is added to the note.
    """

    name: str
    literal: Work | None
    ours: Work
    floor: Work | None = None
    scale: float = 1.0
    repeats: int = 5
    note: str = ""
    memory: bool = True
    slow: bool = False
    items: int = 0
    skip: str = ""
    detail: Callable[[], str] | None = None


@dataclass
class Result:
    """Medians over the rounds in seconds and bytes; ratios are medians of the ratios within a round."""

    name: str
    note: str = ""
    skipped: str = ""
    rounds: int = 0
    literal: float | None = None
    ours: float | None = None
    floor: float | None = None
    ratio: float | None = None
    distance: float | None = None
    literal_memory: int | None = None
    ours_memory: int | None = None
    memory_ratio: float | None = None
    per_second: float | None = None
    times: dict[str, list[float]] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """Return all fields, ready for JSON."""
        return asdict(self)


def lazy(build: Callable[[], T]) -> Callable[[], T]:
    """Return a function that calls ``build`` once, on its first call."""
    made: list[T] = []

    def get() -> T:
        if not made:
            made.append(build())
        return made[0]

    return get


def run(case: Case, rounds: int | None = None) -> Result:
    """Measure a case: one warm-up call each, then rounds of literal, ours and floor.

    Args:
        case: what to measure.
        rounds: None uses the case's own number, at least five; three if the literal formula takes over 20
            seconds.
    """
    if case.skip:
        return Result(case.name, case.note, skipped=case.skip)
    named = {"literal": case.literal, "ours": case.ours, "floor": case.floor}
    parts = {name: work for name, work in named.items() if work is not None}
    warm_up = {name: seconds(work) for name, work in parts.items()}
    shortened = rounds is None and warm_up.get("literal", 0.0) > LONG
    if rounds is None:
        rounds = LONG_ROUNDS if shortened else max(5, case.repeats)
    times: dict[str, list[float]] = {name: [] for name in parts}
    for _ in range(rounds):
        for name, work in parts.items():
            times[name].append(seconds(work) * (case.scale if name == "literal" else 1.0))
    result = Result(case.name, case.note, rounds=rounds, times=times)
    _summarise(result, case)
    if case.memory:
        _measure_memory(result, case)
    notes = [case.note] if case.note else []
    if shortened:
        notes.append(f"{rounds} rounds only, the literal formula is slow")
    if case.scale != 1:
        notes.append(f"literal timed on a part, × {case.scale:g}")
    if case.detail is not None:
        notes.append(case.detail())
    result.note = "; ".join(notes)
    return result


def _summarise(result: Result, case: Case) -> None:
    times = result.times
    for name, values in times.items():
        setattr(result, name, statistics.median(values))
    if "literal" in times:
        result.ratio = _median_ratio(times["literal"], times["ours"])
    if "floor" in times:
        result.distance = _median_ratio(times["ours"], times["floor"])
    if case.items:
        result.per_second = case.items / statistics.median(times["ours"])


def _median_ratio(above: list[float], below: list[float]) -> float:
    # Within a round the machine is equally busy for both; this is not true for separate medians.
    return statistics.median(a / b for a, b in zip(above, below, strict=True))


def _measure_memory(result: Result, case: Case) -> None:
    result.ours_memory = peak_memory(case.ours)
    if case.literal is None:
        return
    result.literal_memory = peak_memory(case.literal)
    if result.ours_memory is not None and result.literal_memory is not None and case.scale == 1:
        result.memory_ratio = result.literal_memory / result.ours_memory


def seconds(work: Work) -> float:
    """Return the time of one call."""
    torch = _torch_with_gpu()
    started = time.perf_counter()
    work()
    if torch is not None:
        torch.cuda.synchronize()
    return time.perf_counter() - started


def peak_memory(work: Work) -> int | None:
    """Return the bytes that one call adds at its peak; None if it cannot be measured."""
    gc.collect()
    torch = _torch_with_gpu()
    if torch is not None:
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        work()
        torch.cuda.synchronize()
        return max(LEAST_MEMORY, int(torch.cuda.max_memory_allocated() - before))
    if not _reset_peak():
        return None
    before = status("VmRSS")
    work()
    return max(LEAST_MEMORY, status("VmHWM") - before)


def _torch_with_gpu() -> Any:
    """Return torch if it is imported and has a GPU."""
    torch = sys.modules.get("torch")
    return torch if torch is not None and torch.cuda.is_available() else None


def _reset_peak() -> bool:
    """Return free heap pages, then set the high-water mark to the current resident memory."""
    try:
        # Otherwise the call could reuse memory that an earlier call freed, and it would not be counted.
        ctypes.CDLL(None).malloc_trim(0)
        Path("/proc/self/clear_refs").write_text("5")
    except (OSError, AttributeError):
        return False
    return True


def status(key: str) -> int:
    """Return a value of ``/proc/self/status`` in bytes."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(key + ":"):
            return int(line.split()[1]) * 1024
    raise AssertionError(f"/proc/self/status has no {key}")
