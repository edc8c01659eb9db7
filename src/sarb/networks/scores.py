"""The scores of semantic decoupling, computed in blocks to save memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

#: elements of the joint space per block: small enough for the cache of a core, large enough for a GPU
BLOCK = {"cpu": 1 << 21, "cuda": 1 << 26}


def joint_scores(image: Tensor, word: Tensor, direction: Tensor) -> Tensor:
    """s_cm = Σ_h v_h tanh(x_mh w_ch), shape (C, M).

    As one expression this would keep three tensors of M · C · hidden numbers, 385 MB for a batch of 16 at the
    paper's sizes. Forward and backward work in blocks that fit the cache instead, and compute the tanh twice
    rather than store it. That takes less memory **and** less time, because memory traffic is the bottleneck.
    Compilers and exporters get the plain expression.

    Args:
        image: x (M, hidden).
        word: w (C, hidden).
        direction: v (hidden).
    """
    if torch.compiler.is_compiling():
        return torch.tanh(image * word[:, None]) @ direction
    scores: Tensor = _JointScores.apply(image, word, direction)  # type: ignore[no-untyped-call]
    return scores


class _JointScores(torch.autograd.Function):
    """With t = tanh(x w), g = ∂L/∂s and u = g (1 − t²): ∂x = v Σ_c u w, ∂w = v Σ_m u x, ∂v = Σ_cm g t."""

    @staticmethod
    def forward(ctx: Any, image: Tensor, word: Tensor, direction: Tensor) -> Tensor:
        scores = image.new_empty(len(word), len(image))
        for categories, rows, buffers in _blocks(image, word, 1):
            joint = _tanh(image[rows], word[categories], buffers[0])
            scores[categories, rows] = joint @ direction
        ctx.save_for_backward(image, word, direction)
        return scores

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        image, word, direction = ctx.saved_tensors
        to_image, to_word, to_direction = map(torch.zeros_like, (image, word, direction))
        for categories, rows, (first, second) in _blocks(image, word, 2):
            joint = _tanh(image[rows], word[categories], first)
            slope = gradient[categories, rows].contiguous()
            to_direction.addmv_(joint.flatten(0, 1).T, slope.flatten())
            slope = slope[..., None]
            change = torch.addcmul(slope, joint.square_(), slope, value=-1, out=second)
            to_image[rows] += torch.mul(change, word[categories, None], out=first).sum(0)
            to_word[categories] += torch.mul(change, image[rows], out=first).sum(1)
        return to_image.mul_(direction), to_word.mul_(direction), to_direction


def _tanh(image: Tensor, word: Tensor, out: Tensor) -> Tensor:
    """(m, hidden), (c, hidden) -> (c, m, hidden)."""
    return torch.mul(image, word[:, None], out=out).tanh_()


def _blocks(image: Tensor, word: Tensor, count: int) -> Iterator[tuple[slice, slice, list[Tensor]]]:
    """Yield ranges of categories and rows that cover (C, M), with ``count`` buffers (c, m, hidden) each."""
    (size, hidden), limit = image.shape, BLOCK.get(image.device.type, BLOCK["cuda"])
    rows = max(1, min(size, limit // hidden))
    categories = max(1, min(len(word), limit // (rows * hidden)))
    buffers = [image.new_empty(categories * rows * hidden) for _ in range(count)]
    for first in range(0, len(word), categories):
        for start in range(0, size, rows):
            shape = (min(categories, len(word) - first), min(rows, size - start), hidden)
            parts = [buffer[: shape[0] * shape[1] * hidden].view(shape) for buffer in buffers]
            yield slice(first, first + shape[0]), slice(start, start + shape[1]), parts
