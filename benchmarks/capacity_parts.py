"""The parts whose cost the capacity model describes: what is measured, the terms, the points fitted and held out.

The points that are held out were chosen before any of them was measured, and no point ever changed sides. Where the
check showed that a term was missing, the last two held-out points were added, and measured after the terms were
settled.
"""

from __future__ import annotations

from collections.abc import Mapping

from benchmarks import capacity_counts as counts
from benchmarks import capacity_work as work
from benchmarks.capacity_model import Part, Predict, Sizes
from benchmarks.capacity_processes import COUNT, exchange


def _images(*rows: tuple[int, int]) -> tuple[Sizes, ...]:
    """(B, S) of a batch."""
    return tuple(Sizes(0, 0, size, batch) for batch, size in rows)


def _steps(*rows: tuple[int, int, int]) -> tuple[Sizes, ...]:
    """(C, S, B) of a step."""
    return tuple(Sizes(0, *row) for row in rows)


def _tables(*rows: tuple[int, int]) -> tuple[Sizes, ...]:
    """(N, C) of a table."""
    return tuple(Sizes(*row) for row in rows)


def _sent(*numbers: int) -> tuple[Sizes, ...]:
    return tuple(Sizes(number) for number in numbers)


def _categories(*numbers: int) -> tuple[Sizes, ...]:
    return tuple(Sizes(0, number) for number in numbers)


def _predicted(predict: Predict, at: Sizes) -> float:
    """``sarb.predict``: read the photos, run the backbone; the head of the plain network costs next to nothing."""
    later = at.N / at.B - 1
    backbones = predict("first batch", "seconds", at) + later * predict("backbone", "seconds", at)
    return predict("read", "seconds", at) + backbones


def _together(predict: Predict, at: Sizes) -> float:
    """A step of B images on each of two cores, and the sum of the gradients."""
    sent = round(predict("parameters ssgrl", "count", at))
    return predict("step", "seconds", at) + predict("all-reduce", "seconds", Sizes(sent))


#: a table that is large enough to load all libraries
SMALL = Sizes(500, 5)
#: memory has no last one: the graph is there before
STEP_TERMS = ("1", "C", "B cells", "B C", "blended C", "B C cells", "B C²")

