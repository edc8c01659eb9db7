"""The tokens of a vision transformer as a map, so that every cut looks like that of a convolutional network.

A transformer has P tokens before those of the patches (class and register tokens). In a map (B, D, P + H, W) each of
them is a row of its own, repeated W times, above the H rows of patches. So a cached map can be mirrored like any other,
and at the end the first P rows are dropped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor, nn


def as_map(tokens: Tensor, prefix: int, height: int, width: int) -> Tensor:
    """Tokens (B, P + H·W, D) -> map (B, D, P + H, W)."""
    batch, _, dim = tokens.shape
    patches = tokens[:, prefix:].reshape(batch, height, width, dim)
    rows = tokens[:, :prefix, None].expand(-1, -1, width, -1)
    return torch.cat([rows, patches], 1).permute(0, 3, 1, 2)


def as_tokens(maps: Tensor, prefix: int) -> Tensor:
    """The reverse of :func:`as_map`."""
    rows = maps.permute(0, 2, 3, 1)
    return torch.cat([rows[:, :prefix, 0], rows[:, prefix:].flatten(1, 2)], 1)


class Embedding(nn.Module):
    """Images (B, 3, S, S) -> map of tokens.

    Args:
        parts: modules with the parameters, in order.
        run: images -> tokens (B, P + H·W, D), by these parts.
        prefix: P.
        patch: pixels of a patch.
    """

    def __init__(
        self, parts: Iterable[nn.Module], run: Callable[..., Tensor], prefix: int, patch: int
    ) -> None:
        super().__init__()
        self.parts = nn.ModuleList(parts)
        self.run = run
        self.prefix = prefix
        self.patch = patch

    def forward(self, images: Tensor) -> Tensor:
        """(B, 3, S, S) -> (B, D, P + H, W)."""
        height, width = (int(size) // self.patch for size in images.shape[-2:])
        return as_map(self.run(self.parts, images), self.prefix, height, width)


class Block(nn.Module):
    """One block of a transformer, or a norm: map of tokens -> map of tokens.

    Args:
        inner: tokens -> tokens.
        prefix: P.
        more: (source, tokens, H, W) -> further arguments of ``inner``, such as rotary position embeddings.
        source: what computes them, a module without parameters, shared by all blocks.
    """

    def __init__(
        self,
        inner: nn.Module,
        prefix: int,
        more: Callable[[Any, Tensor, int, int], dict[str, Any]] | None = None,
        source: nn.Module | None = None,
    ) -> None:
        super().__init__()
        self.inner = inner
        self.prefix = prefix
        self.more = more
        self.source = source

    def forward(self, maps: Tensor) -> Tensor:
        """(B, D, P + H, W) -> the same shape."""
        height, width = (int(size) for size in maps.shape[-2:])
        height -= self.prefix
        tokens = as_tokens(maps, self.prefix)
        more = {} if self.more is None else self.more(self.source, tokens, height, width)
        found = self.inner(tokens, **more)
        return as_map(found[0] if isinstance(found, tuple) else found, self.prefix, height, width)


class Patches(nn.Module):
    """Drop the first P rows: (B, D, P + H, W) -> (B, D, H, W)."""

    def __init__(self, prefix: int) -> None:
        super().__init__()
        self.prefix = prefix

    def forward(self, maps: Tensor) -> Tensor:
        """(B, D, P + H, W) -> (B, D, H, W)."""
        return maps[:, :, self.prefix :]


class ChannelsLast(nn.Module):
    """A module that takes and gives (B, H, W, D), as a map (B, D, H, W) on both sides.

    Args:
        inner: the module.
        images: it takes images (B, 3, S, S) as they are.
    """

    def __init__(self, inner: nn.Module, images: bool = False) -> None:
        super().__init__()
        self.inner = inner
        self.images = images

    def forward(self, maps: Tensor) -> Tensor:
        """(B, D, H, W) -> (B, D', H', W')."""
        found: Tensor = self.inner(maps if self.images else maps.permute(0, 2, 3, 1))
        return found.permute(0, 3, 1, 2)
