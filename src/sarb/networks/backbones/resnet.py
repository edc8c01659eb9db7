"""ResNet (He et al. 2016), with the parameter names of torchvision so that its weight files can be loaded."""

from __future__ import annotations

from torch import Tensor, nn

from sarb.networks.backbones.stages import Backbone


def _conv(inputs: int, outputs: int, size: int, stride: int = 1) -> nn.Conv2d:
    return nn.Conv2d(inputs, outputs, size, stride, padding=size // 2, bias=False)


class Residual(nn.Module):
    """y = relu(x' + f(x)); x' is x, or its 1×1 projection if size or width change."""

    expansion: int = 1

    def __init__(self, inputs: int, width: int, stride: int) -> None:
        super().__init__()
        outputs = width * self.expansion
        self.relu = nn.ReLU(inplace=True)
        self.downsample: nn.Sequential | None = None
        if stride != 1 or inputs != outputs:
            self.downsample = nn.Sequential(_conv(inputs, outputs, 1, stride), nn.BatchNorm2d(outputs))

    def residual(self, x: Tensor) -> Tensor:
        """f(x)."""
        raise NotImplementedError("a block defines residual")

    def forward(self, x: Tensor) -> Tensor:
        """(B, inputs, H, W) -> (B, width · expansion, H / stride, W / stride)."""
        shortcut = x if self.downsample is None else self.downsample(x)
        total: Tensor = self.relu(self.residual(x) + shortcut)
        return total


class Basic(Residual):
    """Two 3×3 convolutions (ResNet-18 and -34)."""

    def __init__(self, inputs: int, width: int, stride: int) -> None:
        super().__init__(inputs, width, stride)
        self.conv1 = _conv(inputs, width, 3, stride)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = _conv(width, width, 3)
        self.bn2 = nn.BatchNorm2d(width)

    def residual(self, x: Tensor) -> Tensor:
        """Two convolutions, a ReLU between them."""
        x = self.relu(self.bn1(self.conv1(x)))
        total: Tensor = self.bn2(self.conv2(x))
        return total


class Bottleneck(Residual):
    """1×1, 3×3, 1×1 convolutions; the 3×3 has the stride, as in torchvision."""

    expansion = 4

    def __init__(self, inputs: int, width: int, stride: int) -> None:
        super().__init__(inputs, width, stride)
        self.conv1 = _conv(inputs, width, 1)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = _conv(width, width, 3, stride)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3 = _conv(width, 4 * width, 1)
        self.bn3 = nn.BatchNorm2d(4 * width)

    def residual(self, x: Tensor) -> Tensor:
        """Reduce, convolve, expand."""
        x = self.relu(self.bn1(self.conv1(x)))
        x = self.relu(self.bn2(self.conv2(x)))
        total: Tensor = self.bn3(self.conv3(x))
        return total


class ResNet(Backbone):
    """Stem and four layers, total stride 32: 448 pixels give 14×14, 224 give 7×7.

    Args:
        block: ``Basic`` or ``Bottleneck``.
        depths: blocks per layer.
    """

    stage_names = ("stem", "layer1", "layer2", "layer3", "layer4")

    def __init__(self, block: type[Residual], depths: tuple[int, int, int, int]) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 64, 7, 2, padding=3, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(3, 2, padding=1)
        inputs = 64
        for number, depth in enumerate(depths, start=1):
            width = 64 * 2 ** (number - 1)
            blocks: list[nn.Module] = []
            for position in range(depth):
                blocks.append(block(inputs, width, stride=2 if number > 1 and position == 0 else 1))
                inputs = width * block.expansion
            self.add_module(f"layer{number}", nn.Sequential(*blocks))
        self.width = inputs
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    def stage(self, name: str) -> list[nn.Module]:
        """The stem is convolution, batch norm, ReLU and 3×3 max-pool; every other stage is one module."""
        return (
            [self.conv1, self.bn1, self.relu, self.maxpool] if name == "stem" else [self.get_submodule(name)]
        )


def resnet18() -> ResNet:
    """Width 512."""
    return ResNet(Basic, (2, 2, 2, 2))


def resnet34() -> ResNet:
    """Width 512."""
    return ResNet(Basic, (3, 4, 6, 3))


def resnet50() -> ResNet:
    """Width 2048."""
    return ResNet(Bottleneck, (3, 4, 6, 3))


def resnet101() -> ResNet:
    """Width 2048; the paper's backbone."""
    return ResNet(Bottleneck, (3, 4, 23, 3))
