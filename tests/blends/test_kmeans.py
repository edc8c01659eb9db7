import sys

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.cluster import KMeans

from sarb.blends import kmeans
from sarb.blends.kmeans import SKETCH, Batch, kmeans_by_owner, squared_distances
from sarb.errors import SarbError


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def cloud(points, width, groups, spread, seed=0):
    generator = seeded(seed)
    middles = torch.randn(groups, width, generator=generator) * 3
    owner = torch.randint(groups, (points,), generator=generator)
    return middles[owner] + spread * torch.randn(points, width, generator=generator)


@pytest.mark.parametrize(
    ("points", "width", "groups", "spread", "clusters"),
    [
        (300, 2, 5, 0.5, 5),
        (500, 16, 10, 1.0, 10),
        (400, 64, 3, 2.0, 10),
        (200, 8, 1, 1.0, 4),
        (1000, 3, 20, 0.2, 10),
    ],
)
@pytest.mark.parametrize("seed", [0, 1])
def test_inertia_is_as_good_as_scikit_learn(points, width, groups, spread, clusters, seed):
    data = cloud(points, width, groups, spread, seed)
    ours = kmeans(data, clusters, seeded(seed), restarts=20)
    oracle = KMeans(clusters, n_init=10, random_state=seed).fit(data.double().numpy())
    assert ours.inertia <= 1.01 * oracle.inertia_


def test_result_is_a_fixed_point_of_the_slow_loop():
    data = cloud(120, 3, 4, 1.0).double()
    centers, assignment, inertia = kmeans(data, 6, seeded(), tolerance=0)
    total = 0.0
    for n in range(len(data)):
        distances = [float(((data[n] - center) ** 2).sum()) for center in centers]
        assert int(assignment[n]) == distances.index(min(distances))
        total += min(distances)
    assert inertia == pytest.approx(total, rel=1e-9)
    for k in range(6):
        torch.testing.assert_close(centers[k], data[assignment == k].mean(0))


@pytest.mark.parametrize("points", range(13))
def test_few_points_give_few_clusters(points):
    data = torch.randn(points, 5, generator=seeded())
    centers, assignment, inertia = kmeans(data, 10, seeded())
    assert centers.shape == (min(points, 10), 5)
    assert assignment.shape == (points,)
    assert sorted(set(assignment.tolist())) == list(range(min(points, 10)))
    assert torch.isfinite(centers).all()
    if points <= 10:
        assert inertia == pytest.approx(0, abs=1e-9)
        torch.testing.assert_close(centers[assignment], data)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16])
@pytest.mark.parametrize("distinct", [1, 2, 7])
def test_equal_points_are_one_cluster(dtype, distinct):
    data = torch.randn(distinct, 64, generator=seeded()).to(dtype).repeat(9, 1)
    centers, assignment, inertia = kmeans(data, 10, seeded())
    assert len(centers) == distinct == len(set(assignment.tolist()))
    assert inertia == pytest.approx(0, abs=1e-6)


def test_an_empty_cluster_is_seeded_again():
    from sarb.blends.kmeans import _means

    points = torch.tensor([[[0.0], [0.2], [10.0], [50.0], [900.0]], [[1.0], [3.0], [5.0], [0.0], [0.0]]])
    valid = torch.tensor([[True, True, True, True, False], [True, True, True, False, False]])
    owner = torch.tensor([[0, 0, 1, 1, -1], [0, 1, 2, -1, -1]])[..., None]
    means, inertia = _means(Batch.of(points, valid), owner, torch.ones(2, 1, 3, dtype=torch.bool))
    assert means[0, 0, :2].tolist() == [[pytest.approx(0.1)], [30.0]]
    assert means[0, 0, 2].tolist() in ([10.0], [50.0])
    assert means[1, 0].tolist() == [[1.0], [3.0], [5.0]]
    assert inertia.tolist() == [[pytest.approx(800.02, rel=1e-5)], [0.0]]


def test_a_cloud_far_from_the_origin_loses_no_precision():
    data = 0.1 * cloud(300, 4, 3, 0.1)
    near = kmeans(data, 3, seeded()).inertia
    assert kmeans(data + 1000, 3, seeded()).inertia == pytest.approx(
        near, rel=0.02
    )  # the shift itself rounds


@pytest.mark.parametrize("width", [4, 2 * SKETCH])
def test_chunks_change_nothing(width, monkeypatch):
    sizes = [0, 1, 30, 0, 55, 7, 31, 2, 64, 3]
    owner = torch.arange(10).repeat_interleave(torch.tensor(sizes))[
        torch.randperm(sum(sizes), generator=seeded())
    ]
    data = cloud(len(owner), width, 6, 1.0).double()
    whole = kmeans_by_owner(data, owner, 10, 5, seeded())
    monkeypatch.setattr(sys.modules["sarb.blends.kmeans"], "CHUNK", 100 * width)
    parts = kmeans_by_owner(data, owner, 10, 5, seeded())
    assert whole[1].tolist() == parts[1].tolist() == [min(size, 5) for size in sizes]
    torch.testing.assert_close(whole[0], parts[0])


def total_inertia(data, owner, centers, counts):
    groups = [(data[owner == group], centers[group, : counts[group]]) for group in range(len(counts))]
    return sum(float(torch.cdist(x, c).min(1).values.square().sum()) for x, c in groups if len(x))


