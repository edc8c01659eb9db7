"""Backbones: named stages in order, from an image (B, 3, S, S) to a map (B, width, H, W).

The first stages are frozen, the last ``train_stages`` are trained. :meth:`Backbone.frozen` and
:meth:`Backbone.trained` run the two parts separately, so that the output of the frozen part can be cached.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from sarb.errors import ConfigError
from sarb.networks.backbones.concepts import Concepts

IMAGENET_MEAN = (123.675, 116.28, 103.53)
IMAGENET_STD = (58.395, 57.12, 57.375)


class Backbone(nn.Module, ABC):
    """Base class: a subclass names its stages and returns the modules of each one, in order.

    Attributes:
        width: channels of the last map.
        mean, std: normalisation of the input per channel, on the 0..255 scale.
        stage_names: the stages, from the image to the map.
        default_train_stages: how many of the last stages are trained by default.
        needs_weights: whether random weights must be requested with ``weights=None``.
        step: image sizes must be multiples of it.
        classifier: prefix of the classifier's keys in a weight file; they are ignored.
        default_weights: file of pre-trained weights that is installed, or None.
        weight_package: package with such a file, or None.
        made_from: arguments with which :func:`sarb.networks.create_backbone` makes another one like it, without
            weights; None for a backbone that was made in another way.
        engine: runs the frozen stages instead of PyTorch where no gradient is needed; see
            :func:`sarb.batches.engines.named_engine`.
    """

    width: int
    mean: tuple[float, float, float] = IMAGENET_MEAN
    std: tuple[float, float, float] = IMAGENET_STD
    stage_names: tuple[str, ...]
    default_train_stages: int = 1
    needs_weights: ClassVar[bool] = True
    step: int = 1
    classifier: ClassVar[str] = "fc."

    def __init__(self) -> None:
        super().__init__()
        self.train_stages = 0
        self.frozen_norms = False
        self.made_from: dict[str, Any] | None = None
        self.engine: Callable[[Tensor], Tensor] | None = None

    @abstractmethod
    def stage(self, name: str) -> list[nn.Module]:
        """Return the modules of a stage in the order they run; every parameter belongs to one stage."""

    @classmethod
    def default_weights(cls) -> Path | None:
        """Return the weight file that is installed, or None."""
        return None

    @classmethod
    def weight_package(cls) -> str | None:
        """Return the package on the package index that has the weight file, or None."""
        return None

    def concepts(self) -> Concepts | None:
        """Return the classifier that the backbone was pretrained with; None if it has none, or other weights."""
        return None

    @property
    def small(self) -> int:
        """A small image size that it can process."""
        return 64

    def check_size(self, size: int) -> None:
        """Raise ConfigError if it cannot process images of this size."""

    def described(self) -> dict[str, Any]:
        """Return the options that a model folder must keep to make it again without further files."""
        return {}

    def freeze(self, train_stages: int, frozen_norms: bool = False) -> None:
        """Train the last ``train_stages`` stages only; ``frozen_norms`` freezes their batch norms."""
        count = len(self.stage_names)
        if not 0 <= train_stages <= count:
            stages = ", ".join(self.stage_names)
            raise ConfigError([f"train_stages must be between 0 and {count} ({stages}), got {train_stages}"])
        self.train_stages = train_stages
        self.frozen_norms = frozen_norms
        self.engine = None  # it has the stages that were frozen before
        for position, name in enumerate(self.stage_names):
            for module in self.stage(name):
                module.requires_grad_(position >= self._cut)
        self.train(self.training)

    @property
    def _cut(self) -> int:
        return len(self.stage_names) - self.train_stages

    def train(self, mode: bool = True) -> Backbone:
        """As ``nn.Module.train``, but frozen batch norms stay in eval mode."""
        super().train(mode)
        for position, name in enumerate(self.stage_names):
            for module in self.stage(name):
                if position < self._cut:
                    module.eval()
                elif self.frozen_norms:
                    for part in module.modules():
                        if isinstance(part, nn.BatchNorm2d):
                            part.eval()
        return self

    def _run(self, x: Tensor, names: tuple[str, ...]) -> Tensor:
        for name in names:
            for module in self.stage(name):
                x = module(x)
        return x

    def frozen(self, images: Tensor) -> Tensor:
        """Images (B, 3, S, S) -> output of the frozen stages. No gradient is kept in training."""
        if self.engine is not None and (self.training or not torch.is_grad_enabled()):
            return self.engine(images.detach().contiguous())
        if images.device.type == "cpu":  # convolutions are 1.2 to 1.6 times as fast with channels last
            images = images.contiguous(memory_format=torch.channels_last)
        with torch.set_grad_enabled(torch.is_grad_enabled() and not self.training):
            return self._run(images, self.stage_names[: self._cut])

    def trained(self, x: Tensor) -> Tensor:
        """Output of the frozen stages -> map (B, width, H, W)."""
        return self._run(x, self.stage_names[self._cut :])

    def forward(self, images: Tensor) -> Tensor:
        """Images (B, 3, S, S) -> map (B, width, H, W)."""
        return self.trained(self.frozen(images))

    def frozen_fingerprint(self) -> str:
        """Return a hash of the frozen stages and their weights; equal hashes mean equal :meth:`frozen`."""
        names = self.stage_names[: self._cut]
        digest = hashlib.sha256(f"{type(self).__name__}:{','.join(names)}".encode())
        for name in names:
            for module in self.stage(name):
                for key, value in module.state_dict().items():
                    digest.update(f"{key}{tuple(value.shape)}".encode())
                    digest.update(value.detach().cpu().contiguous().numpy().tobytes())
        return digest.hexdigest()[:16]
