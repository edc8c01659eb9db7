"""One training step with ResNet-101 at 448 and EfficientNet-Lite0 at 224, and one epoch on coco256."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch
from torch import nn

from benchmarks.cases.decouple import tanh_floor
from benchmarks.cases.graph import random_graph
from benchmarks.cases.head import LiteralSARB, Sizes, blending, losses, partial_labels
from benchmarks.harness import Case, Work, lazy
from benchmarks.products import repeat_products
from sarb.batches.loader import Batch
from sarb.methods.sarb import SARB
from sarb.networks import SSGRL, Backbone, create_backbone


class Ready(Backbone):
    """A backbone that returns its input, so that the head runs alone."""

    stage_names = ("done",)

    def __init__(self, width: int) -> None:
        super().__init__()
        self.width = width
        self.done = nn.Identity()

    def stage(self, name: str) -> list[nn.Module]:
        """Return the identity."""
        return [self.done]


class Step:
    """A method with its optimiser and a batch; a call is one training step.

    Args:
        name: name of the backbone.
        size: side of the images.
        sizes: sizes of the head.
    """

    def __init__(self, name: str, size: int, sizes: Sizes) -> None:
        torch.manual_seed(0)
        self.sizes = sizes
        self.backbone = create_backbone(name, weights=None)
        self.method = self._method(self.backbone)
        self.literal = LiteralSARB(self.method)
        labels = partial_labels(sizes.batch, sizes.categories)
        self.batch = Batch(torch.randn(sizes.batch, 3, size, size), labels, torch.arange(sizes.batch))
        trained = [parameter for parameter in self.method.parameters() if parameter.requires_grad]
        self.optimizer = torch.optim.Adam(trained, lr=1e-5, weight_decay=5e-4)

    def _method(self, backbone: Backbone) -> SARB:
        sizes = self.sizes
        words = (torch.randn(sizes.categories, 300), torch.ones(sizes.categories, dtype=torch.bool))
        options: dict[str, Any] = {"dim": sizes.dim, "hidden": sizes.hidden, "grid": sizes.side}
        return blending(SSGRL(backbone, sizes.categories, random_graph(sizes.categories), words, **options))

    def __call__(self, module: nn.Module) -> None:
        """Run forward, backward and the optimiser."""
        torch.manual_seed(1)
        sum(module(self.batch).values(), torch.zeros(())).backward()
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)

    def backbone_only(self) -> None:
        """Run the backbone forward, and its trained stages backward."""
        maps = self.backbone.train()(self.batch.images)
        maps.backward(torch.ones_like(maps))
        self.backbone.zero_grad(set_to_none=True)

    def head_only(self) -> Work:
        """Return work that runs everything after the backbone, forward and backward."""
        with torch.no_grad():
            maps = self.backbone.eval()(self.batch.images)
        self.backbone.train()
        batch = Batch(maps.clone().requires_grad_(), self.batch.labels, self.batch.index, frozen=True)
        method = self._method(Ready(maps.shape[1]))
        return lambda: losses(method, batch)


def cases(quick: bool = False, coco256: Path | None = None) -> list[Case]:
    """Training steps, and an epoch."""
    if quick:
        steps = [_step("tiny", 64, Sizes(2, 5, 16, 8, 4))]
    else:
        steps = [_step("resnet101", 448, Sizes()), _step("efficientnet_lite0", 224, Sizes())]
    return [*steps, _epoch(coco256, quick)]


def _step(name: str, size: int, sizes: Sizes) -> Case:
    made = lazy(lambda: Step(name, size, sizes))
    tanh = tanh_floor(sizes.joint)
    products = repeat_products(lambda: made().head_only())

    def floor() -> None:
        made().backbone_only()
        tanh()
        products()

    return Case(
        f"training: one step, {name} at {size}, B={sizes.batch} C={sizes.categories} D={sizes.dim}",
        literal=lambda: made()(made().literal),
        ours=lambda: made()(made().method),
        floor=floor,
        note="literal: same backbone and optimiser, literal head; "
        "floor: backbone forward + backward of its trained stages + the head's tanh and matrix products, "
        "no optimiser; goal 1.15× the floor",
        slow=name != "tiny",
        items=sizes.batch,
    )


def _epoch(folder: Path | None, quick: bool) -> Case:
    part = "16 images of coco256" if quick else "coco256"
    name = f"training: one SARB epoch on {part}, CPU recipe, from the cache (literal: from images)"
    if folder is None:
        return Case(name, None, ours=lambda: None, skip="give the folder with --coco256 DIR")
    cached = lazy(lambda: epoch_of(folder, True, quick))
    images = lazy(lambda: epoch_of(folder, False, quick))
    return Case(
        name,
        literal=lambda: images()(),
        ours=lambda: cached()(),
        floor=repeat_products(cached),
        note="10 % known, the second epoch with blending, prototypes as the recipe says; "
        "literal: the same without cache; floor: our matrix products and convolutions; "
        "goal 4× faster, at most 20 s",
        slow=not quick,
    )


def epoch_of(folder: Path, cache: bool, quick: bool) -> Callable[[], Any]:
    """Prepare a run of the CPU recipe; return a function that runs the second epoch with blending."""
    from sarb.data import load
    from sarb.progress import Progress
    from sarb.settings import resolve
    from sarb.training.loop import Training

    train = load(folder / "labels.csv", encoding="binary").train.hide(0.1, 0)
    train = train.take(torch.arange(16).numpy()) if quick else train
    with tempfile.TemporaryDirectory() as home, patch.dict(os.environ, {"SARB_CACHE": home}):
        # The memory map stays readable after its file is deleted.
        training = Training(train, resolve("small", cache=cache), None, None, Progress(enabled=False))
    method = training.method
    assert isinstance(method, SARB)
    first = method._epochs(method.start)
    method.train()
    method.begin_epoch(first, training._plain_batches)
    return lambda: training._epoch(first + 1)
