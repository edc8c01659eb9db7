"""K-means for prototypes: seeded, safe for few or equal points, memory bounded by one copy of the points.

The categories of a real set differ by a factor of hundreds in size, so they are clustered one after the other: a
padded batch of all categories would need many times the memory of the points themselves.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from sarb.errors import SarbError

#: rows of the point matrix worked on at a time
CHUNK = 8192


class Clusters(NamedTuple):
    """Result of :func:`kmeans`: ``centers`` (K', D), ``assignment`` (M,) integers, ``inertia`` Σ |x − center|²."""

    centers: Tensor
    assignment: Tensor
    inertia: float


@torch.no_grad()
def kmeans(
    points: Tensor,
    clusters: int,
    generator: torch.Generator | None = None,
    iterations: int = 100,
    restarts: int = 3,
    tolerance: float = 1e-4,
) -> Clusters:
    """Cluster points (M, D): Lloyd's algorithm from greedy k-means++ seeds, the best of several restarts.

    Gives K' = min(clusters, number of distinct points) clusters, none for no points. Points closer than rounding
    can tell apart are one point.

    Args:
        points: (M, D), any device; half precision is clustered in float32.
        clusters: K.
        generator: CPU generator of the seeds; the global one by default.
        iterations: most steps of one run; it stops as soon as no point changes its cluster.
        restarts: independent runs, of which the one with the least inertia wins.
        tolerance: a run also stops when the centers together move by less than this share of the mean variance
            of a coordinate (squared; scikit-learn's rule). 0 runs to the very end.
    """
    points = points.float() if points.dtype in (torch.float16, torch.bfloat16) else points
    if not bool(torch.isfinite(points).all()):
        raise SarbError("k-means got points that are NaN or infinite; has the training diverged?")
    if len(points) == 0 or clusters < 1:
        return Clusters(points[:0], torch.zeros(len(points), dtype=torch.long, device=points.device), 0.0)
    # Distances are sums of squares minus a product; around the mean those are small and cancel least.
    middle = points.mean(0)
    centred = points - middle
    runs = [_run(centred, clusters, generator, iterations, tolerance) for _ in range(max(1, restarts))]
    best = min(runs, key=lambda run: run.inertia)
    return best._replace(centers=best.centers + middle)


def squared_distances(points: Tensor, centers: Tensor) -> Tensor:
    """|x − c|² of points (M, D) and centers (K, D), as (M, K); exactly 0 where rounding could have made it up."""
    rows = []
    for part in torch.split(points, CHUNK):
        # vector_norm needs no squared copy of the points
        scale = torch.linalg.vector_norm(part, dim=1, keepdim=True).square() + centers.square().sum(1)
        squared = torch.addmm(scale, part, centers.T, alpha=-2)
        rows.append(squared.where(squared > 16 * torch.finfo(points.dtype).eps * scale, 0))
    return torch.cat(rows)


def _seed(points: Tensor, clusters: int, generator: torch.Generator | None) -> Tensor:
    """Greedy k-means++: draw each next center with probability ∝ squared distance, keep the best of a few draws."""
    draws = 2 + int(math.log(clusters))
    chosen = [int(torch.randint(len(points), (), generator=generator))]
    nearest = squared_distances(points, points[chosen])[:, 0]
    while len(chosen) < clusters and bool(nearest.any()):
        places = torch.rand(draws, generator=generator, dtype=torch.float64).to(nearest.device)
        reach = nearest.double().cumsum(0)
        drawn = torch.searchsorted(reach, places * reach[-1], right=True).clamp_max(len(points) - 1)
        candidates = torch.minimum(nearest[:, None], squared_distances(points, points[drawn]))
        best = int(candidates.sum(0).argmin())
        nearest = candidates[:, best]
        chosen.append(int(drawn[best]))
    return points[chosen]


def _run(
    points: Tensor, clusters: int, generator: torch.Generator | None, iterations: int, tolerance: float
) -> Clusters:
    centers = _seed(points, clusters, generator)
    assignment = squared_distances(points, centers).argmin(1)
    smallest_move = tolerance * torch.linalg.vector_norm(points).square() / points.numel()
    for _ in range(iterations):
        before, old = centers, assignment
        centers = _means(points, assignment, centers)
        assignment = squared_distances(points, centers).argmin(1)
        if torch.equal(assignment, old) or bool((centers - before).square().sum() < smallest_move):
            break
    return Clusters(centers, assignment, _inertia(points, centers, assignment))


def _means(points: Tensor, assignment: Tensor, centers: Tensor) -> Tensor:
    """Mean of each cluster, (K, D); an empty cluster moves to the point farthest from its own center."""
    sums, sizes = torch.zeros_like(centers), assignment.bincount(minlength=len(centers))
    for part, owner in zip(torch.split(points, CHUNK), torch.split(assignment, CHUNK), strict=True):
        sums += one_hot(owner, len(centers)).to(points.dtype).T @ part
    means = sums / sizes.clamp_min(1)[:, None]
    empty = (sizes == 0).nonzero()[:, 0]
    if len(empty):
        strays = squared_distances(points, means)[torch.arange(len(points)), assignment]
        means[empty] = points[strays.topk(len(empty)).indices]
    return means


def _inertia(points: Tensor, centers: Tensor, assignment: Tensor) -> float:
    parts = zip(torch.split(points, CHUNK), torch.split(assignment, CHUNK), strict=True)
    return sum(float((part - centers[owner]).square().sum(dtype=torch.float64)) for part, owner in parts)
