"""A backbone for a network that gets finished maps, because another network has computed them."""

from __future__ import annotations

from torch import nn

from sarb.networks.backbones.base import Backbone


class GivenMaps(Backbone):
    """Maps (B, width, H, W) -> the same maps. No stage, no weights; not in the registry.

    Args:
        width: channels.
    """

    stage_names: tuple[str, ...] = ()

    def __init__(self, width: int) -> None:
        super().__init__()
        self.width = width

    def stage(self, name: str) -> list[nn.Module]:
        """There is none."""
        raise KeyError(name)
