"""The largest of some entries: which losses large-loss rejection drops, which pseudo-labels are trusted."""

from __future__ import annotations

import torch
from torch import Tensor


def largest(values: Tensor, among: Tensor, count: int) -> Tensor:
    """Mask of the ``count`` largest values among the entries of a mask, or of all of them if there are fewer.

    Args:
        values: any shape.
        among: mask of the same shape; no other entry is ever chosen.
        count: how many; of equal values, the first ones.

    >>> largest(torch.tensor([3.0, 9.0, 5.0]), torch.tensor([True, False, True]), 1)
    tensor([False, False,  True])
    """
    entries = among.flatten().nonzero()[:, 0]
    order = values.detach().flatten()[entries].argsort(descending=True, stable=True)
    return torch.zeros_like(among).flatten().index_fill_(0, entries[order[:count]], True).view_as(among)
