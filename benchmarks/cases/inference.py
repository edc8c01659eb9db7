"""Images per second of a network on decoded images, and of its ONNX export where there is one."""

from __future__ import annotations

from importlib.util import find_spec

import torch

from benchmarks.cases.head import Sizes
from benchmarks.cases.training import Step
from benchmarks.harness import Case, lazy
from sarb.predict import infer


def cases(quick: bool = False) -> list[Case]:
    """The CPU recipe's backbone, the paper's, and ONNX."""
    if quick:
        return [_torch("tiny", 64, Sizes(2, 5, 16, 8, 4)), _onnx()]
    return [_torch("efficientnet_lite0", 224, Sizes()), _torch("resnet101", 448, Sizes()), _onnx()]


def _torch(name: str, size: int, sizes: Sizes) -> Case:
    made = lazy(lambda: Step(name, size, sizes))

    @torch.no_grad()
    def literal() -> None:
        step = made()
        step.literal.eval()
        step.literal.classify(step.literal.represent(step.method.network.maps(step.batch.images)))

    @torch.inference_mode()
    def floor() -> None:
        made().backbone.eval()(made().batch.images)

    return Case(
        f"inference: torch, {name} at {size}, B={sizes.batch} C={sizes.categories} D={sizes.dim}",
        literal=literal,
        ours=lambda: infer(made().method.network, [made().batch]),
        floor=floor,
        note="literal: same backbone, literal head; floor: the backbone alone",
        items=sizes.batch,
        slow=name == "resnet101",
    )


def _onnx() -> Case:
    missing = [name for name in ("onnxruntime", "sarb.export") if find_spec(name) is None]
    reason = f"{' and '.join(missing)} not installed" if missing else "written before sarb.export, add it here"
    return Case("inference: ONNX", None, ours=lambda: None, skip=reason)
