"""The parts whose cost the capacity model describes: what is measured at which sizes, and the terms of each model.

Sizes: N images, C categories, S side of an image in pixels, B images per batch. The grid of a backbone has
(S / 32)² cells. Every part runs on one core.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from benchmarks.harness import Work

#: side of an image -> side of a cell of the grid
STRIDE = 32
#: width of the features that the default is fitted to
FEATURES = 1280


class Sizes(NamedTuple):
    """Sizes of one point; what a part does not use is 0."""

    N: int = 0
    C: int = 0
    S: int = 0
    B: int = 0

    @property
    def cells(self) -> float:
        """Cells of the grid."""
        return (self.S / STRIDE) ** 2


Term = Callable[[Sizes], float]
#: name of a term -> its value
TERMS: dict[str, Term] = {
    "1": lambda at: 1.0,
    "N": lambda at: float(at.N),
    "C": lambda at: float(at.C),
    "N C": lambda at: float(at.N * at.C),
    "N C log N": lambda at: at.N * at.C * math.log(max(at.N, 2)),
    "N S²": lambda at: float(at.N * at.S**2),
    "B S²": lambda at: float(at.B * at.S**2),
    "C²": lambda at: float(at.C**2),
    "B C": lambda at: float(at.B * at.C),
    "B C cells": lambda at: at.B * at.C * at.cells,
}


@dataclass(frozen=True)
class Part:
    """One model.

    Attributes:
        what: one line for the table.
        build: returns the work at these sizes; imports torch only if needed.
        seconds: names of the terms of the time.
        memory: names of the terms of the peak memory.
        fitted: sizes that the coefficients are fitted to.
        held: sizes that only check them.
    """

    what: str
    build: Callable[[Sizes], Work]
    seconds: tuple[str, ...]
    memory: tuple[str, ...]
    fitted: tuple[Sizes, ...]
    held: tuple[Sizes, ...]


def _read(at: Sizes) -> Work:
    import numpy as np

    from benchmarks.cases.loading import Folder
    from sarb.batches.loader import Pictures
    from sarb.data.images import TrainTransform

    folder = Folder(at.N)
    source = Pictures(folder.files, np.zeros((at.N, 1), np.int8), [TrainTransform(at.S)])
    return lambda: (folder, source[[(0, number) for number in range(at.N)]])


def _backbone(at: Sizes) -> Work:
    import torch

    from sarb.networks import create_backbone

    backbone = (
        create_backbone("efficientnet_lite0", weights=None).eval().to(memory_format=torch.channels_last)
    )
    images = torch.randn(at.B, 3, at.S, at.S).to(memory_format=torch.channels_last)

    def forward() -> object:
        with torch.inference_mode():
            return backbone(images)

    return forward


def _step(at: Sizes) -> Work:
    """SARB's step behind the backbone, forward and backward, with the paper's widths."""
    import torch

    from benchmarks.cases import head

    method, _, batch = head.build_head(head.Sizes(at.B, at.C, side=at.S // STRIDE))

    def step() -> None:
        torch.manual_seed(1)
        sum(method(batch).values(), torch.zeros(())).backward()
        method.zero_grad(set_to_none=True)

    return step


def _fit(at: Sizes) -> Work:
    import numpy as np

    from benchmarks.cases.metrics import random_labels
    from sarb.auto.ladder import fit_ladder
    from sarb.labels import LabelMatrix

    random = np.random.default_rng(0)
    values = random_labels(at.N, at.C, 0.1)
    features = random.standard_normal((at.N, FEATURES), np.float32)
    # a direction for each category, so that there is something to learn
    features += (values > 0).astype(np.float32) @ random.standard_normal((at.C, FEATURES)).astype(np.float32)
    labels = LabelMatrix(values, [str(number) for number in range(at.C)])
    return lambda: fit_ladder(features, labels)


def _evaluate(at: Sizes) -> Work:
    from benchmarks.cases.metrics import random_scores
    from sarb.metrics import evaluate

    scores, labels = random_scores(at.N, at.C)
    return lambda: evaluate(scores, labels)


def _complete(at: Sizes) -> Work:
    from benchmarks.cases.metrics import random_labels, random_scores
    from sarb.labelling.calibration import calibrate
    from sarb.labelling.completion import complete
    from sarb.labels import LabelMatrix
    from sarb.scores import Scores

    names = [str(number) for number in range(at.C)]
    scores = Scores(random_scores(at.N, at.C)[0], names)
    labels = LabelMatrix(random_labels(at.N, at.C, 0.3), names, scores.paths)
    return lambda: complete(scores, labels, calibrate(scores, labels), min_confidence=0.9)


def _sizes(*rows: tuple[int, int], N: int = 0, B: int = 0) -> tuple[Sizes, ...]:
    return tuple(Sizes(N, C, S, B) for C, S in rows)


def _tables(*rows: tuple[int, int]) -> tuple[Sizes, ...]:
    return tuple(Sizes(N, C) for N, C in rows)


PARTS: Mapping[str, Part] = {
    "read": Part(
        "read and resize N photos of 640 × 480",
        _read,
        ("N", "N S²"),
        ("1", "N S²"),
        _sizes((0, 128), (0, 192), (0, 256), (0, 320), (0, 448), (0, 512), N=32),
        (*_sizes((0, 224), (0, 384), N=32), Sizes(48, 0, 288)),
    ),
    "backbone": Part(
        "EfficientNet-Lite0 forward, B photos",
        _backbone,
        ("1", "B S²"),
        ("1", "B S²"),
        (
            *_sizes((0, 128), (0, 192), (0, 256), (0, 320), (0, 448), B=8),
            Sizes(0, 0, 224, 16),
            Sizes(0, 0, 320, 2),
        ),
        (*_sizes((0, 160), (0, 224), (0, 384), B=8), Sizes(0, 0, 256, 16), Sizes(0, 0, 448, 4)),
    ),
    "step": Part(
        "a step of SARB behind the backbone, forward and backward, B photos",
        _step,
        ("1", "C", "B C", "B C cells", "C²"),
        ("1", "C", "B C", "B C cells", "C²"),
        (
            *_sizes(
                (20, 224),
                (80, 224),
                (200, 224),
                (400, 224),
                (80, 160),
                (200, 160),
                (80, 448),
                (200, 320),
                B=8,
            ),
            Sizes(0, 80, 224, 16),
            Sizes(0, 80, 224, 2),
            Sizes(0, 600, 160, 4),
        ),
        (
            *_sizes((50, 224), (120, 224), (300, 224), (150, 320), (40, 448), B=8),
            Sizes(0, 160, 224, 4),
            Sizes(0, 500, 160, 4),
        ),
    ),
    "fit": Part(
        "the default's fit on features of N photos, a tenth of the labels known",
        _fit,
        ("1", "N", "C", "N C"),
        ("1", "N", "N C"),
        _tables(
            (1_000, 20),
            (2_000, 20),
            (4_000, 20),
            (8_000, 20),
            (2_000, 80),
            (4_000, 80),
            (8_000, 80),
            (2_000, 200),
        ),
        _tables((3_000, 20), (6_000, 40), (3_000, 80), (4_000, 120)),
    ),
    "evaluate": Part(
        "all metrics of N × C scores",
        _evaluate,
        ("1", "N C", "N C log N"),
        ("1", "N C"),
        _tables((10_000, 20), (100_000, 20), (1_000_000, 20), (10_000, 200), (100_000, 80), (30_000, 600)),
        _tables((300_000, 20), (30_000, 100), (100_000, 200), (200_000, 80)),
    ),
    "complete": Part(
        "calibrate and complete N × C labels",
        _complete,
        ("1", "N C"),
        ("1", "N C"),
        _tables((10_000, 20), (30_000, 20), (100_000, 20), (300_000, 20), (10_000, 200), (50_000, 80)),
        _tables((60_000, 20), (20_000, 80), (30_000, 200), (10_000, 600)),
    ),
}
