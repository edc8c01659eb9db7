import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from sarb.errors import ConfigError
from sarb.labels import Targets
from sarb.losses import contrastive
from sarb.losses.contrastive import hardest_and_random

# Category 0: two present, two absent. 1: one present. 2: unknown but for one. 3: all present. 4: all absent.
LABELS = torch.tensor([[1, 1, 0, 1, -1], [1, -1, 0, 1, -1], [-1, -1, 1, 1, -1], [-1, 0, 0, 1, -1]])


def draw(images=4, categories=5, width=3, seed=0):
    return torch.randn(
        images, categories, width, generator=torch.Generator().manual_seed(seed), dtype=torch.float64
    )


def cosine(first, second):
    lengths = math.sqrt(sum(x * x for x in first)) * math.sqrt(sum(x * x for x in second))
    return sum(x * y for x, y in zip(first, second, strict=True)) / lengths if lengths else 0.0


def slow_paper(reps, labels):
    total = 0.0
    for n in range(len(reps)):
        for m in range(len(reps)):
            for c in range(len(reps[n])):
                similarity = cosine(reps[n][c], reps[m][c])
                total += 1 - similarity if labels[n][c] == 1 and labels[m][c] == 1 else 1 + similarity
    return total


def slow_sets(reps, labels):
    """The three sets of pair losses of the balanced form: present-present, present-absent, absent-absent."""
    sets = {2: [], 0: [], -2: []}
    for c in range(len(reps[0])):
        for n in range(len(reps)):
            for m in range(n + 1, len(reps)):
                if labels[n][c] != 0 and labels[m][c] != 0:
                    kind = labels[n][c] + labels[m][c]
                    similarity = cosine(reps[n][c], reps[m][c])
                    sets[kind].append(1 - similarity if kind == 2 else 1 + similarity)
    return sets[2], sets[0], sets[-2]


def mean(values):
    return sum(values) / len(values) if values else 0.0


@pytest.mark.parametrize("seed", range(3))
def test_paper_form_equals_the_slow_loop(seed):
    reps = draw(seed=seed)
    expected = slow_paper(reps.tolist(), LABELS.tolist())
    assert contrastive(reps, LABELS, "paper").item() == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_balanced_form_equals_the_slow_loop_where_nothing_is_cut(seed):
    reps = draw(seed=seed)
    positive, mixed, negative = slow_sets(reps.tolist(), LABELS.tolist())
    assert (len(positive), len(mixed), len(negative)) == (7, 6, 8)  # both negative sets below 3P = 21
    expected = mean(positive + mixed + negative)
    assert contrastive(reps, LABELS).item() == pytest.approx(expected, rel=1e-12)
    assert contrastive(reps, Targets.of(LABELS)).item() == pytest.approx(expected, rel=1e-12)


def test_balanced_form_keeps_the_hardest_and_twice_as_many_random_pairs_of_each_negative_set():
    reps = draw(9, 1, 4)
    labels = torch.tensor([[1], [1], [-1], [-1], [-1], [-1], [-1], [0], [-1]])
    positive, mixed, negative = slow_sets(reps.tolist(), labels.tolist())
    assert (len(positive), len(mixed), len(negative)) == (1, 12, 15)
    possible = set()
    for others_mixed in pairs_of(sorted(mixed)[:-1]):
        for others_negative in pairs_of(sorted(negative)[:-1]):
            kept = [*positive, max(mixed), *others_mixed, max(negative), *others_negative]
            possible.add(round(mean(kept), 9))
    seen = {
        round(contrastive(reps, labels, generator=torch.Generator().manual_seed(seed)).item(), 9)
        for seed in range(60)
    }
    assert seen <= possible
    assert len(seen) > 30


def pairs_of(values):
    return [(values[i], values[j]) for i in range(len(values)) for j in range(i + 1, len(values))]


@pytest.mark.parametrize(
    ("size", "pairs", "kept"), [(20, 2, 6), (6, 2, 6), (5, 2, 5), (7, 2, 6), (4, 0, 0), (0, 3, 0)]
)
def test_cut_keeps_the_hardest_and_no_pair_twice(size, pairs, kept):
    losses = torch.randperm(size).double()
    selected = losses[hardest_and_random(losses, torch.ones(size, dtype=torch.bool), pairs)].tolist()
    assert len(selected) == len(set(selected)) == kept
    assert set(range(size - min(pairs, size), size)) <= set(selected)