PARTS: Mapping[str, Part] = {
    "read": Part(
        "read N photos of 640 × 480: decode, crop, resize",
        work.on_a_core(work.read),
        {"seconds": ("N", "N S²"), "memory": ("1", "N S²")},
        tuple(Sizes(48, 0, size) for size in (224, 256, 320, 384, 448, 512)),
        (*(Sizes(48, 0, size) for size in (288, 352, 416)), Sizes(96, 0, 320), Sizes(128, 0, 256)),
    ),
    "backbone": Part(
        "EfficientNet-Lite0, frozen, forward, B photos",
        work.on_a_core(work.backbone),
        {"seconds": ("1", "B S²", "B S³"), "memory": ("1", "B S²")},
        _images((8, 128), (8, 192), (8, 256), (8, 320), (8, 448), (16, 224), (32, 320), (32, 224)),
        _images((8, 160), (8, 224), (8, 384), (16, 256), (16, 320), (32, 256), (16, 288), (24, 192)),
    ),
    "first batch": Part(
        "EfficientNet-Lite0, the first B photos, and folding its batch norms for the next ones",
        work.on_a_core(work.first_batch),
        {"seconds": ("1", "B S²", "B S² above 0.8 million"), "memory": ("1", "B S²")},
        _images((8, 128), (8, 224), (16, 320), (32, 224), (32, 320)),
        _images((8, 256), (16, 224), (32, 256), (8, 192), (16, 288)),
    ),
    "predict": Part(
        "`sarb.predict`, N photos, plain network: reading and backbone together",
        work.on_a_core(work.predict),
        held=(Sizes(64, 80, 224, 32), Sizes(96, 600, 320, 32), Sizes(64, 20, 256, 16)),
        together=_predicted,
    ),
    "step": Part(
        "a step of SARB behind the backbone, forward and backward, B photos",
        work.measure_step,
        {"seconds": STEP_TERMS, "memory": STEP_TERMS[:-1], "flop": STEP_TERMS},
        _steps(
            *((20, 224, 8), (80, 224, 8), (160, 224, 8), (80, 224, 4), (200, 224, 2), (400, 224, 1)),
            *((40, 224, 8), (80, 224, 2), (80, 96, 4), (20, 96, 16), (200, 128, 2), (600, 96, 1)),
            *((80, 160, 4), (20, 160, 4), (300, 160, 1)),
        ),
        _steps(
            *((50, 224, 4), (120, 224, 2), (300, 224, 1), (60, 160, 6)),
            *((40, 448, 4), (500, 160, 1), (150, 128, 2)),
        ),
    ),
    "fit": Part(
        "the default's fit on features of N photos, a tenth of the labels known",
        work.on_a_core(work.fit_default, SMALL),
        {"seconds": ("1", "N", "C", "N C"), "memory": ("N", "N C")},
        _tables((2_000, 20), (4_000, 20), (8_000, 20), (2_000, 80), (4_000, 80), (8_000, 80), (2_000, 200)),
        _tables((3_000, 20), (6_000, 40), (3_000, 80), (4_000, 120), (5_000, 60), (2_500, 150)),
        largest=frozenset({"memory"}),
    ),
    "evaluate": Part(
        "all metrics of N × C scores",
        work.on_a_core(work.evaluate, SMALL),
        {"seconds": ("1", "N", "C", "N C", "N C log N"), "memory": ("N", "C")},
        _tables((10_000, 80), (100_000, 20), (1_000_000, 20), (10_000, 600), (100_000, 80), (30_000, 600)),
        _tables(
            (300_000, 20),
            (30_000, 100),
            (100_000, 200),
            (200_000, 80),
            (60_000, 300),
            (500_000, 40),
            (400_000, 60),
            (80_000, 150),
        ),
        largest=frozenset({"memory"}),
    ),
    "complete": Part(
        "calibrate and complete N × C labels, 30 % of them known",
        work.on_a_core(work.complete, SMALL),
        {"seconds": ("1", "C", "N C"), "memory": ("1", "N C")},
        _tables((10_000, 20), (30_000, 20), (100_000, 20), (10_000, 80), (3_000, 600), (20_000, 80)),
        _tables((60_000, 20), (15_000, 80), (5_000, 200), (40_000, 40), (8_000, 150), (25_000, 50)),
    ),
    "all-reduce": Part(
        "sum N numbers of two processes, gloo",
        exchange("all-reduce"),
        {"seconds": ("1", "N", "N from 4 million")},
        _sent(10_000, 100_000, 1_000_000, 4_000_000, 16_000_000),
        _sent(300_000, 2_000_000, 8_000_000, 600_000, 12_000_000, 1_500_000, 6_000_000),
    ),
    "all-gather": Part(
        "gather N numbers of each of two processes, gloo",
        exchange("all-gather"),
        {"seconds": ("1", "N", "N above 4 million")},
        _sent(10_000, 100_000, 1_000_000, 4_000_000, 16_000_000),
        _sent(300_000, 2_000_000, 8_000_000, 600_000, 12_000_000),
    ),
    "two processes": Part(
        f"a step of SARB, B photos in each of {COUNT} processes, with the sum of the gradients",
        exchange("training"),
        held=_steps((20, 224, 4), (40, 224, 4), (40, 160, 8)),
        together=_together,
    ),
    "parameters ssgrl": Part(
        "trained parameters of SSGRL behind ResNet-101",
        counts.parameters("ssgrl"),
        {"count": ("1", "C")},
        _categories(20, 80),
        _categories(600, 20_000),
    ),
    "parameters pooled": Part(
        "trained parameters of the plain network behind ResNet-101",
        counts.parameters("pooled"),
        {"count": ("1", "C")},
        _categories(20, 80),
        _categories(600, 20_000),
    ),
    "parameters pairs": Part(
        "trained parameters of SST's pair head",
        counts.parameters("pairs"),
        {"count": ("1", "C", "C²")},
        _categories(20, 80, 200),
        _categories(600, 20_000),
    ),
    "resnet101": Part(
        "ResNet-101, forward, and backward through its last stage, B photos",
        counts.resnet101,
        {"flop": ("B S²",)},
        _images((2, 224)),
        _images((4, 320), (16, 448)),
    ),
    "lite0": Part(
        "EfficientNet-Lite0, forward, B photos",
        counts.lite0,
        {"flop": ("B S²",)},
        _images((2, 224)),
        _images((4, 320), (16, 448)),
    ),
    "cache": Part(
        "the feature cache of N photos on disk, EfficientNet-Lite0",
        counts.cache,
        {"bytes": ("1", "N S²")},
        (Sizes(4, 0, 224), Sizes(8, 0, 224)),
        (Sizes(12, 0, 320),),
    ),
}
