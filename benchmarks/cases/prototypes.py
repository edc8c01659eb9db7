"""Prototypes: k-means for every category, compared with scikit-learn on one category at a time."""

from __future__ import annotations

import statistics
from itertools import count

import torch
from sklearn.cluster import KMeans
from torch import Tensor

from benchmarks.harness import Case, lazy
from benchmarks.products import repeat_products
from sarb.blends import PrototypeBlend

#: (clusters in a category, spread around them): from well separated to one cloud
LOOKS = {"looks apart": (10, 1.0), "looks that overlap": (10, 4.0), "more looks than prototypes": (30, 2.0)}


def features(categories: int, points: int, dim: int, groups: int, spread: float) -> tuple[Tensor, Tensor]:
    """Return random representations (M, D) of known positives and their categories (M,), shuffled."""
    generator = torch.Generator().manual_seed(0)
    owner = torch.arange(categories).repeat(points)[torch.randperm(categories * points, generator=generator)]
    looks = torch.randn(categories, groups, dim, generator=generator)
    look = torch.randint(groups, owner.shape, generator=generator)
    made = torch.randn(len(owner), dim, generator=generator).mul_(spread)
    for rows in torch.arange(len(owner)).split(4096):
        made[rows] += looks[owner[rows], look[rows]]
    return made, owner


def inertia(points: Tensor, centers: Tensor) -> float:
    """Σ |x − nearest center|² in double precision."""
    return float(torch.cdist(points.double(), centers.double()).min(1).values.square().sum())


def cases(quick: bool = False) -> list[Case]:
    """80 categories × 2,000 × 1,024 and K = 10."""
    if quick:
        return [_case("looks apart", 4, 40, 48, 4)]
    return [_case(name, 80, 2000, 1024, 8) for name in LOOKS]


def _case(name: str, categories: int, points: int, dim: int, part: int, prototypes: int = 10) -> Case:
    made = lazy(lambda: features(categories, points, dim, *LOOKS[name]))
    blend = PrototypeBlend(categories, dim, prototypes)
    literal_seeds = count()
    our_seeds = count()
    literal_inertia: list[float] = []
    our_centers: list[Tensor] = []

    def literal() -> None:
        data, owner = made()
        seed = next(literal_seeds)
        fitted = [
            KMeans(prototypes, n_init=1, random_state=seed).fit(data[owner == category].numpy())
            for category in range(part)
        ]
        literal_inertia.append(sum(float(model.inertia_) for model in fitted))

    def ours() -> None:
        blend.fit(*made(), torch.Generator().manual_seed(next(our_seeds)))
        our_centers.append(blend.centers[:part].clone())

    def compared() -> str:
        data, owner = made()
        our_inertia = [
            sum(inertia(data[owner == c], centers[c]) for c in range(part)) for centers in our_centers
        ]
        ratio = statistics.mean(our_inertia) / statistics.mean(literal_inertia)
        return f"inertia {ratio:.4f} × scikit-learn's, mean of {len(our_inertia)} seeds on {part} categories"

    return Case(
        f"prototypes: {name}, {categories} categories × {points} × {dim}, K={prototypes}",
        literal=literal,
        ours=ours,
        floor=repeat_products(lambda: ours),
        scale=categories / part,
        note="literal: scikit-learn, one category after the other; floor: our own matrix products; "
        "goal: 5 × faster, inertia at most 1.01",
        detail=compared,
    )