def test_every_other_pair_is_equally_likely():
    losses = torch.arange(10).double()
    generator = torch.Generator().manual_seed(0)
    count = torch.zeros(10)
    for _ in range(2000):
        count += hardest_and_random(losses, torch.ones(10, dtype=torch.bool), 2, generator)
    assert count[8:].tolist() == [2000, 2000]
    assert (count[:8] - 1000).abs().max() < 120  # 4 of 8, five standard deviations


def test_cut_stays_within_what_is_allowed():
    losses, allowed = torch.rand(4, 5, 5), torch.rand(4, 5, 5) < 0.5
    kept = hardest_and_random(losses, allowed, 3)
    assert kept.sum() == 9 and not (kept & ~allowed).any()
    assert kept[losses >= losses[allowed].topk(3).values.min()].sum() == 3


@settings(deadline=None, max_examples=40)
@given(
    images=st.integers(1, 7),
    categories=st.integers(1, 6),
    width=st.integers(3, 6),  # in one dimension every cosine is 1 or -1, and which are the hardest is a tie
    rule=st.sampled_from(["none", "all"]),
    seed=st.integers(0, 10**6),
)
@pytest.mark.parametrize(("dtype", "error"), [(torch.float32, 1e-5), (torch.float64, 1e-10)])
def test_values_and_gradients_equal_the_literal_pairs(dtype, error, images, categories, width, rule, seed):
    """Cut sets included: the kept pairs are those of :func:`hardest_and_random` on lists, with the same
    lots.
    """
    generator = torch.Generator().manual_seed(seed)
    labels = torch.randint(-1, 2, (images, categories), generator=generator)
    reps = torch.randn(images, categories, width, generator=generator, dtype=dtype).requires_grad_()
    ours = contrastive(reps, labels, without_positives=rule, generator=torch.Generator().manual_seed(seed))
    (gradient,) = torch.autograd.grad(ours, reps)
    exact = reps.detach().double().requires_grad_()
    expected = literal(exact, labels, rule, torch.Generator().manual_seed(seed))
    (expected_gradient,) = torch.autograd.grad(expected, exact)
    scale = max(1.0, float(expected_gradient.abs().max()))  # a short vector has a long gradient
    assert ours.item() == pytest.approx(expected.item(), rel=error, abs=error)
    assert (gradient - expected_gradient).abs().max() <= error * scale


def literal(reps, labels, rule, generator):
    """The balanced form pair by pair; the random pairs are those of the highest lots, one per pair of a
    set.
    """
    images, categories = labels.shape
    sets = {2: [], 0: [], -2: []}
    for c in range(categories):
        for n in range(images):
            for m in range(n + 1, images):
                if labels[n, c] != 0 and labels[m, c] != 0:
                    kind = int(labels[n, c] + labels[m, c])
                    similarity = torch.cosine_similarity(reps[n, c], reps[m, c], 0)
                    sets[kind].append((len(sets[kind]), 1 - similarity if kind == 2 else 1 + similarity))
    kept = [loss for _, loss in sets[2]]
    pairs = len(kept)
    for kind in (0, -2):
        ranked = sorted(sets[kind], key=lambda entry: -entry[1].item())
        if pairs and len(ranked) > 3 * pairs:
            lots = torch.rand(len(ranked), generator=generator)
            others = sorted(ranked[pairs:], key=lambda entry: -lots[entry[0]].item())
            ranked = ranked[:pairs] + others[: 2 * pairs]
        kept += [loss for _, loss in ranked] if pairs or rule == "all" else []
    return torch.stack(kept).mean() if kept else (reps * 0).sum()


@pytest.mark.parametrize("labels", [[[1], [-1], [-1]], [[-1], [-1], [-1]]])
def test_without_positive_pairs(labels):
    reps, labels = draw(3, 1).requires_grad_(), torch.tensor(labels)
    loss = contrastive(reps, labels)
    loss.backward()
    assert loss.item() == 0.0
    assert torch.equal(reps.grad, torch.zeros_like(reps))
    _, mixed, negative = slow_sets(reps.tolist(), labels.tolist())
    expected = mean(mixed + negative)
    assert contrastive(reps, labels, without_positives="all").item() == pytest.approx(expected, rel=1e-12)
    assert expected > 0


def test_positive_pairs_are_counted_over_all_categories():
    reps = draw(3, 2)
    labels = torch.tensor([[1, -1], [1, -1], [0, -1]])
    positive, _, negative = slow_sets(reps.tolist(), labels.tolist())
    assert (len(positive), len(negative)) == (1, 3)
    assert contrastive(reps, labels).item() == pytest.approx(mean(positive + negative), rel=1e-12)
    assert contrastive(reps, labels, without_positives="all") == contrastive(reps, labels)


