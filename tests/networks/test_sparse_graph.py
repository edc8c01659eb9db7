"""The sparse graph against the dense matrix it stands for."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional as F

from sarb.errors import ConfigError
from sarb.labels import LabelMatrix
from sarb.networks import SSGRL, create_backbone
from sarb.networks.branches import classify_branches
from sarb.networks.sparse_graph import SparseGraph, propagate
from tests.networks.test_branches import branch

TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-10}


def dense(graph):
    """S + r cᵀ, entry by entry."""
    size, (ends, values, starts) = len(graph.row), graph.edges
    made = torch.outer(graph.row, graph.column)
    for i in range(size):
        stop = int(starts[i + 1]) if i + 1 < size else len(ends)
        for place in range(int(starts[i]), stop):
            made[i, ends[place]] += values[place]
    return made


def random_graph(categories, seed, dtype=torch.float64):
    generator = torch.Generator().manual_seed(seed)
    return torch.rand(categories, categories, generator=generator, dtype=dtype).pow(4).fill_diagonal_(1)


@settings(max_examples=50, deadline=None)
@given(
    batch=st.integers(1, 4),
    categories=st.integers(1, 9),
    dim=st.integers(1, 5),
    neighbours=st.integers(0, 10),
    dtype=st.sampled_from([torch.float32, torch.float64]),
    seed=st.integers(0, 10**6),
)
def test_values_and_gradients_equal_the_dense_products(batch, categories, dim, neighbours, dtype, seed):
    graph = SparseGraph.of(random_graph(categories, seed, dtype), neighbours)
    torch.manual_seed(seed)
    states = torch.randn(batch, categories, dim, dtype=dtype, requires_grad=True)
    weights = torch.randn(2, batch, categories, dim, dtype=dtype)
    matrix = dense(graph)
    ours, theirs = propagate(graph, states), (matrix @ states, matrix.T @ states)
    totals = [(weights[0] * out).sum() + (weights[1] * back).sum() for out, back in (ours, theirs)]
    gradients = [torch.autograd.grad(total, states)[0] for total in totals]
    for one, other in (*zip(ours, theirs, strict=True), gradients):
        assert torch.allclose(one, other, rtol=TOLERANCE[dtype], atol=10 * TOLERANCE[dtype])


@settings(max_examples=50, deadline=None)
@given(categories=st.integers(1, 9), neighbours=st.integers(0, 10), seed=st.integers(0, 10**6))
def test_the_diagonal_and_the_strongest_entries_are_kept_exactly(categories, neighbours, seed):
    original = random_graph(categories, seed)
    made = dense(SparseGraph.of(original, neighbours))
    for i in range(categories):
        others = sorted((j for j in range(categories) if j != i), key=lambda j: -float(original[i, j]))
        for j in (i, *others[:neighbours]):
            assert made[i, j].item() == pytest.approx(original[i, j].item(), abs=1e-12)
    if neighbours >= categories - 1:
        assert torch.allclose(made, original, rtol=0, atol=1e-12)


def test_nothing_is_lost_of_a_smoothed_graph_of_known_labels_with_few_pairs():
    random = np.random.default_rng(0)
    values = np.full((60, 30), -1)
    for row in values:  # two categories next to each other: each is seen with at most two others
        first = random.integers(30)
        row[[first, (first + 1) % 30]] = 1
    exact = torch.from_numpy(LabelMatrix(values, [str(c) for c in range(30)]).cooccurrence(5.0))
    assert (exact > 0).all()  # smoothing leaves no zero to drop
    assert torch.allclose(dense(SparseGraph.of(exact, 2)), exact, rtol=0, atol=1e-9)


def test_the_rest_is_fitted_not_dropped():
    values = np.random.default_rng(0).choice([-1, 0, 1], (200, 60), p=[0.45, 0.5, 0.05])
    exact = torch.from_numpy(LabelMatrix(values, [str(c) for c in range(60)]).cooccurrence(5.0))
    made, strongest = dense(SparseGraph.of(exact, 8)), exact.topk(9, 1)
    pruned = torch.zeros_like(exact).scatter(1, strongest.indices, strongest.values)
    assert (made - exact).norm() < 0.5 * (pruned - exact).norm()
    assert made.sum(1).numpy() == pytest.approx(exact.sum(1).numpy(), rel=0.02)


def test_states_of_one_hot_categories_give_columns_and_rows():
    graph, category = SparseGraph.of(random_graph(6, 1), 2), torch.tensor([4, 0, 4])
    out, back = propagate(graph, F.one_hot(category, 6).T[None].double())
    assert torch.allclose(out[0].T, dense(graph)[:, category].T) and torch.allclose(
        back[0].T, dense(graph)[category]
    )


def test_half_precision_comes_back_as_it_went_in():
    graph, states = (
        SparseGraph.of(random_graph(6, 1).float(), 2),
        torch.randn(2, 6, 3).bfloat16().requires_grad_(),
    )
    out, back = propagate(graph, states)
    (out.sum() + back.sum()).backward()
    assert out.dtype == back.dtype == states.grad.dtype == torch.bfloat16
    assert torch.allclose(out.float(), propagate(graph, states.float())[0], atol=0.05)


def network(neighbours, categories=6):
    torch.manual_seed(0)
    backbone = create_backbone("tiny")
    return SSGRL(
        backbone, categories, random_graph(categories, 1).float(), csrl="sam", dim=4, neighbours=neighbours
    )


def test_a_network_with_all_neighbours_is_the_dense_one():
    dense_network, sparse = network(0), network(5)
    sparse.load_state_dict(dense_network.state_dict())
    reps = torch.randn(3, 6, 4)
    branches = [branch(reps, [(0, 1), (1, 1), (2, 5)], one_each=True), branch(reps, [(1, 0), (1, 3)])]
    found, wanted = (classify_branches(each, reps, branches) for each in (sparse, dense_network))
    for one, other in zip(found, wanted, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-5)


def test_a_network_with_few_neighbours_differs_and_follows_its_buffer():
    sparse, other = network(1), network(1)
    reps = torch.randn(2, 6, 4)
    before = sparse.classify(reps)
    assert not torch.allclose(before, network(0).classify(reps), atol=1e-6)
    other.cooccurrence.copy_(torch.eye(6))
    sparse.load_state_dict(other.state_dict())
    torch.testing.assert_close(sparse.classify(reps), other.classify(reps))
    assert not torch.allclose(sparse.classify(reps), before, atol=1e-6)


def test_a_negative_number_of_neighbours_is_refused():
    with pytest.raises(ConfigError, match=r"network.neighbours must be at least 0, got -1"):
        network(-1)
