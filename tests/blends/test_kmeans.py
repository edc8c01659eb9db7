import pytest
import torch
from sklearn.cluster import KMeans

from sarb.blends import kmeans
from sarb.blends.kmeans import CHUNK, squared_distances
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
    [(300, 2, 5, 0.5, 5), (500, 16, 10, 1.0, 10), (400, 64, 3, 2.0, 10), (200, 8, 1, 1.0, 4), (1000, 3, 20, 0.2, 10)],
)
@pytest.mark.parametrize("seed", [0, 1])
def test_inertia_is_as_good_as_scikit_learn(points, width, groups, spread, clusters, seed):
    data = cloud(points, width, groups, spread, seed)
    ours = kmeans(data, clusters, seeded(seed), restarts=10)
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

    data = torch.tensor([[0.0], [0.2], [10.0], [50.0]])
    centers = torch.tensor([[0.1], [20.0], [-100.0]])
    means = _means(data, torch.tensor([0, 0, 1, 1]), centers)
    assert means[:2].tolist() == [[pytest.approx(0.1)], [30.0]]
    assert means[2].tolist() in ([10.0], [50.0])


def test_a_cloud_far_from_the_origin_loses_no_precision():
    data = 0.1 * cloud(300, 4, 3, 0.1)
    near = kmeans(data, 3, seeded()).inertia
    assert kmeans(data + 1000, 3, seeded()).inertia == pytest.approx(near, rel=0.02)  # the shift itself rounds


def test_more_points_than_a_chunk():
    data = cloud(CHUNK + 100, 2, 3, 0.1)
    centers, assignment, inertia = kmeans(data, 3, seeded(), restarts=1)
    assert assignment.shape == (CHUNK + 100,)
    assert inertia == pytest.approx(float((data - centers[assignment]).square().sum()), rel=1e-4)
    assert inertia < 0.1**2 * 2 * (CHUNK + 100) * 1.1


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
    early = kmeans(data, 10, seeded(), restarts=1, tolerance=1e-2)
    assert exact.inertia < early.inertia < 1.01 * exact.inertia


def test_squared_distances_equal_the_slow_loop():
    points, centers = torch.randn(5, 3, dtype=torch.float64), torch.randn(2, 3, dtype=torch.float64)
    expected = [[float(((x - c) ** 2).sum()) for c in centers] for x in points]
    torch.testing.assert_close(squared_distances(points, centers), torch.tensor(expected, dtype=torch.float64))
    assert squared_distances(points, points).diagonal().tolist() == [0.0] * 5


@pytest.mark.parametrize("poison", [float("nan"), float("inf")])
def test_points_must_be_finite(poison):
    with pytest.raises(SarbError, match="NaN or infinite"):
        kmeans(torch.tensor([[0.0], [poison]]), 2)