@pytest.mark.parametrize("rule", ["none", "all"])
@pytest.mark.parametrize(
    "labels", [torch.zeros(3, 2), torch.tensor([[1, -1]]), torch.tensor([[0, 1], [1, 0]])]
)
def test_no_pair_is_exactly_zero_with_a_zero_gradient(labels, rule):
    reps = draw(len(labels), 2).requires_grad_()
    loss = contrastive(reps, labels, without_positives=rule)
    loss.backward()
    assert loss.item() == 0.0
    assert torch.equal(reps.grad, torch.zeros_like(reps))


def test_all_positive_pulls_together_only():
    reps = draw(3, 2)
    positive, mixed, negative = slow_sets(reps.tolist(), torch.ones(3, 2).tolist())
    assert not mixed and not negative
    assert contrastive(reps, torch.ones(3, 2)).item() == pytest.approx(mean(positive), rel=1e-12)
    assert contrastive(torch.ones(3, 2, 4), torch.ones(3, 2)).item() == pytest.approx(0, abs=1e-6)


def test_soft_targets_count_as_unknown():
    reps, (value, weight) = draw(), Targets.of(LABELS, torch.float64)
    soft = Targets(value.masked_fill(LABELS == 0, 0.5), weight.masked_fill(LABELS == 0, 1))
    assert contrastive(reps, soft) == contrastive(reps, LABELS)
    assert contrastive(reps, soft, "paper") == contrastive(reps, LABELS, "paper")


@pytest.mark.parametrize("form", ["balanced", "paper"])
def test_zero_vectors_have_cosine_and_gradient_zero(form):
    reps = draw()
    reps[0] = 0
    reps[2, 1] = 0
    reps.requires_grad_()
    loss = contrastive(reps, LABELS, form)
    loss.backward()
    expected = (
        slow_paper(reps.tolist(), LABELS.tolist())
        if form == "paper"
        else mean([loss for losses in slow_sets(reps.tolist(), LABELS.tolist()) for loss in losses])
    )
    assert loss.item() == pytest.approx(expected, rel=1e-12)
    assert torch.isfinite(reps.grad).all()
    assert (reps.grad[0] == 0).all() and (reps.grad[2, 1] == 0).all()
    assert (reps.grad[1, 0] != 0).any()


@pytest.mark.parametrize(("form", "rule"), [("balanced", "none"), ("balanced", "all"), ("paper", "none")])
def test_gradcheck(form, rule):
    labels = LABELS[:, 1:2] if rule == "all" else LABELS

    def loss(reps):
        return contrastive(reps, labels, form, rule, torch.Generator().manual_seed(3))

    assert torch.autograd.gradcheck(loss, (draw(4, labels.shape[1]).requires_grad_(),))


def test_gradcheck_of_a_cut_set():
    labels = torch.tensor([[1], [1], [-1], [-1], [-1], [-1]])

    def loss(reps):
        return contrastive(reps, labels, generator=torch.Generator().manual_seed(3))

    assert torch.autograd.gradcheck(loss, (draw(6, 1).requires_grad_(),))


def test_same_seed_same_loss_and_the_global_seed_serves_without_a_generator():
    reps, labels = draw(12, 3), torch.where(torch.arange(12)[:, None].expand(12, 3) < 2, 1, -1)

    def run(seed):
        return contrastive(reps, labels, generator=torch.Generator().manual_seed(seed)).item()

    assert run(0) == run(0)
    assert len({run(seed) for seed in range(5)}) > 1
    torch.manual_seed(7)
    first = contrastive(reps, labels)
    torch.manual_seed(7)
    assert contrastive(reps, labels) == first


def test_half_precision_and_autocast_are_computed_in_float32():
    reps = draw().bfloat16()
    assert contrastive(reps, LABELS).dtype == torch.float32
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert contrastive(reps, LABELS) == contrastive(reps.float(), LABELS)
        assert contrastive(reps.float(), LABELS).dtype == torch.float32


def test_wrong_options_are_reported_together():
    with pytest.raises(ConfigError) as caught:
        contrastive(draw(), LABELS, "papers", "al")
    assert len(caught.value.problems) == 2
    assert "Did you mean 'paper'?" in caught.value.problems[0]


def test_shapes_must_agree():
    with pytest.raises(ValueError, match="differ in B or C"):
        contrastive(draw(), LABELS[:2])
