"""Several resolutions: a frozen backbone looks at the image at further sizes, and the maps are joined.

For each further scale s the image (S pixels) is resized to the multiple of 32 nearest to s · S, or of the backbone's
patches if 32 is none, and goes through the same backbone. Its map is resized to the grid of the first one, and the
channels are concatenated. So the result is a backbone like any other, with width D · (number of scales).

A resize is bilinear, with antialiasing where it shrinks: Y = A X Aᵀ, where row i of A has triangle weights
around (i + ½) · n / m, normalised. As products of matrices it runs and exports the same way everywhere.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from math import isfinite
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from sarb.errors import ConfigError
from sarb.networks.backbones.concepts import Concepts
from sarb.networks.backbones.stages import Backbone

#: sizes of resized images are multiples of it: the stride of most backbones
STEP = 32
#: a larger image costs its square
LARGEST_SCALE = 8.0


class MultiScale(Backbone):
    """A frozen backbone at several scales, its maps concatenated.

    Args:
        trunk: the backbone; all of it is frozen.
        scales: 1 and the further scales.
    """

    stage_names = ("scales",)
    default_train_stages = 0

    def __init__(self, trunk: Backbone, scales: Sequence[float]) -> None:
        super().__init__()
        good = all(isfinite(scale) and 0 < scale <= LARGEST_SCALE for scale in scales)
        if not good or list(scales[:1]) != [1.0] or len(set(scales)) < len(scales):
            raise ConfigError(
                [
                    "backbone.scales must be 1 and further different numbers above 0 and up to "
                    f"{LARGEST_SCALE:g}, got {list(scales)}"
                ]
            )
        trunk.freeze(0)
        self.body = _Scales(trunk, scales)
        self.width = trunk.width * len(scales)
        self.mean = trunk.mean
        self.std = trunk.std

    def stage(self, name: str) -> list[nn.Module]:
        """All of it is one stage."""
        return [self.body]

    def freeze(self, train_stages: int, frozen_norms: bool = False) -> None:
        """Everything stays frozen; training a stage is an error."""
        if train_stages != 0:
            raise ConfigError(
                [
                    f"backbone.scales needs a frozen backbone, got train_stages={train_stages}: use one scale, "
                    "or backbone.train_stages=0"
                ]
            )
        super().freeze(0, frozen_norms)

    @property
    def small(self) -> int:
        """That of the trunk."""
        return self.body.trunk.small

    def check_size(self, size: int) -> None:
        """The trunk must take the image at every scale."""
        for scale in self.body.scales:
            self.body.trunk.check_size(self.body.scaled(size, scale))

    def described(self) -> dict[str, Any]:
        """What the trunk needs."""
        return self.body.trunk.described()

    def concepts(self) -> Concepts | None:
        """The trunk's own classifier, which sees the first scale only."""
        found = self.body.trunk.concepts()
        if found is None:
            return None
        return replace(found, weight=F.pad(found.weight, (0, self.width - found.weight.shape[1])))

    def frozen_fingerprint(self) -> str:
        """Return a hash of the trunk and the scales."""
        parts = f"{type(self).__name__}:{self.body.scales}:{self.body.trunk.frozen_fingerprint()}"
        return hashlib.sha256(parts.encode()).hexdigest()[:16]


class _Scales(nn.Module):
    """Images (B, 3, S, S) -> maps (B, D · scales, H, W), all on the grid of the first scale."""

    def __init__(self, trunk: Backbone, scales: Sequence[float]) -> None:
        super().__init__()
        self.trunk = trunk
        self.scales = tuple(float(scale) for scale in scales)

    def scaled(self, size: int, scale: float) -> int:
        """The image size at a scale; the first is as it is."""
        step = STEP if STEP % self.trunk.step == 0 else self.trunk.step
        return size if scale == 1 else max(step, round(scale * size / step) * step)

    def forward(self, images: Tensor) -> Tensor:
        first: Tensor = self.trunk(images)
        maps = [first]
        for scale in self.scales[1:]:
            height, width = (self.scaled(size, scale) for size in _sizes(images))
            maps.append(resize(self.trunk(resize(images, height, width)), *_sizes(first)))
        return torch.cat(maps, 1)


def resize(images: Tensor, height: int, width: int) -> Tensor:
    """Resize (B, C, H, W) to (B, C, height, width), bilinear with antialiasing."""
    rows, columns = _sizes(images)
    down = torch.from_numpy(_weights(rows, height)).to(images)
    across = torch.from_numpy(_weights(columns, width)).to(images)
    return down @ images @ across.T


def _sizes(images: Tensor) -> list[int]:
    """Height and width as numbers; while a model is exported, shapes are tensors."""
    return [int(size) for size in images.shape[-2:]]


@cache
def _weights(before: int, after: int) -> NDArray[np.float32]:
    """The matrix A (after, before) of a resize."""
    ratio = before / after
    centres = (np.arange(after)[:, None] + 0.5) * ratio
    distances = np.abs(np.arange(before)[None, :] + 0.5 - centres) / max(ratio, 1.0)
    triangle = np.maximum(0.0, 1.0 - distances)
    weights: NDArray[np.float32] = (triangle / triangle.sum(1, keepdims=True)).astype(np.float32)
    return weights
