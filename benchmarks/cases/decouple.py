"""SD, forward and backward, in the paper's sizes."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from benchmarks.harness import Case, Work, lazy
from benchmarks.products import repeat_products
from sarb.networks import SemanticDecoupling

#: elements of the block that fits in the CPU cache
BLOCK = 1 << 18


class LiteralDecoupling(nn.Module):
    """SD as printed in the paper: everything is repeated to B·P·C rows.

    Args:
        sd: our module, whose weights are shared.
    """

    def __init__(self, sd: SemanticDecoupling) -> None:
        super().__init__()
        self.image = sd.image
        self.word = sd.word
        self.joint = sd.joint
        self.score = sd.score
        self.joint_bias = nn.Parameter(torch.randn(sd.joint.out_features))
        self.score_bias = nn.Parameter(torch.randn(1))

    def forward(self, maps: Tensor, words: Tensor) -> tuple[Tensor, Tensor]:
        """Maps (B, D, H, W), words (C, W) -> representations (B, C, D), attention (B, C, H, W)."""
        batch, dim, height, width = maps.shape
        categories = len(words)
        positions = height * width
        grid = maps.flatten(2).transpose(1, 2)
        image = self.image(grid).view(batch * positions, 1, -1).repeat(1, categories, 1)
        word = self.word(words).view(1, categories, -1).repeat(batch * positions, 1, 1)
        joint = torch.tanh(image * word).view(batch * positions * categories, -1)
        score = (self.joint(joint) + self.joint_bias) @ self.score.weight.T + self.score_bias
        attention = score.view(batch, positions, categories).softmax(1)
        spread = attention.view(batch, positions, categories, 1).repeat(1, 1, 1, dim)
        features = grid.reshape(batch, positions, 1, dim).repeat(1, 1, categories, 1)
        return (features * spread).sum(1), attention.transpose(1, 2).reshape(batch, categories, height, width)


def tanh_floor(elements: int) -> Work:
    """Return a lower bound for any SD: the tanh of ``elements`` numbers, block by block in the CPU cache."""
    made = lazy(lambda: torch.randn(2, min(BLOCK, elements)))

    def work() -> None:
        block, out = made()
        with torch.no_grad():
            for _ in range(max(1, elements // len(block))):
                torch.tanh(block, out=out)

    return work


def step(module: nn.Module, *inputs: Tensor) -> None:
    """Run forward and backward on the sum of squares of the first output, then clear the gradients."""
    output = module(*inputs)
    output = output[0] if isinstance(output, tuple) else output
    output.square().sum().backward()
    for tensor in (*module.parameters(), *inputs):
        tensor.grad = None


def cases(quick: bool = False) -> list[Case]:
    """C = 80 and 200."""
    return [_case(2, 5, 32, 16, 3), _case(2, 9, 32, 16, 3)] if quick else [_case(16, 80), _case(16, 200)]


def _case(batch: int, categories: int, dim: int = 1024, hidden: int = 512, side: int = 7) -> Case:
    def build() -> tuple[SemanticDecoupling, LiteralDecoupling, Tensor, Tensor]:
        torch.manual_seed(0)
        sd = SemanticDecoupling(dim, hidden=hidden)
        maps = torch.randn(batch, dim, side, side, requires_grad=True)
        return sd, LiteralDecoupling(sd), maps, torch.randn(categories, 300)

    made = lazy(build)

    def ours() -> None:
        step(made()[0], *made()[2:])

    tanh = tanh_floor(batch * side * side * categories * hidden)
    products = repeat_products(lambda: ours)

    def floor() -> None:
        tanh()
        products()

    return Case(
        f"decouple: SD forward+backward, B={batch} C={categories} D={dim} hidden={hidden} {side}×{side}",
        literal=lambda: step(made()[1], *made()[2:]),
        ours=ours,
        floor=floor,
        note="floor: one tanh per joint element in the cache + our matrix products; "
        "goal 8× faster, 8× less memory",
    )
