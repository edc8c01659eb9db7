"""``torch.compile`` for the trained part of a network, taken away again at the end."""

from __future__ import annotations

import shutil

from torch import nn

from sarb.errors import ConfigError, setting
from sarb.networks.base import Network
from sarb.networks.on_top import OnTop


class Compiled:
    """The trained parts of a network: its own layers, and the trained stages of its backbone.

    They are compiled in place, so names, weights and checkpoints do not change. The frozen stages run in another
    loop, without gradients, and are left alone.

    Args:
        network: of the training.
        device: ``"cpu"`` or the type of an accelerator.
    """

    def __init__(self, network: Network, device: str) -> None:
        if device == "cpu" and shutil.which("c++") is None and shutil.which("g++") is None:
            problem = f"{setting('compile')} needs a C++ compiler on a CPU, and there is none: install g++"
            raise ConfigError([problem])
        self._parts = list(trained_parts(network))
        for part in self._parts:
            part.compile()

    def restore(self) -> None:
        """Back to plain layers."""
        for part in self._parts:
            part._compiled_call_impl = None
        self._parts = []


def trained_parts(network: Network) -> list[nn.Module]:
    """Modules with something to train."""
    if isinstance(network, OnTop):
        return trained_parts(network.inner)
    backbone = network.backbone
    parts = [child for child in network.children() if child is not backbone]
    for name in backbone.stage_names[len(backbone.stage_names) - backbone.train_stages :]:
        parts += backbone.stage(name)
    return [part for part in parts if any(each.requires_grad for each in part.parameters())]
