"""Record, repeat and count the matrix products of a piece of work."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks.harness import Work, lazy


def repeat_products(make: Callable[[], Work]) -> Work:
    """Return a lower bound for a piece of work: only its matrix products and convolutions.

    Args:
        make: returns the work; it is called once, before recording starts.
    """
    products = lazy(lambda: record_products(make()))

    def floor() -> None:
        for product in products():
            product()

    return floor


def record_products(work: Work) -> list[Work]:
    """Run ``work`` once; return its matrix products and convolutions, forward and backward, as functions.

    Operands of the same shape and strides share memory, so the replay makes the best use of the caches, which
    is fine for a lower bound.
    """
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode

    aten = torch.ops.aten
    plain = {aten.addmm: aten.mm.default, aten.baddbmm: aten.bmm.default}  # the sum is not part of the floor
    kept = (aten.mm, aten.bmm, aten.convolution, aten.convolution_backward)
    recorded: list[Work] = []
    memory: dict[Any, torch.Tensor] = {}

    def stand_in(position: int, value: Any) -> Any:
        if not isinstance(value, torch.Tensor):
            return value
        key = (position, tuple(value.shape), value.stride(), value.dtype, value.device)
        if key not in memory:
            empty = torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device=value.device)
            memory[key] = empty.zero_() if 0 in value.stride() else empty.normal_()
        return memory[key]

    class Recorder(TorchDispatchMode):  # type: ignore[no-untyped-call]
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            packet = func.overloadpacket
            if packet in plain or packet in kept:
                repeat = plain.get(packet, func)
                operands = args[1:3] if packet in plain else args
                stand_ins = [stand_in(position, value) for position, value in enumerate(operands)]
                recorded.append(lambda: repeat(*stand_ins))
            return func(*args, **(kwargs or {}))

    with Recorder():  # type: ignore[no-untyped-call]
        work()
    return recorded


def gigaflops(work: Work) -> float:
    """Run ``work`` once; return the GFLOP of its matrix products and convolutions."""
    from torch.utils.flop_counter import FlopCounterMode

    with FlopCounterMode(display=False) as counter:
        work()
    return float(counter.get_total_flops()) / 1e9