@pytest.mark.parametrize(("groups", "spread"), [(10, 1.0), (10, 12.0), (30, 6.0), (1, 1.0)])
@pytest.mark.parametrize("seed", [0, 1])
def test_wide_groups_at_once_are_as_good_as_scikit_learn_one_by_one(groups, spread, seed):
    owner = torch.randint(8, (2400,), generator=seeded(seed))
    data = cloud(2400, 256, groups, spread, seed) + owner[:, None]
    centers, counts = kmeans_by_owner(data, owner, 8, 10, seeded(seed), restarts=2)
    oracle = [
        KMeans(10, n_init=1, random_state=seed).fit(data[owner == group].numpy()).inertia_
        for group in range(8)
    ]
    assert counts.tolist() == [10] * 8
    assert total_inertia(data.double(), owner, centers.double(), counts) <= 1.01 * sum(oracle)


def test_wide_points_end_at_a_fixed_point():
    data = cloud(300, 3 * SKETCH, 5, 4.0).double()
    centers, assignment, inertia = kmeans(data, 6, seeded(), tolerance=0)
    assert torch.equal(torch.cdist(data, centers).argmin(1), assignment)
    for k in range(6):
        torch.testing.assert_close(centers[k], data[assignment == k].mean(0))
    assert inertia == pytest.approx(float((data - centers[assignment]).square().sum()), rel=1e-12)


@settings(deadline=None, max_examples=25)
@given(
    sizes=st.lists(st.integers(0, 20), min_size=1, max_size=6),
    width=st.sampled_from([1, 3, 2 * SKETCH]),
    clusters=st.integers(1, 6),
    seed=st.integers(0, 10**6),
)
def test_every_group_gets_means_of_its_own_points(sizes, width, clusters, seed):
    generator = seeded(seed)
    owner = torch.arange(len(sizes)).repeat_interleave(torch.tensor(sizes))
    owner = owner[torch.randperm(len(owner), generator=generator)]
    data = torch.randn(len(owner), width, generator=generator, dtype=torch.float64)
    centers, counts = kmeans_by_owner(data, owner, len(sizes), clusters, generator, tolerance=0)
    assert centers.shape == (len(sizes), clusters, width)
    for group, size in enumerate(sizes):
        own, found = data[owner == group], centers[group, : counts[group]]
        assert counts[group] == min(size, clusters) and (centers[group, counts[group] :] == 0).all()
        nearest = torch.cdist(own, found).argmin(1) if size else torch.zeros(0, dtype=torch.long)
        for k in range(len(found)):
            torch.testing.assert_close(found[k], own[nearest == k].mean(0), rtol=1e-8, atol=1e-8)


def test_same_seed_same_clusters():
    data = cloud(200, 4, 1, 1.0)
    first, second, other = kmeans(data, 8, seeded(1)), kmeans(data, 8, seeded(1)), kmeans(data, 8, seeded(2))
    assert torch.equal(first.centers, second.centers) and torch.equal(first.assignment, second.assignment)
    assert not torch.equal(first.centers, other.centers)


def test_iterations_and_restarts_never_make_it_worse():
    data = cloud(300, 6, 8, 1.0)
    one_step = kmeans(data, 8, seeded(), iterations=1, restarts=1)
    assert kmeans(data, 8, seeded(), restarts=1).inertia <= one_step.inertia
    assert kmeans(data, 8, seeded(), restarts=8).inertia <= kmeans(data, 8, seeded(), restarts=1).inertia


def test_tolerance_stops_early_at_almost_no_loss():
    data = cloud(2000, 8, 1, 1.0)
    exact = kmeans(data, 10, seeded(), iterations=1000, restarts=1, tolerance=0)
    early = kmeans(data, 10, seeded(), restarts=1, tolerance=1e-3)
    assert exact.inertia < early.inertia < 1.01 * exact.inertia


def test_squared_distances_equal_the_slow_loop():
    points, centers = torch.randn(5, 3, dtype=torch.float64), torch.randn(2, 3, dtype=torch.float64)
    expected = [[float(((x - c) ** 2).sum()) for c in centers] for x in points]
    torch.testing.assert_close(
        squared_distances(points, centers), torch.tensor(expected, dtype=torch.float64)
    )
    assert squared_distances(points, points).diagonal().tolist() == [0.0] * 5


@pytest.mark.parametrize("poison", [float("nan"), float("inf")])
def test_points_must_be_finite(poison):
    with pytest.raises(SarbError, match="NaN or infinite"):
        kmeans(torch.tensor([[0.0], [poison]]), 2)


def test_another_rounding_gives_the_same_order_of_centers():
    """Few points: all restarts end at inertia 0, and which candidate is first decides nothing but the order."""
    for seed in range(20):
        points = torch.rand(5, 16, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
        other = points * (1 + 4e-16 * torch.randn(5, 16, dtype=torch.float64))
        owner = torch.zeros(5, dtype=torch.long)
        one, two = (
            kmeans_by_owner(each, owner, 1, 10, torch.Generator().manual_seed(seed))[0]
            for each in (points, other)
        )
        assert torch.allclose(one, two, rtol=0, atol=1e-12)
