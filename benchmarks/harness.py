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
LONG, LONG_ROUNDS = 20.0, 3
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
    warm = {name: seconds(work) for name, work in parts.items()}
    long = rounds is None and warm.get("literal", 0.0) > LONG
    if rounds is None:
        rounds = LONG_ROUNDS if long else max(5, case.repeats)
    times: dict[str, list[float]] = {name: [] for name in parts}
    for _ in range(rounds):
        for name, work in parts.items():
            times[name].append(seconds(work) * (case.scale if name == "literal" else 1.0))
    result = Result(case.name, case.note, rounds=rounds, times=times)
    _summarise(result, case)
    if case.memory:
        _measure_memory(result, case)
    extra = [f"{rounds} rounds only, the literal formula is slow"] if long else []
    extra += [f"literal timed on a part, × {case.scale:g}"] if case.scale != 1 else []
    extra += [case.detail()] if case.detail is not None else []
    result.note = "; ".join(text for text in (case.note, *extra) if text)
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
    before = _status("VmRSS")
    work()
    return max(LEAST_MEMORY, _status("VmHWM") - before)


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


def _status(key: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(key + ":"):
            return int(line.split()[1]) * 1024
    raise AssertionError(f"/proc/self/status has no {key}")


def record_products(work: Work) -> list[Work]:
    """Run ``work`` once; return its matrix products and convolutions, forward and backward, to be repeated
    alone.

    Operands of the same shape and strides share their memory: the replay sees the caches at their best, as a
    floor may.
    """
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode

    aten, found, memory = torch.ops.aten, list[Work](), dict[Any, torch.Tensor]()
    plain = {aten.addmm: aten.mm.default, aten.baddbmm: aten.bmm.default}  # the sum is not part of the floor
    kept = (aten.mm, aten.bmm, aten.convolution, aten.convolution_backward)

    def stand_in(place: int, value: Any) -> Any:
        if not isinstance(value, torch.Tensor):
            return value
        key = (place, tuple(value.shape), value.stride(), value.dtype, value.device)
        if key not in memory:
            empty = torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device=value.device)
            memory[key] = empty.zero_() if 0 in value.stride() else empty.normal_()
        return memory[key]

    class Recorder(TorchDispatchMode):  # type: ignore[no-untyped-call]
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            packet, operands = func.overloadpacket, args[1:3] if func.overloadpacket in plain else args
            if packet in plain or packet in kept:
                repeat = plain.get(packet, func)
                given = [stand_in(place, value) for place, value in enumerate(operands)]
                found.append(lambda: repeat(*given))
            return func(*args, **(kwargs or {}))

    with Recorder():  # type: ignore[no-untyped-call]
        work()
    return found


def gigaflops(work: Work) -> float:
    """Run ``work`` once and count what its matrix products and convolutions multiply and add, in 10⁹."""
    from torch.utils.flop_counter import FlopCounterMode

    with FlopCounterMode(display=False) as counter:
        work()
    return float(counter.get_total_flops()) / 1e9


def machine() -> dict[str, Any]:
    """What this computer is and can do: GFLOP/s of products of the paper's shapes, bandwidth of a copy,
    versions.
    """
    import os
    import platform

    import numpy
    import torch

    shapes = {"1024³": (1024,) * 3, "SD image": (784, 1024, 512), "gate message": (1280, 2048, 1024)}
    shapes |= {"gate state": (1280, 1024, 1024)}
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "gpu": torch.cuda.get_device_name() if torch.cuda.is_available() else None,
        "gflops": {name: round(_gflops(*shape), 1) for name, shape in shapes.items()},
        "copy_gigabytes_per_second": round(_bandwidth(), 1),
        "load": os.getloadavg()[0],
        "versions": {
            "python": platform.python_version(),
            "torch": torch.__version__,
            "numpy": numpy.__version__,
        },
    }


def _processor() -> str:
    file = Path("/proc/cpuinfo")
    lines = file.read_text().splitlines() if file.is_file() else []
    return next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), "unknown")


def _gflops(rows: int, inner: int, columns: int) -> float:
    import torch

    device = "cuda" if torch.cuda.is_available() else "cpu"
    left, right = torch.randn(rows, inner, device=device), torch.randn(inner, columns, device=device)
    best = min(seconds(lambda: left @ right) for _ in range(10))
    return 2 * rows * inner * columns / best / 1e9


def _bandwidth() -> float:
    """Gigabytes read plus written per second by a copy of 256 MB."""
    import torch

    source = torch.ones(1 << 26, device="cuda" if torch.cuda.is_available() else "cpu")
    target = torch.empty_like(source)
    best = min(seconds(lambda: target.copy_(source)) for _ in range(5))
    return 2 * source.numel() * 4 / best / 1e9
