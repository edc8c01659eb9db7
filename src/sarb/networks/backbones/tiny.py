"""A backbone with 30,000 parameters for tests and first tries; it trains from random weights in seconds."""

from __future__ import annotations

from torch import nn

from sarb.networks.backbones.stages import Backbone


def _stage(inputs: int, outputs: int, size: int, stride: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, size, stride, padding=size // 2, bias=False),
        nn.BatchNorm2d(outputs),
        nn.ReLU(inplace=True),
    )


class Tiny(Backbone):
    """Three convolutions and a final 1×1 convolution, stride 16, width 64; all stages are trained."""

    width = 64
    stage_names = ("stage1", "stage2", "stage3")
    default_train_stages = 3
    needs_weights = False

    def __init__(self) -> None:
        super().__init__()
        self.stage1 = _stage(3, 16, 7, 4)
        self.stage2 = _stage(16, 32, 3, 2)
        self.stage3 = nn.Sequential(_stage(32, 64, 3, 2), _stage(64, 64, 1, 1))

    def stage(self, name: str) -> list[nn.Module]:
        """One module per stage."""
        return [self.get_submodule(name)]
