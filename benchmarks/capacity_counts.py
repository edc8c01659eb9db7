"""What is counted, not timed: trainable parameters, operations of backbones, bytes of the feature cache."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.capacity_model import Sizes


def parameters(kind: str) -> Callable[[Sizes], dict[str, float]]:
    """Trainable parameters behind the backbone with C categories; ``pairs`` is SST's pair head alone."""

    def measure(at: Sizes) -> dict[str, float]:
        import torch

        from sarb.methods.pairs import PairHead
        from sarb.networks import SSGRL, Pooled, create_backbone

        with torch.device("meta"):  # shapes without memory
            backbone = create_backbone("resnet101", weights=None)
            made = {
                "pairs": lambda: PairHead(at.C, 1024),
                "ssgrl": lambda: SSGRL(backbone, at.C),
                "pooled": lambda: Pooled(backbone, at.C),
            }[kind]()
        names = made.named_parameters()
        return {"count": sum(value.numel() for name, value in names if not name.startswith("backbone."))}

    return measure


def resnet101(at: Sizes) -> dict[str, float]:
    """Operations of ResNet-101 on B photos, forward, and backward through its last stage, which is trained."""
    import torch

    from benchmarks.products import gigaflops
    from sarb.networks import create_backbone

    with torch.device("meta"):
        network = create_backbone("resnet101", weights=None, train_stages=1)
        images = torch.randn(at.B, 3, at.S, at.S)

    def forward_backward() -> None:
        with torch.no_grad():
            frozen = network.frozen(images)
        network.trained(frozen).sum().backward()

    return {"flop": 1e9 * gigaflops(forward_backward)}


def lite0(at: Sizes) -> dict[str, float]:
    """Operations of EfficientNet-Lite0 on B photos, forward."""
    import torch

    from benchmarks.products import gigaflops
    from sarb.networks import create_backbone

    with torch.device("meta"):
        network = create_backbone("efficientnet_lite0", weights=None, train_stages=0).eval()
        images = torch.randn(at.B, 3, at.S, at.S)
    return {"flop": 1e9 * gigaflops(lambda: network.frozen(images))}


def cache(at: Sizes) -> dict[str, float]:
    """Bytes on disk of the feature cache of N photos, by default EfficientNet-Lite0, all of it frozen."""
    import os
    import tempfile
    from pathlib import Path

    import numpy as np

    from benchmarks.cases.loading import Folder
    from sarb.batches.features import cached_features
    from sarb.data.dataset import Dataset
    from sarb.data.images import EvalTransform
    from sarb.labels import LabelMatrix
    from sarb.networks import create_backbone

    photos = Folder(at.N)
    labels = LabelMatrix(np.zeros((at.N, 1), np.int8), ["a"], [file.name for file in photos.files])
    with tempfile.TemporaryDirectory() as folder:
        os.environ["SARB_CACHE"] = folder
        network = create_backbone("efficientnet_lite0", weights=None, train_stages=0).eval()
        cached_features(network, Dataset(labels, Path(photos.folder.name)), EvalTransform(at.S))
        return {"bytes": sum(file.stat().st_size for file in Path(folder).rglob("*.npy"))}
