"""K-means on random groups of points: what every answer must satisfy, checked with slow loops."""

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from sarb.blends.kmeans import SKETCH, Batch, _assign, _means, _seed, kmeans, kmeans_by_owner


def squared(point, center):
    return float(((point - center) ** 2).sum())


def cloud(points, width, kind, generator):
    """Points (M, D) in double precision: one cloud, three far apart, or few distinct ones."""
    made = torch.randn(points, width, generator=generator, dtype=torch.float64)
    group = torch.randint(3, (points,), generator=generator)
    if kind == "apart":
        made += 20 * torch.randn(3, width, generator=generator, dtype=torch.float64)[group]
    return made[group % max(1, points)] if kind == "equal" else made


groups = given(
    points=st.integers(1, 40),
    width=st.sampled_from([1, 2, 5, SKETCH + 3]),
    clusters=st.integers(1, 6),
    kind=st.sampled_from(["cloud", "apart", "equal"]),
    seed=st.integers(0, 10**6),
)


@settings(deadline=None, max_examples=60)
@groups
def test_every_point_is_at_its_nearest_center_and_every_center_the_mean_of_its_points(
    points, width, clusters, kind, seed
):
    generator = torch.Generator().manual_seed(seed)
    data = cloud(points, width, kind, generator)
    centers, assignment, inertia = kmeans(data, clusters, generator, iterations=1000, tolerance=0)
    assert len(centers) == min(clusters, len(data.unique(dim=0)))
    for n, point in enumerate(data):
        distances = [squared(point, center) for center in centers]
        assert distances[assignment[n]] <= min(distances) * (1 + 1e-9) + 1e-12
    for k, center in enumerate(centers):
        torch.testing.assert_close(center, data[assignment == k].mean(0), rtol=1e-9, atol=1e-9)
    total = sum(squared(data[n], centers[assignment[n]]) for n in range(points))
    assert abs(inertia - total) <= 1e-9 * max(1.0, total)


@settings(deadline=None, max_examples=60)
@groups
def test_no_step_raises_the_inertia_and_the_end_is_not_above_the_seeds(points, width, clusters, kind, seed):
    generator = torch.Generator().manual_seed(seed)
    data = cloud(points, width, kind, generator)
    batch = Batch.of((data - data.mean(0))[None], torch.ones(1, points, dtype=torch.bool))
    draws = torch.rand(1, 1, clusters, 3, generator=generator, dtype=torch.float64)
    centers, used = _seed(batch, draws)

    def inertia(centers):
        return sum(
            min(squared(point, center) for center in centers[0, 0][used[0, 0]]) for point in batch.points[0]
        )

    seeding = latest = inertia(centers)
    for _ in range(8):
        centers, _ = _means(batch, _assign(batch, centers, used), used)
        assert inertia(centers) <= latest * (1 + 1e-9) + 1e-9
        latest = inertia(centers)
    assert latest <= seeding * (1 + 1e-9) + 1e-9


@settings(deadline=None, max_examples=40)
@given(
    sizes=st.lists(st.integers(0, 20), min_size=1, max_size=6),
    width=st.sampled_from([1, 3, SKETCH + 3]),
    clusters=st.integers(1, 5),
    seed=st.integers(0, 10**6),
)
def test_more_steps_never_end_above_fewer_in_any_group(sizes, width, clusters, seed):
    """From the same seeds: no group's inertia after all steps is above that after one."""
    generator = torch.Generator().manual_seed(seed)
    owner = torch.arange(len(sizes)).repeat_interleave(torch.tensor(sizes))
    data = torch.randn(len(owner), width, generator=generator, dtype=torch.float64)

    def inertias(iterations):
        draws = torch.Generator().manual_seed(seed)
        centers, counts = kmeans_by_owner(data, owner, len(sizes), clusters, draws, iterations, 1, 0)
        return [
            sum(min(squared(x, center) for center in centers[g, : counts[g]]) for x in data[owner == g])
            for g in range(len(sizes))
        ]

    for last, first in zip(inertias(100), inertias(1), strict=True):
        assert last <= first * (1 + 1e-9) + 1e-9
