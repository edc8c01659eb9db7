"""Images per second of a network on decoded images, on a folder, and as an ONNX export."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch

from benchmarks.cases.head import Sizes
from benchmarks.cases.loading import Folder
from benchmarks.cases.training import Step
from benchmarks.harness import Case, lazy
from sarb.batches.loader import Batches, Pictures, make_loader
from sarb.data.images import EvalTransform
from sarb.inference.export import PACKAGES, export
from sarb.inference.onnx import OnnxModel
from sarb.inference.prediction import infer
from sarb.model import Model


def cases(quick: bool = False) -> list[Case]:
    """The CPU recipe's backbone, the paper's, and ONNX."""
    if quick:
        sizes = Sizes(2, 5, 16, 8, 4)
        return [_torch("tiny", 64, sizes), _folder("tiny", 64, sizes, 4), _onnx("tiny", 64, sizes)]
    recipe = ("efficientnet_lite0", 224)
    return [
        _torch(*recipe, Sizes()),
        _folder(*recipe, Sizes(), 64),
        _torch("resnet101", 448, Sizes()),
        _onnx(*recipe, Sizes()),
    ]


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


def _folder(name: str, size: int, sizes: Sizes, count: int) -> Case:
    made = lazy(lambda: Step(name, size, sizes))
    files = lazy(lambda: Folder(count))
    batches = Batches(count, sizes.batch)
    decoded = lazy(lambda: [pictures()[keys] for keys in batches])

    def pictures() -> Pictures:
        return Pictures(files().files, np.zeros((count, 0), np.int8), [EvalTransform(size)])

    def in_turns() -> None:
        source = pictures()
        infer(made().method.network, (source[keys] for keys in batches))

    return Case(
        f"inference: a folder of {count} JPEGs 640×480, {name} at {size}, B={sizes.batch}",
        literal=in_turns,
        ours=lambda: infer(made().method.network, make_loader(pictures(), batches)),
        floor=lambda: infer(made().method.network, decoded()),
        note="literal: decode a batch, then run the network, in turns; ours: decoding ahead in threads; "
        "floor: the network alone",
        items=count,
        slow=name != "tiny",
    )


def _onnx(name: str, size: int, sizes: Sizes) -> Case:
    missing = [package for package in PACKAGES if find_spec(package) is None]
    made = lazy(lambda: Step(name, size, sizes))

    def load_export() -> OnnxModel:
        config = {"network": "ssgrl", "backbone": name, "image_size": size}
        model = Model(made().method.network, [str(number) for number in range(sizes.categories)], config)
        with TemporaryDirectory() as folder:
            exported = export(model, Path(folder) / "model.onnx", progress=False)
            return OnnxModel(exported.path, torch.get_num_threads())

    @torch.inference_mode()
    def floor() -> None:
        made().backbone.eval()(made().batch.images)

    onnx = lazy(load_export)
    return Case(
        f"inference: ONNX, {name} at {size}, B={sizes.batch} C={sizes.categories} D={sizes.dim}",
        literal=lambda: infer(made().method.network, [made().batch]),
        ours=lambda: onnx().logits(made().batch.images.numpy()),
        floor=floor,
        note="literal: the same network in torch; ours: onnxruntime on as many threads; "
        "floor: the backbone in torch",
        items=sizes.batch,
        skip=f"{' and '.join(missing)} not installed" if missing else "",
    )
