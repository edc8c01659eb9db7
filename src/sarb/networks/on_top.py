"""On top of a fitted model: a network with representations that learns only what is left to learn.

In training the logits are o_ic + r_c(f_i), where o are out-of-fold logits of the fitted model, r is the inner
network and r starts at exactly 0. o travels with the representations as one more channel, f' = [f, o / 1000], so a
blend of two representations also blends what the fitted model says about the two images, and a prototype has
the mean o of its members. The channel is small enough not to disturb distances. It passes by graph and classifier.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import torch
from torch import Tensor

from sarb.errors import ConfigError
from sarb.labels import LabelMatrix
from sarb.networks.base import Network

#: what the channel of the fitted model's logits is multiplied by
SMALL = 1e-3


class OnTop(Network):
    """An inner network together with the offsets of the training images; for training only.

    Args:
        inner: a network with a representation per category and a start at zero.
        offsets: (N, C) out-of-fold logits of the training images.
    """

    offsets: Tensor

    def __init__(self, inner: Network, offsets: Tensor) -> None:
        super().__init__(inner.backbone, inner.categories)
        if "represent" not in inner.stages:
            raise ConfigError(
                [f"network {type(inner).__name__} cannot learn a residual: no stage 'represent'"]
            )
        self.inner = inner
        self.dim = inner.dim + 1
        self.register_buffer("offsets", offsets, persistent=False)
        self.index = torch.zeros(0, dtype=torch.long)

    def initialise(self, labels: LabelMatrix, activations: Callable[[], Iterable[Tensor]]) -> None:
        """The inner network's own start, then a last layer of 0."""
        self.inner.initialise(labels, activations)
        self.inner.start_at_zero()

    def part_of(self, parameter: str) -> str:  # type: ignore[override]
        """The part that the inner network would name."""
        return self.inner.part_of(parameter.removeprefix("inner."))

    def at(self, index: Tensor) -> None:
        """Remember which images come next."""
        self.index = index

    def from_frozen(self, activations: Tensor) -> Tensor:
        """As the inner network."""
        return self.inner.from_frozen(activations)

    def represent(self, maps: Tensor) -> Tensor:
        """(B, D, H, W) -> (B, C, D + 1), the last channel is that of the offsets."""
        offsets = SMALL * self.offsets[self.index]
        return torch.cat([self.inner.represent(maps).float(), offsets[..., None]], -1)

    def classify(self, features: Tensor) -> Tensor:
        """(B, C, D + 1) -> offset + residual (B, C)."""
        return self.inner.classify(inner_part(features)) + offset_part(features)

    def attention(self, maps: Tensor) -> Tensor:
        """As the inner network."""
        return self.inner.attention(maps)

    def values(self, maps: Tensor) -> Tensor | None:
        """As the inner network; DSRB looks for the quadrant of a category in them."""
        return self.inner.values(maps)

    def repeats(self) -> bool:
        """As the inner network."""
        return self.inner.repeats()


def inner_part(features: Tensor) -> Tensor:
    """(B, C, D + 1) -> the channels of the inner network (B, C, D)."""
    return features[..., :-1]


def offset_part(features: Tensor) -> Tensor:
    """(B, C, D + 1) -> the logits of the fitted model (B, C)."""
    return features[..., -1] / SMALL
