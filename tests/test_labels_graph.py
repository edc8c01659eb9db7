"""LabelMatrix.cooccurrence against a slow, obvious loop."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sarb import counts as module
from sarb.errors import DataError
from sarb.labels import LabelMatrix


def random_labels(images, categories, seed, shares=(0.3, 0.4, 0.3)):
    """Random -1/0/+1 with the given shares of absent, unknown, present."""
    values = np.random.RandomState(seed).choice([-1, 0, 1], (images, categories), p=shares)
    return LabelMatrix(values, [f"c{number}" for number in range(categories)])


def slow_graph(labels, smoothing, counts):
    """The formula of the docstring, entry by entry."""
    values, (images, categories) = labels.values, labels.shape
    graph = np.zeros((categories, categories))
    for i in range(categories):
        if not any(values[n, i] == 1 for n in range(images)):
            graph[i, i] = 1
            continue
        for j in range(categories):
            both = given = present = known = 0
            for n in range(images):
                both += values[n, i] == 1 and values[n, j] == 1
                given += values[n, i] == 1 and (values[n, j] != 0 or counts == "plain")
                present += values[n, j] == 1
                known += values[n, j] != 0
            rate = present / known if known else 0.0
            below = given + smoothing
            graph[i, j] = 1.0 if i == j else (both + smoothing * rate) / below if below else 0.0
    return graph


@pytest.mark.parametrize("counts", ["known", "plain"])
@pytest.mark.parametrize("smoothing", [0.0, 0.5, 1.0, 10.0])
@pytest.mark.parametrize("seed", range(4))
def test_cooccurrence_equals_the_slow_loop(counts, smoothing, seed):
    shares = [(0.3, 0.4, 0.3), (0.05, 0.9, 0.05), (0.5, 0.0, 0.5), (0.1, 0.8, 0.1)][seed]
    labels = random_labels(12, 6, seed, shares)
    graph = labels.cooccurrence(smoothing, counts)
    assert graph == pytest.approx(slow_graph(labels, smoothing, counts), abs=1e-12)
    assert np.isfinite(graph).all() and (np.diag(graph) == 1).all()
    assert graph.min() >= 0 and graph.max() <= 1


def product_graph(labels, smoothing, counts):
    """The formula of the docstring as products of whole float64 matrices."""
    present, known = (labels.values == 1).astype(np.float64), (labels.values != 0).astype(np.float64)
    both, positives = present.T @ present, present.sum(0)
    given = present.T @ known if counts == "known" else np.repeat(positives[:, None], len(positives), axis=1)
    above, below = both + smoothing * (positives / np.maximum(known.sum(0), 1)), given + smoothing
    graph = np.divide(above, below, out=np.zeros_like(both), where=below > 0)
    graph[positives == 0] = 0
    np.fill_diagonal(graph, 1)
    return graph


@settings(max_examples=100, deadline=None)
@given(
    images=st.integers(0, 70),
    categories=st.integers(1, 12),
    seed=st.integers(0, 2**32 - 1),
    smoothing=st.sampled_from([0.0, 0.7, 5.0]),
    counts=st.sampled_from(["known", "plain"]),
    block=st.sampled_from([1, 16, 1024]),
    chunk=st.sampled_from([1, 5, 512]),
)
def test_cooccurrence_is_the_product_formula_to_the_bit(
    images, categories, seed, smoothing, counts, block, chunk
):
    labels = random_labels(images, categories, seed, np.random.default_rng(seed).dirichlet([1, 1, 0.3]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "BLOCK", block)
        patch.setattr(module, "ONE_CHUNK", chunk)
        patch.setattr(module, "CHUNK", min(chunk, 5))
        graph = labels.cooccurrence(smoothing, counts)
    assert np.array_equal(graph, product_graph(labels, smoothing, counts))


@pytest.mark.parametrize("categories", [3, 700])
def test_counts_beyond_one_block_are_exact(categories):
    # nearly everything present: every sum of a block is as large as it can be
    labels = random_labels(2 * module.BLOCK + 77, categories, 0, (0.01, 0.01, 0.98))
    assert np.array_equal(labels.cooccurrence(1.0), product_graph(labels, 1.0, "known"))
    full = LabelMatrix(np.ones((2 * module.BLOCK, 2)), ["a", "b"])
    assert full.cooccurrence().tolist() == [[1, 1], [1, 1]]


def test_a_block_of_counts_fits_into_a_float32():
    # both counts of a block must stay below PACK, and PACK · BLOCK + BLOCK an exact integer
    assert module.BLOCK < module.PACK and (module.PACK + 1) * module.BLOCK <= 2**24


def test_cooccurrence_by_hand():
    # a is present in three images; b is known in two of them and present in one
    labels = LabelMatrix([[1, 1], [1, -1], [1, 0], [0, 1]], ["a", "b"])
    assert labels.cooccurrence()[0, 1] == pytest.approx(1 / 2)
    assert labels.cooccurrence(counts="plain")[0, 1] == pytest.approx(1 / 3)
    # κ=2, π_b = 2/3: (1 + 2·2/3) / (2 + 2)
    assert labels.cooccurrence(smoothing=2)[0, 1] == pytest.approx((1 + 4 / 3) / 4)


@pytest.mark.parametrize("counts", ["known", "plain"])
@pytest.mark.parametrize("smoothing", [0.0, 1.0])
def test_a_category_without_a_known_positive_gets_an_identity_row(counts, smoothing):
    labels = LabelMatrix([[1, -1, 0], [1, -1, 0], [-1, 0, 0]], ["a", "b", "c"])
    graph = labels.cooccurrence(smoothing, counts)
    assert graph[1].tolist() == [0, 1, 0] and graph[2].tolist() == [0, 0, 1]


def test_nothing_over_nothing_is_zero():
    labels = LabelMatrix([[1, 0], [0, 1]], ["a", "b"])  # no image where both are known
    assert labels.cooccurrence().tolist() == [[1, 0], [0, 1]]


@pytest.mark.parametrize("values", [np.zeros((3, 2)), np.zeros((0, 2))])
def test_nothing_known_gives_the_identity(values):
    for smoothing in (0.0, 1.0):
        assert np.array_equal(LabelMatrix(values, ["a", "b"]).cooccurrence(smoothing), np.eye(2))


def test_the_graph_does_not_shrink_with_the_known_share():
    random = np.random.RandomState(0)
    first = random.rand(20_000) < 0.5
    second = np.where(first, random.rand(20_000) < 0.8, random.rand(20_000) < 0.2)
    full = LabelMatrix(np.where(np.stack([first, second], 1), 1, -1), ["a", "b"])
    few = full.hide(0.2, seed=1)
    assert few.cooccurrence() == pytest.approx(full.cooccurrence(), abs=0.04)
    assert few.cooccurrence(counts="plain")[0, 1] == pytest.approx(0.2 * 0.8, abs=0.04)


def test_cooccurrence_refuses_wrong_options():
    with pytest.raises(DataError, match="Did you mean 'plain'"):
        random_labels(2, 2, 0).cooccurrence(counts="plane")
    with pytest.raises(DataError, match="at least 0"):
        random_labels(2, 2, 0).cooccurrence(smoothing=-1)
