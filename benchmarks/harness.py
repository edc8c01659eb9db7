"""Measure one case: the plain formula, ours and a floor, in turns in one process.

    case = Case("square", literal=lambda: [x * x for x in range(10**6)], ours=lambda: np.arange(10**6) ** 2)
    result = run(case)          # result.ratio, result.memory_ratio, result.distance

Peak memory is what one call adds to the resident memory of the process: free heap pages are given back
(``malloc_trim``), the kernel's high-water mark is reset (``/proc/self/clear_refs``), the call runs, the mark
is read. Nothing is sampled, so no short peak is missed; where the kernel does not offer it, the memory is
left out. On a GPU it is what ``torch.cuda.max_memory_allocated`` says.
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

#: above so many seconds for the literal formula, three rounds have to do
LONG = 20.0
LONG_ROUNDS = 3
#: a smaller peak than this cannot be told from noise and is counted as so much
LEAST_MEMORY = 1 << 20

Work = Callable[[], object]
T = TypeVar("T")


@dataclass
class Case:
    """One line of the benchmark. Make data on first use (:func:`lazy`): a case that is only listed should
    cost nothing.

    Attributes:
        name: ``part: what, sizes``; ``--only`` looks for a part of it.
        literal: the formula as anyone would write it; None where there is none.
        ours: what the package does.
        floor: the work that no implementation can avoid.
        scale: the literal formula runs on a part; its time is multiplied by this (and its memory not
            compared).
        repeats: rounds.
        note: one line: what the literal formula and the floor are, and the goal.
        memory: measure the peak memory of both.
        slow: run only when named or with ``--all``.
        items: images (or other things) per call, to print so many per second.
        skip: why it cannot run here.
        detail: called after the measurement, its text is added to the note.
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
    """Medians over the rounds, in seconds and bytes; ratios are medians of the ratios within a round."""

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
        """Return all of it, ready for JSON."""
        return asdict(self)


def lazy(build: Callable[[], T]) -> Callable[[], T]:
    """Return a function that builds once, on its first call."""
    made: list[T] = []

    def get() -> T:
        if not made:
            made.append(build())
        return made[0]

    return get


def run(case: Case, rounds: int | None = None) -> Result:
    """Measure a case: one warm-up each, then rounds in which literal, ours and floor take turns.

    Args:
        case: what to measure.
        rounds: None takes the case's own number, at least five unless the literal formula takes over 20
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
    # Within a round both see the same machine, however busy it is; the medians of each alone may not.
    return statistics.median(a / b for a, b in zip(above, below, strict=True))


def _measure_memory(result: Result, case: Case) -> None:
    result.ours_memory = peak_memory(case.ours)
    if case.literal is None:
        return
    result.literal_memory = peak_memory(case.literal)
    if result.ours_memory is not None and result.literal_memory is not None and case.scale == 1:
        result.memory_ratio = result.literal_memory / result.ours_memory


def seconds(work: Work) -> float:
    """Time one call."""
    torch = _torch_with_gpu()
    started = time.perf_counter()
    work()
    if torch is not None:
        torch.cuda.synchronize()
    return time.perf_counter() - started


def peak_memory(work: Work) -> int | None:
    """Bytes that one call needs at most on top of what is held already; None where it cannot be measured."""
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
    """Torch, if it is loaded and has a GPU."""
    torch = sys.modules.get("torch")
    return torch if torch is not None and torch.cuda.is_available() else None


def _reset_peak() -> bool:
    """Give free heap pages back, then set the high-water mark to what is resident now."""
    try:
        # What an earlier call has freed would otherwise serve this one, and its memory would not be seen.
        ctypes.CDLL(None).malloc_trim(0)
        Path("/proc/self/clear_refs").write_text("5")
    except (OSError, AttributeError):
        return False
    return True


def status(key: str) -> int:
    """Bytes of a line of ``/proc/self/status``."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(key + ":"):
            return int(line.split()[1]) * 1024
    raise AssertionError(f"/proc/self/status has no {key}")
