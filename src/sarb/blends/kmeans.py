"""K-means for prototypes: all categories in padded batches, seeded, with bounded memory.

A step of Lloyd's algorithm with K = 10 reads every point twice and computes little, so wide points are first
projected to a few dimensions (a sketch). Seeding, restarts and most steps use the sketch, the last few steps
use the points.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from sarb.errors import SarbError

# By hand, because scikit-learn clusters one category at a time; batches in torch are over 5 times as fast.

#: largest padded batch, in numbers (256 MB in float32); a larger category is a batch by itself
CHUNK = 2**26
#: dimensions of the sketch of wide points
SKETCH = 32
#: number of points of a group from which the directions of its sketch are estimated
SAMPLE = 512
#: factor of the tolerance for the steps on the sketch
COARSE = 10


class Clusters(NamedTuple):
    """Result of :func:`kmeans`: ``centers`` (K', D), ``assignment`` (M,), ``inertia`` Σ |x − center|²."""

    centers: Tensor
    assignment: Tensor
    inertia: float


class Batch(NamedTuple):
    """Centered points (G, M, D) of G groups; ``valid`` (G, M) is false for padding; ``squares`` |x|²."""

    points: Tensor
    valid: Tensor
    squares: Tensor

    @classmethod
    def of(cls, points: Tensor, valid: Tensor) -> Batch:
        """Compute the squares."""
        # vector_norm makes no squared copy of the points
        return cls(points, valid, torch.linalg.vector_norm(points, dim=2).square())

    def take(self, groups: Tensor) -> Batch:
        """Select groups by mask or index."""
        return Batch(*(part[groups] for part in self))


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

    There are K' = min(clusters, number of distinct points) clusters. Points that differ only by rounding
    count as one point. See :func:`kmeans_by_owner` for the arguments.
    """
    owner = torch.zeros(len(points), dtype=torch.long, device=points.device)
    centers, counts = kmeans_by_owner(points, owner, 1, clusters, generator, iterations, restarts, tolerance)
    centers = centers[0, : int(counts)]
    if len(centers) == 0:
        return Clusters(centers, owner, 0.0)
    points = points.to(centers.dtype)
    middle = points.mean(0)
    assignment = squared_distances(points - middle, centers - middle).argmin(1)
    inertia = (points - centers[assignment]).square_().sum(dtype=torch.float64)
    return Clusters(centers, assignment, float(inertia))


@torch.no_grad()
def kmeans_by_owner(
    points: Tensor,
    owner: Tensor,
    groups: int,
    clusters: int,
    generator: torch.Generator | None = None,
    iterations: int = 100,
    restarts: int = 3,
    tolerance: float = 1e-4,
) -> tuple[Tensor, Tensor]:
    """Cluster each group of points separately: centers (C, K, D) and the number of clusters (C,).

    Groups of similar size share a padded batch of at most ``CHUNK`` numbers. So the extra memory is below
    512 MB in float32, or about twice the largest group if that is more. Unused rows of the centers are 0. The
    random draws for a group depend only on the generator and on the index of the group.

    Args:
        points: (M, D), on any device; half precision is clustered in float32.
        owner: (M,) group of each point, 0 to C − 1, in any order.
        groups: C.
        clusters: K, the maximum number of clusters of a group.
        generator: CPU generator of the seeds; the global one by default.
        iterations: maximum number of steps; a run stops as soon as no point changes its cluster.
        restarts: runs of each group; the one with the lowest inertia is kept. Above ``SKETCH`` dimensions
            they are compared after two steps on a sketch, and only the best one continues.
        tolerance: also stop when a step lowers the inertia by less than this share; 0 turns this off.
    """
    dtype = torch.float32 if points.dtype in (torch.float16, torch.bfloat16) else points.dtype
    centers = points.new_zeros(groups, max(0, clusters), points.shape[1], dtype=dtype)
    counts = torch.zeros(groups, dtype=torch.long, device=points.device)
    if len(points) == 0 or clusters < 1:
        return centers, counts
    restarts = max(1, restarts)
    shape = (restarts, groups, clusters, 2 + int(math.log(clusters)))
    draws = torch.rand(shape, generator=generator, dtype=torch.float64).transpose(0, 1).to(points.device)
    basis = torch.randn(points.shape[1], min(SKETCH, points.shape[1]), generator=generator).to(
        points.device, dtype
    )
    chunks = list(_chunks(owner, groups, max(points.shape[1], 2 * SKETCH)))
    # Allocating costs as much as copying, so all chunks share one buffer.
    space = points.new_empty(max(rows.numel() for _, rows, _ in chunks), points.shape[1])
    for members, rows, valid in chunks:
        padded = torch.index_select(points, 0, rows.flatten(), out=space[: rows.numel()])
        padded = padded.to(dtype).view(*rows.shape, -1)
        middle = _center(padded, valid)
        batch = Batch.of(padded, valid)
        if not bool(batch.squares.isfinite().all()):
            raise SarbError("k-means: some points are NaN or infinite; has the training diverged?")
        around, used = _cluster(batch, draws[members], basis, iterations, tolerance)
        centers[members] = (around + middle).where(used[..., None], 0)
        counts[members] = used.sum(1)
    return centers, counts


def squared_distances(points: Tensor, centers: Tensor) -> Tensor:
    """|x − c|² of points (…, M, D) and centers (…, K, D), as (…, M, K); 0 if below the rounding error."""
    scale = (
        torch.linalg.vector_norm(points, dim=-1, keepdim=True).square()
        + centers.square().sum(-1)[..., None, :]
    )
    return _rounded(scale - 2 * points @ centers.transpose(-1, -2), scale)


def _rounded(squared: Tensor, scale: Tensor) -> Tensor:
    return squared.where(squared > 16 * torch.finfo(squared.dtype).eps * scale, 0)


def _chunks(owner: Tensor, groups: int, width: int) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """Yield groups (G,) of similar size, the rows (G, M) of their points, and which are not padding (G, M)."""
    order = owner.argsort(stable=True)
    sizes = owner.bincount(minlength=groups)
    starts = sizes.cumsum(0) - sizes
    by_size = sizes.argsort(descending=True, stable=True)
    by_size = by_size[sizes[by_size] > 0]
    ordered = sizes[by_size].tolist()
    first = 0
    while first < len(ordered):
        longest = ordered[first]
        last = min(len(ordered), first + max(1, CHUNK // (longest * width)))
        # No group is padded to more than twice its size.
        while ordered[last - 1] * 2 < longest:
            last -= 1
        members = by_size[first:last]
        numbers = torch.arange(longest, device=owner.device)
        # Padding repeats a point, so that all numbers are finite.
        rows = order[starts[members, None] + numbers.minimum(sizes[members, None] - 1)]
        yield members, rows, numbers < sizes[members, None]
        first = last


def _center(points: Tensor, valid: Tensor) -> Tensor:
    """Subtract the mean (G, 1, D) of each group from its points, in place, and return it.

    Distances are sums of squares minus a product; for centered points the cancellation is smallest.
    """
    share = valid.to(points.dtype)[:, None] / valid.sum(1)[:, None, None]
    middle = torch.bmm(share, points)
    points -= middle
    return middle


def _cluster(
    batch: Batch, draws: Tensor, basis: Tensor, iterations: int, tolerance: float
) -> tuple[Tensor, Tensor]:
    """Return centers (G, K, D) and which of them exist (G, K)."""
    wide = batch.points.shape[2] > basis.shape[1]
    sketch = _sketch(batch, basis) if wide else batch
    centers, used = _seed(sketch, draws)
    owner = _assign(sketch, centers, used)
    # On the sketch, two steps show which restart is the best.
    centers, owner, inertia = _lloyd(sketch, owner, used, 1 if wide else iterations, tolerance)
    every = torch.arange(len(inertia), device=inertia.device)
    best = _first_lowest(inertia, sketch)[:, 0]
    centers = centers[every, best][:, None]
    owner = owner[every, :, best][..., None]
    used = used[every, best][:, None]
    if wide:
        # The last steps use the points themselves, so the sketch need not be exact.
        owner = _lloyd(sketch, owner, used, iterations, COARSE * tolerance)[1]
        centers = _lloyd(batch, owner, used, iterations, tolerance)[0]
    return centers[:, 0], used[:, 0]


def _first_lowest(inertia: Tensor, batch: Batch) -> Tensor:
    """Where the last dimension of (G, …) is lowest, (G, …, 1); of those that differ by rounding only, the first.

    Ties are common: with at most K points every restart ends at 0, and of two points that are nearest to each other
    it does not matter which one becomes a center. Another rounding must not give other prototypes then.
    """
    total = (batch.squares * batch.valid).sum(1, dtype=torch.float64)
    rounding = 16 * torch.finfo(batch.points.dtype).eps * total.view(-1, *[1] * (inertia.dim() - 1))
    return (inertia <= inertia.amin(-1, keepdim=True) + rounding).byte().argmax(-1, keepdim=True)


def _sketch(batch: Batch, basis: Tensor) -> Batch:
    """Project each group onto its approximate leading directions: one subspace iteration on a sample."""
    step = -(-batch.valid.shape[1] // SAMPLE)
    sample = batch.points[:, ::step].contiguous()
    valid = batch.valid[:, ::step, None]
    leading = torch.bmm((sample @ basis * valid).transpose(1, 2), sample)
    directions = torch.linalg.qr(leading.transpose(1, 2)).Q
    return Batch.of(torch.bmm(batch.points, directions), batch.valid)


def _seed(batch: Batch, draws: Tensor) -> tuple[Tensor, Tensor]:
    """Greedy k-means++: draw each center with probability ∝ squared distance, keep the best of a few draws.

    Args:
        batch: G groups.
        draws: (G, R, K, T) uniform numbers for R restarts and T candidates of each center.

    Returns:
        centers (G, R, K, D), and a mask of those that exist (G, R, K): duplicates do not.
    """
    groups, restarts, clusters, _ = draws.shape
    every = torch.arange(groups, device=draws.device)[:, None, None]
    sizes = batch.valid.sum(1)[:, None, None]
    chosen = torch.zeros(groups, restarts, clusters, dtype=torch.long, device=draws.device)
    used = torch.ones_like(chosen, dtype=torch.bool)
    nearest = batch.valid[:, None].expand(-1, restarts, -1).double()
    for k in range(clusters):
        reach = nearest.cumsum(2, dtype=torch.float64)
        used[:, :, k] = reach[:, :, -1] > 0
        levels = draws[:, :, k, : 1 if k == 0 else None] * reach[:, :, -1:]
        drawn = torch.searchsorted(reach, levels, right=True).minimum(sizes - 1)  # (G, R, T)
        distances = _distances_to(batch, batch.points[every, drawn])
        candidates = distances if k == 0 else torch.minimum(nearest[:, :, None], distances)  # (G, R, T, M)
        best = _first_lowest(candidates.sum(3), batch)
        nearest = candidates.take_along_dim(best[..., None], 2)[:, :, 0]
        chosen[:, :, k] = drawn.take_along_dim(best, 2)[:, :, 0]
    return batch.points[every, chosen], used


def _distances_to(batch: Batch, centers: Tensor) -> Tensor:
    """|x − c|² of centers (G, R, T, D), as (G, R, T, M); 0 for padding and if below the rounding error."""
    flat = centers.flatten(1, 2)
    scale = batch.squares[:, None] + flat.square().sum(2, keepdim=True)
    squared = torch.baddbmm(scale, flat, batch.points.transpose(1, 2), alpha=-2)
    return (_rounded(squared, scale) * batch.valid[:, None]).view(*centers.shape[:3], -1)


def _assign(batch: Batch, centers: Tensor, used: Tensor) -> Tensor:
    """Nearest of the centers (G, R, K, D) for every point, (G, M, R); −1 for padding."""
    # The square of the point itself does not affect which center is nearest.
    offset = centers.square().sum(3).where(used, torch.inf).flatten(1)[:, None]
    scores = torch.baddbmm(offset, batch.points, centers.flatten(1, 2).transpose(1, 2), alpha=-2)
    return scores.view(*scores.shape[:2], *used.shape[1:]).argmin(3).where(batch.valid[..., None], -1)


def _means(batch: Batch, owner: Tensor, used: Tensor) -> tuple[Tensor, Tensor]:
    """Means of the clusters (G, R, K, D) of assignments (G, M, R) and the inertia (G, R) around them.

    An empty cluster moves to the farthest point, which cannot raise the inertia.
    """
    member = (
        (owner[..., None] == torch.arange(used.shape[2], device=owner.device))
        .flatten(2)
        .to(batch.points.dtype)
    )
    sizes = member.sum(1).view_as(used)
    sums = torch.bmm(member.transpose(1, 2), batch.points).view(*used.shape, -1)
    means = sums / sizes.clamp_min(1)[..., None]
    # Σ |x − mean|² = Σ |x|² − Σ size |mean|² needs no further pass over the points.
    total = (batch.squares * batch.valid).sum(1, dtype=torch.float64)[:, None]
    inertia = total - (means * sums).sum((2, 3), dtype=torch.float64)
    empty = used & (sizes == 0)
    if bool(empty.any()):
        _reseed(batch, owner, means, empty)
    return means, inertia.clamp_min_(0)


def _reseed(batch: Batch, owner: Tensor, means: Tensor, empty: Tensor) -> None:
    """Move the empty clusters (G, R, K) of a run to the points farthest from their own centers, in place."""
    group, restart = empty.any(2).nonzero(as_tuple=True)
    own = means[group, restart].take_along_dim(owner[group, :, restart].clamp_min(0)[..., None], 1)
    strays = (batch.points[group] - own).square().sum(2).where(batch.valid[group], -1)
    farthest = strays.topk(min(strays.shape[1], empty.shape[2])).indices
    run, cluster = empty[group, restart].nonzero(as_tuple=True)
    rank = empty[group, restart].cumsum(1)[run, cluster] - 1
    means[group[run], restart[run], cluster] = batch.points[group[run], farthest[run, rank]]


def _lloyd(
    batch: Batch, owner: Tensor, used: Tensor, iterations: int, tolerance: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Lloyd's algorithm from assignments (G, M, R): centers (G, R, K, D), assignments and inertia (G, R)."""
    centers, inertia = _means(batch, owner, used)
    owners = owner.clone()
    running = torch.arange(len(used), device=used.device)
    for _ in range(iterations):
        before = owners[running]
        here = used[running]
        owner = _assign(batch, centers[running], here)
        moving = (owner != before).any(1)
        if not bool(moving.any()):
            break
        means, lower = _means(batch, owner, here)
        gain = inertia[running] - lower
        owners[running] = owner
        inertia[running] = lower
        centers[running] = means
        going = (moving & ((tolerance <= 0) | (gain >= tolerance * lower))).any(1)
        # A copy costs as much as a step, so finished groups are removed only when they are half of the batch.
        if 2 * int(going.sum()) <= len(going):
            batch = batch.take(going)
            running = running[going]
        if len(running) == 0:
            break
    return centers, owners, inertia
