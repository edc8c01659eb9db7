"""The whole head, forward and backward: representations, the three branches, contrastive loss."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from benchmarks.cases.decouple import LiteralDecoupling, tanh_floor
from benchmarks.cases.graph import LiteralGraph, random_graph
from benchmarks.harness import Case, Work, lazy
from benchmarks.products import gigaflops, repeat_products
from sarb.batches.loader import Batch
from sarb.blends import random_partner
from sarb.labels import Targets
from sarb.losses import contrastive
from sarb.methods.sarb import SARB
from sarb.networks import SSGRL, create_backbone


class Head(SSGRL):
    """SSGRL after its 1×1 convolution: takes maps (B, D, H, W) as input."""

    def from_frozen(self, activations: Tensor) -> Tensor:
        """Return the input."""
        return activations


class LiteralSARB(nn.Module):
    """The three branches as three passes through the whole classifier.

    It uses the contrastive loss of the package, which has a separate case.

    Args:
        method: our method with an SD network, whose weights are shared.
    """

    def __init__(self, method: SARB) -> None:
        super().__init__()
        self.method = method
        network = method.network
        assert isinstance(network, SSGRL) and network.sd is not None
        self.network = network
        self.sd = LiteralDecoupling(network.sd)
        self.graph = LiteralGraph(network.graph)

    def represent(self, maps: Tensor) -> Tensor:
        """(B, D, H, W) -> (B, C, D)."""
        assert self.network.words is not None
        reps: Tensor = self.sd(maps, self.network.words())[0]
        return reps

    def classify(self, reps: Tensor) -> Tensor:
        """(B, C, D) -> (B, C)."""
        logits: Tensor = self.network.classifier(self.graph(reps, self.network.cooccurrence), reps)
        return logits

    def forward(self, batch: Batch) -> dict[str, Tensor]:
        """Batch -> {"cls", "cst", "ilrb", "plrb"}."""
        method = self.method
        targets = Targets.of(batch.labels)
        assert method.ilrb is not None and method.plrb is not None
        reps = self.represent(method.maps(batch))
        terms = {"cls": method.loss(self.classify(reps), targets)}
        terms["cst"] = method.contrastive * contrastive(reps, targets, form=method.contrastive_form)
        blended, complete = method.ilrb(reps, targets, random_partner(len(reps)))
        terms["ilrb"] = method.loss(self.classify(blended), complete)
        blended, complete = method.plrb(reps, targets)
        terms["plrb"] = method.loss(self.classify(blended), complete)
        return terms


@dataclass(frozen=True)
class Sizes:
    """B, C, D, hidden and side of the grid, by default the paper's."""

    batch: int = 16
    categories: int = 80
    dim: int = 1024
    hidden: int = 512
    side: int = 7

    @property
    def joint(self) -> int:
        """Number of elements of SD's joint representation."""
        return self.batch * self.side**2 * self.categories * self.hidden


SMALL = Sizes(4, 12, 32, 16, 3)


def partial_labels(batch: int, categories: int, known: float = 0.1, present: float = 2.9 / 80) -> Tensor:
    """Return labels (B, C) as in COCO: 2.9 of 80 categories present, a tenth of the entries known."""
    labels = torch.where(torch.rand(batch, categories) < present, 1, -1)
    return torch.where(torch.rand(batch, categories) < known, labels, 0).to(torch.int8)


def blending(network: SSGRL) -> SARB:
    """Return SARB in an epoch with blending, with random prototypes."""
    method = SARB(network)
    assert method.plrb is not None
    method.plrb.centers.normal_()
    method.plrb.counts.fill_(method.plrb.centers.shape[1])
    method.begin_step(6.0)
    method.epoch = 6
    method.completing = True
    return method.train()


def build_head(sizes: Sizes) -> tuple[SARB, LiteralSARB, Batch]:
    """Return our head, the literal one with the same weights, and a batch of maps."""
    torch.manual_seed(0)
    words = (torch.randn(sizes.categories, 300), torch.ones(sizes.categories, dtype=torch.bool))
    network = Head(
        create_backbone("tiny"),
        sizes.categories,
        random_graph(sizes.categories),
        words,
        dim=sizes.dim,
        hidden=sizes.hidden,
    )
    method = blending(network)
    maps = torch.randn(sizes.batch, sizes.dim, sizes.side, sizes.side, requires_grad=True)
    labels = partial_labels(sizes.batch, sizes.categories)
    return method, LiteralSARB(method), Batch(maps, labels, torch.arange(sizes.batch), frozen=True)


def losses(module: nn.Module, batch: Batch) -> None:
    """Run forward and backward with a fixed seed, then clear the gradients."""
    torch.manual_seed(1)
    sum(module(batch).values(), torch.zeros(())).backward()
    for tensor in (*module.parameters(), batch.images):
        tensor.grad = None


def head_floor(sizes: Sizes, ours: Work) -> Work:
    """Return a lower bound: SD's tanh and the matrix products of our head."""
    tanh = tanh_floor(sizes.joint)
    products = repeat_products(lambda: ours)
    return lambda: (tanh(), products())


def cases(quick: bool = False) -> list[Case]:
    """The paper's sizes."""
    sizes = SMALL if quick else Sizes()
    made = lazy(lambda: build_head(sizes))

    def ours() -> None:
        losses(made()[0], made()[2])

    def literal() -> None:
        losses(made()[1], made()[2])

    def facts() -> str:
        work = f"products of {gigaflops(literal):.3g} GFLOP literally, {gigaflops(ours):.3g} in ours"
        blend = made()[0].ilrb
        assert blend is not None
        return f"{int(blend.chosen.any(1).sum())} of {sizes.batch} images blended by ILRB; {work}"

    return [
        Case(
            f"head: three branches + contrastive, B={sizes.batch} C={sizes.categories} D={sizes.dim}, "
            "10 % known",
            literal=literal,
            ours=ours,
            floor=head_floor(sizes, ours),
            note="floor: one tanh per joint element + our matrix products; goal 1.3× the floor, 1.6× faster",
            detail=facts,
        )
    ]
