"""The contrastive loss, forward and backward, compared with a loop over pairs and with lists of pairs."""

from __future__ import annotations

import torch
from torch import Tensor

from benchmarks.harness import Case, lazy
from benchmarks.products import repeat_products
from sarb.losses import contrastive


def loop(reps: Tensor, labels: Tensor) -> Tensor:
    """Eq. 7, pair by pair of two known labels; without the limit on negative pairs."""
    losses = []
    codes = labels.tolist()
    for c, rows in enumerate(reps.unbind(1)):
        row = rows.unbind(0)  # with reps[n, c], every pair's gradient would be as large as reps
        for n in range(len(row)):
            for m in range(n + 1, len(row)):
                if codes[n][c] and codes[m][c]:
                    similarity = torch.cosine_similarity(row[n], row[m], 0)
                    losses.append(1 - similarity if codes[n][c] + codes[m][c] == 2 else 1 + similarity)
    return torch.stack(losses).mean()


def listed(reps: Tensor, labels: Tensor) -> Tensor:
    """The balanced form with lists of pairs and a full sort, as in an earlier version of the package."""
    unit = torch.nn.functional.normalize(reps, dim=2).transpose(0, 1)
    present = labels.T == 1
    absent = labels.T == -1
    first, second = torch.triu_indices(len(reps), len(reps), 1)
    similarity = torch.bmm(unit, unit.transpose(1, 2))[:, first, second]
    mixed = present[:, first] & absent[:, second] | absent[:, first] & present[:, second]
    kept = [1 - similarity[present[:, first] & present[:, second]]]
    pairs = len(kept[0])
    for losses in (1 + similarity[mixed], 1 + similarity[absent[:, first] & absent[:, second]]):
        order = losses.detach().argsort(descending=True, stable=True)
        others = torch.randperm(max(0, len(losses) - pairs))[: 2 * pairs]
        kept.append(losses[torch.cat([order[:pairs], order[pairs:][others]])])
    return torch.cat(kept).mean()


def cases(quick: bool = False) -> list[Case]:
    """B = 16 (the paper's) and 64, C = 80 and 200."""
    if quick:
        return [_case(4, 5, 8, 5), _case(4, 5, 8, 0)]
    return [_case(b, c, 1024, part) for part in (4, 0) for b, c in ((16, 80), (16, 200), (64, 200))]


def _case(batch: int, categories: int, dim: int, part: int) -> Case:
    """Compare with the loop on ``part`` categories, or with lists of pairs if ``part`` is 0."""

    def build() -> tuple[Tensor, Tensor]:
        torch.manual_seed(0)
        # 4 % present, as in COCO, and at least one positive pair
        labels = torch.where(torch.rand(batch, categories) < 0.04, 1, -1)
        labels[:2, 0] = 1
        return torch.randn(batch, categories, dim, requires_grad=True), labels

    made = lazy(build)

    def literal() -> None:
        reps, labels = made()
        torch.autograd.grad(loop(reps[:, :part], labels[:, :part]) if part else listed(reps, labels), reps)

    def ours() -> None:
        reps, labels = made()
        torch.autograd.grad(contrastive(reps, labels), reps)

    return Case(
        f"contrastive: {'loop' if part else 'lists'} of pairs, B={batch} C={categories} D={dim}",
        literal=literal,
        ours=ours,
        floor=repeat_products(lambda: ours),
        scale=categories / part if part else 1.0,
        note=f"literal: {'loop over' if part else 'lists of'} pairs; floor: our own matrix products",
    )
