"""What the capacity model measures, each as a function of the sizes: one core, one process, one point."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from benchmarks.capacity_model import Sizes
from benchmarks.harness import Work, peak_memory

#: width of the features that the default is fitted to
FEATURES = 1280
#: a point is repeated until it has taken ENOUGH seconds, but at most REPEATS times
ENOUGH, REPEATS = 1.5, 5


def on_a_core(
    build: Callable[[Sizes], Work], warm: Sizes | None = None
) -> Callable[[Sizes], dict[str, float]]:
    """Measure the best time of the core and the peak memory of one call.

    A call before that, at the sizes ``warm`` or at the point's own, loads libraries.
    """

    def measure(at: Sizes) -> dict[str, float]:
        work = build(at)
        (work if warm is None else build(warm))()
        return cost(work)

    return measure


def cost(work: Work) -> dict[str, float]:
    """Best time of the core and peak memory of one call.

    The time that the process had the core, not that on the clock: other processes share the machine.
    """
    times: list[float] = []

    def timed() -> None:
        started = time.process_time()
        work()
        times.append(time.process_time() - started)

    memory = peak_memory(timed)
    while sum(times) < ENOUGH and len(times) < REPEATS:
        timed()
    return {"seconds": min(times), **({} if memory is None else {"memory": memory})}


def read(at: Sizes) -> Work:
    """Decode, crop and resize N photos of 640 × 480 as in training."""
    import numpy as np

    from benchmarks.cases.loading import Folder
    from sarb.batches.loader import Pictures
    from sarb.data.images import TrainTransform

    folder = Folder(at.N)
    source = Pictures(folder.files, np.zeros((at.N, 1), np.int8), [TrainTransform(at.S)])
    return lambda: (folder, source[[(0, number) for number in range(at.N)]])


def backbone(at: Sizes) -> Work:
    """EfficientNet-Lite0 on B photos, as ``sarb predict`` runs it."""
    import torch

    from sarb.networks import create_backbone
    from sarb.networks.backbones.fold import folded

    network = folded(create_backbone("efficientnet_lite0", weights=None, train_stages=0).eval())
    images = torch.randn(at.B, 3, at.S, at.S)

    def forward() -> object:
        with torch.inference_mode():
            return network.frozen(images)

    return forward


def first_batch(at: Sizes) -> Work:
    """The first B photos of ``sarb predict``: as the network is, then its batch norms are folded for the next ones."""
    import torch

    from sarb.networks import create_backbone
    from sarb.networks.backbones.fold import folded

    network = create_backbone("efficientnet_lite0", weights=None, train_stages=0).eval()
    images = torch.randn(at.B, 3, at.S, at.S)

    def forward() -> object:
        with torch.inference_mode():
            return network.frozen(images), folded(network)

    return forward


def head(at: Sizes) -> tuple[Any, Any]:
    """SARB's method behind the backbone with the paper's widths, and B maps with one known positive each.

    The positives of one image are unknown in all others, so every image is blended. With fewer a step takes less.
    """
    import torch

    from benchmarks.cases.head import Sizes as HeadSizes
    from benchmarks.cases.head import build_head
    from sarb.batches.loader import Batch

    method, _, batch = build_head(HeadSizes(at.B, at.C, side=at.side))
    labels = torch.where(torch.rand(at.B, at.C) < 0.1, -1, 0).to(torch.int8)
    positive = torch.arange(at.B) * 7 % at.C
    labels[:, positive] = 0
    labels[torch.arange(at.B), positive] = 1
    return method, Batch(batch.images, labels, batch.index, frozen=True)


def step(at: Sizes) -> Work:
    """Forward and backward of SARB behind the backbone."""
    import torch

    method, batch = head(at)

    def forward_backward() -> None:
        torch.manual_seed(1)
        sum(method(batch).values(), torch.zeros(())).backward()
        for tensor in (*method.parameters(), batch.images):
            tensor.grad = None

    return forward_backward


def measure_step(at: Sizes) -> dict[str, float]:
    """Time, memory and floating-point operations (of matrix products) of a step."""
    from benchmarks.products import gigaflops

    work = step(at)
    counted = 1e9 * gigaflops(work)
    return {**cost(work), "flop": counted}


def fit_default(at: Sizes) -> Work:
    """The default's fit on features of N photos with a tenth of the labels known."""
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


def evaluate(at: Sizes) -> Work:
    """All metrics of N × C scores."""
    from benchmarks.cases.metrics import random_scores
    from sarb.metrics import evaluate as metrics

    scores, labels = random_scores(at.N, at.C)
    return lambda: metrics(scores, labels)


def complete(at: Sizes) -> Work:
    """Calibrate on the known 30 % of N × C labels and fill in the rest."""
    from benchmarks.cases.metrics import random_labels, random_scores
    from sarb.labelling.calibration import calibrate
    from sarb.labelling.completion import complete as fill
    from sarb.labels import LabelMatrix
    from sarb.scores import Scores

    names = [str(number) for number in range(at.C)]
    scores = Scores(random_scores(at.N, at.C)[0], names)
    labels = LabelMatrix(random_labels(at.N, at.C, 0.3), names, scores.paths)
    return lambda: fill(scores, labels, calibrate(scores, labels), min_confidence=0.9)


def predict(at: Sizes) -> Work:
    """``sarb.predict`` of N photos with the plain network and C categories, in batches of B."""
    import numpy as np

    import sarb
    from benchmarks.cases.loading import Folder
    from sarb.labels import LabelMatrix
    from sarb.model import new_model
    from sarb.progress import Progress
    from sarb.settings import resolve

    labels = LabelMatrix(np.zeros((1, at.C), np.int8), [str(number) for number in range(at.C)])
    settings = resolve("small", network="pooled", method="partial_bce", image_size=at.S)
    model = new_model(labels, settings, Progress(enabled=False))
    folder = Folder(at.N)
    return lambda: (folder, sarb.predict(model, folder.files, batch_size=at.B))
