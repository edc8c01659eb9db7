"""Concepts: the classifier that a backbone was pretrained with, and what its outputs are called."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from sarb.wordnet.table import wordnet


@dataclass(frozen=True, eq=False)
class Concepts:
    """A linear classifier on a backbone's map; no part of the backbone's parameters or state.

    Attributes:
        names: what the K concepts are called.
        ids: their WordNet ids, e.g. "n02391049"; unique, which names are not.
        weight: (K, D).
        bias: (K,).
    """

    names: tuple[str, ...]
    ids: tuple[str, ...]
    weight: Tensor
    bias: Tensor

    def __len__(self) -> int:
        return len(self.ids)

    def logits(self, x: Tensor) -> Tensor:
        """Maps (B, D, H, W) -> logits per location (B, K, H, W); averaged maps (B, D) -> logits (B, K)."""
        weight = self.weight.to(x)
        bias = self.bias.to(x)
        return torch.einsum("kd,bd...->bk...", weight, x) + bias.view(-1, *[1] * (x.ndim - 2))

    def probabilities(self, x: Tensor) -> Tensor:
        """As :meth:`logits`, softmax over the concepts."""
        return self.logits(x).softmax(dim=1)


def imagenet(weight: Tensor, bias: Tensor) -> Concepts:
    """Return the classifier of ImageNet's thousand, in the usual order (by WordNet id)."""
    table = wordnet()
    return Concepts(table.names, table.ids, weight.detach().float(), bias.detach().float())
