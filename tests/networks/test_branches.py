"""One batch for all branches, and the cheap first graph step, against classifying every copy by itself."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from sarb.labels import Targets
from sarb.methods.sarb import SARB
from sarb.networks import SSGRL, GatedGraph, Network, create_backbone
from sarb.networks.branches import Branch, changed_products, classify_branches
from tests.contract.test_contract import make_batch


def literal_graph(module, states, graph):
    """Six layers, one after the other, as the equations have them."""
    for _ in range(module.steps):
        message = torch.cat([graph @ states, graph.T @ states], -1)
        update = torch.sigmoid(module.message_update(message) + module.state_update(states))
        reset = torch.sigmoid(module.message_reset(message) + module.state_reset(states))
        candidate = torch.tanh(module.message_candidate(message) + module.state_candidate(reset * states))
        states = (1 - update) * states + update * candidate
    return states


def gradients(loss, module, *tensors):
    return torch.autograd.grad(loss, [*tensors, *module.parameters()], allow_unused=True, retain_graph=True)


def assert_close(ours, theirs, dtype):
    tolerance = 1e-5 if dtype == torch.float32 else 1e-10
    for one, other in zip(ours, theirs, strict=True):
        assert (one is None) == (other is None)
        if one is not None:
            assert torch.allclose(
                one, other, rtol=tolerance, atol=tolerance * max(1e-30, float(other.abs().max()))
            )


@settings(max_examples=25, deadline=None)
@given(
    sizes=st.tuples(st.integers(1, 5), st.integers(1, 6), st.integers(1, 8), st.integers(1, 3)),
    dtype=st.sampled_from([torch.float32, torch.float64]),
    seed=st.integers(0, 99),
)
def test_fused_gates_equal_six_layers(sizes, dtype, seed):
    batch, categories, dim, steps = sizes
    torch.manual_seed(seed)
    module = GatedGraph(dim, steps).to(dtype)
    states = torch.randn(batch, categories, dim, dtype=dtype, requires_grad=True)
    graph, weight = (
        torch.rand(categories, categories, dtype=dtype),
        torch.randn(batch, categories, dim, dtype=dtype),
    )
    ours, theirs = module(states, graph), literal_graph(module, states, graph)
    assert_close([ours], [theirs], dtype)
    assert_close(
        gradients((ours * weight).sum(), module, states),
        gradients((theirs * weight).sum(), module, states),
        dtype,
    )


@settings(max_examples=25, deadline=None)
@given(
    sizes=st.tuples(st.integers(1, 5), st.integers(1, 6), st.integers(1, 8)),
    dtype=st.sampled_from([torch.float32, torch.float64]),
    seed=st.integers(0, 99),
)
def test_products_of_a_change_in_one_category(sizes, dtype, seed):
    batch, categories, dim = sizes
    torch.manual_seed(seed)
    module, states = (
        GatedGraph(dim).to(dtype),
        torch.randn(batch, categories, dim, dtype=dtype, requires_grad=True),
    )
    change = torch.randn(batch, dim, dtype=dtype, requires_grad=True)
    category = torch.randint(categories, (batch,))
    graph, layers = torch.rand(categories, categories, dtype=dtype), module.layers()
    moved = states.index_put((torch.arange(batch), category), change, accumulate=True)
    theirs = module.products(moved, graph, layers)
    ours = changed_products(module.products(states, graph, layers), graph, category, change, layers)
    assert_close(ours, theirs, dtype)
    weights = [torch.randn_like(part) for part in theirs]
    totals = [
        sum((part * weight).sum() for part, weight in zip(each, weights, strict=True))
        for each in (ours, theirs)
    ]
    assert_close(*(gradients(total + 0 * states.sum(), module, states, change) for total in totals), dtype)


def network(csrl="sam", dtype=torch.float64, **options):
    torch.manual_seed(0)
    built = SSGRL(create_backbone("tiny"), 4, torch.rand(4, 4), csrl=csrl, dim=8, hidden=6, **options)
    return built.to(dtype).train()


def branch(reps, entries, one_each=False):
    """Change the (image, category) entries of representations."""
    changed = torch.zeros(reps.shape[:2], dtype=torch.bool)
    for image, category in entries:
        changed[image, category] = True
    return Branch(torch.where(changed[..., None], reps * 2 + 1, reps), changed, one_each)


@pytest.mark.parametrize("entries", [[], [(1, 3)], [(0, 1), (2, 1)], [(0, 3), (1, 0), (2, 3)]])
@pytest.mark.parametrize("one_each", [True, False])
@pytest.mark.parametrize("options", [{}, {"steps": 0}, {"steps": 1}, {"neighbours": 3}], ids=str)
def test_all_branches_at_once_equal_one_after_the_other(entries, one_each, options):
    built = network(**options)
    reps = torch.randn(3, 4, 8, dtype=torch.float64, requires_grad=True)
    branches = [branch(reps, [(2, 0), (2, 2)]), branch(reps, entries, one_each)]
    ours = classify_branches(built, reps, branches)
    theirs = [built.classify(each) for each in (reps, *(part.reps for part in branches))]
    assert_close(ours, theirs, torch.float64)
    weights = [torch.randn(3, 4, dtype=torch.float64) for _ in theirs]
    totals = [
        sum((part * weight).sum() for part, weight in zip(each, weights, strict=True))
        for each in (ours, theirs)
    ]
    assert_close(
        *(gradients(total, built.classifier, reps, *built.graph.parameters()) for total in totals),
        torch.float64,
    )


def test_with_dropout_every_branch_draws_its_own():
    built = network(dropout=0.5)
    reps = torch.randn(3, 4, 8, dtype=torch.float64)
    assert not built.repeats() and network().repeats() and built.eval().repeats()
    built.train()
    plain, copy = classify_branches(built, reps, [branch(reps, [])])
    assert not torch.equal(plain, copy)


def test_a_network_that_does_not_say_it_repeats_classifies_each_branch():
    class Counting(SSGRL):
        calls = 0

        def repeats(self):
            return Network.repeats(self)

        def classify(self, features):
            self.calls += 1
            return super().classify(features)

    built = Counting(create_backbone("tiny"), 4, dim=8, hidden=6)
    reps = torch.randn(3, 4, 8)
    classify_branches(built, reps, [branch(reps, [(0, 1)]), branch(reps, [])])
    assert built.calls == 3


@pytest.mark.parametrize("csrl", ["sd", "sam"])
def test_the_terms_of_sarb_equal_three_literal_passes(csrl):
    method = SARB(network(csrl, dtype=torch.float32), prototypes=2, start=0, contrastive=0)
    labels = torch.tensor([[1, 0, -1, 0], [0, 1, 0, 0], [1, 1, -1, 1], [0, 0, 0, 0]], dtype=torch.int8)
    batch = make_batch(labels)
    method.epochs = 2
    method.begin_epoch(0, lambda: [batch])
    torch.manual_seed(3)
    terms = method(batch)
    torch.manual_seed(3)
    targets, reps = Targets.of(batch.labels), method.network.represent(method.maps(batch))
    from sarb.blends import random_partner

    expected = {"cls": method.loss(method.network.classify(reps), targets)}
    for name, blended in (
        ("ilrb", method.ilrb(reps, targets, random_partner(len(reps)))),
        ("plrb", method.plrb(reps, targets)),
    ):
        expected[name] = method.loss(method.network.classify(blended[0]), blended[1])
    assert terms.keys() == expected.keys()
    for name, value in expected.items():
        assert terms[name].item() == pytest.approx(value.item(), rel=1e-5), name
    for term in expected:
        ours = gradients(terms[term], method)
        theirs = gradients(expected[term], method)
        for one, other in zip(ours, theirs, strict=True):
            if other is not None:
                assert one is not None and torch.allclose(
                    one, other, rtol=1e-4, atol=1e-5 * float(other.abs().max()) + 1e-9
                )
