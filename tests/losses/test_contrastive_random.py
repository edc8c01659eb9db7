"""The contrastive loss on random shapes and label mixes, against a loop over pairs with the pairs that were
drawn.
"""

import sys

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from sarb.losses import contrastive

MODULE = sys.modules["sarb.losses.contrastive"]  # the package gives its name to the function
#: shares of absent, unknown and present labels
MIXES = {
    "all unknown": (0.0, 1.0, 0.0),
    "all known": (0.5, 0.0, 0.5),
    "all present": (0.0, 0.0, 1.0),
    "all absent": (1.0, 0.0, 0.0),
    "few present": (0.7, 0.2, 0.1),
    "half known": (0.25, 0.5, 0.25),
}
shapes = given(
    sizes=st.tuples(st.integers(1, 7), st.integers(1, 6), st.integers(1, 8)),
    mix=st.sampled_from(sorted(MIXES)),
    rule=st.sampled_from(["none", "all"]),
    seed=st.integers(0, 10**6),
)
precisions = pytest.mark.parametrize(("dtype", "error"), [(torch.float32, 1e-5), (torch.float64, 1e-10)])


def draw(sizes, mix, dtype, seed):
    generator = torch.Generator().manual_seed(seed)
    images, categories, _ = sizes
    labels = torch.multinomial(torch.tensor(MIXES[mix]), images * categories, True, generator=generator) - 1
    reps = torch.randn(*sizes, generator=generator, dtype=torch.float64).to(dtype)
    return reps.requires_grad_(), labels.view(images, categories)


def cost(reps, n, m, c, pulls):
    similarity = (reps[n, c] * reps[m, c]).sum() / (reps[n, c].norm() * reps[m, c].norm())
    return 1 - similarity if pulls else 1 + similarity


def assert_equal(ours, theirs, reps, exact, error, terms=1):
    """Values and gradients, to ``error`` of each of the ``terms`` that are added up."""
    assert ours.item() == pytest.approx(theirs.item(), rel=error, abs=error * terms)
    (found,), (expected,) = torch.autograd.grad(ours, reps), torch.autograd.grad(theirs, exact)
    # a direction turns the faster, the shorter the vector is
    scale = max(1.0, 1 / float(exact.detach().norm(dim=2).min()), float(expected.abs().max()))
    assert (found - expected).abs().max() <= error * scale * min(terms, 2 * len(reps))


@precisions
@settings(deadline=None, max_examples=40)
@shapes
def test_paper_form_equals_the_loop_over_ordered_pairs(dtype, error, sizes, mix, rule, seed):
    reps, labels = draw(sizes, mix, dtype, seed)
    exact, codes = reps.detach().double().requires_grad_(), labels.tolist()
    images, categories, _ = sizes
    theirs = exact.sum() * 0
    for n in range(images):
        for m in range(images):
            for c in range(categories):
                theirs = theirs + cost(exact, n, m, c, codes[n][c] == 1 and codes[m][c] == 1)
    assert_equal(contrastive(reps, labels, "paper", rule), theirs, reps, exact, error, images**2 * categories)


def kept_pairs(losses, kept, pairs):
    """What is left of a set, {pair: loss}, after its cut is checked: the P hardest and 2P others, or all of
    it.
    """
    assert kept <= losses.keys()
    assert len(kept) == min(len(losses), 3 * pairs)
    left = [loss for pair, loss in losses.items() if pair not in kept]
    hardest = sorted((losses[pair] for pair in kept), reverse=True)[:pairs]
    assert (
        not left or not pairs or min(hardest) >= max(left) - 1e-6
    )  # losses are 0 to 2; equal ones are equally hard
    return kept


@precisions
@settings(deadline=None, max_examples=60)
@shapes
def test_balanced_form_equals_the_loop_over_the_drawn_pairs(dtype, error, sizes, mix, rule, seed):
    reps, labels = draw(sizes, mix, dtype, seed)
    drawn, cut = [], MODULE.hardest_and_random
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(MODULE, "hardest_and_random", lambda *given: drawn.append(cut(*given)) or drawn[-1])
        ours = contrastive(reps, labels, "balanced", rule, torch.Generator().manual_seed(seed))
    exact, codes = reps.detach().double().requires_grad_(), labels.tolist()
    images, categories, _ = sizes
    sets = {2: {}, 0: {}, -2: {}}
    for c in range(categories):
        for n in range(images):
            for m in range(n + 1, images):
                if codes[n][c] and codes[m][c]:
                    kind = codes[n][c] + codes[m][c]
                    sets[kind][c, n, m] = cost(exact, n, m, c, kind == 2)
    pairs, kept = len(sets[2]), list(sets[2].values())
    for place, kind in enumerate((0, -2)):
        values = {pair: loss.item() for pair, loss in sets[kind].items()}
        if pairs or rule == "none":
            chosen = kept_pairs(values, {tuple(pair) for pair in drawn[place].nonzero().tolist()}, pairs)
        else:
            chosen = values.keys()
        kept += [sets[kind][pair] for pair in chosen]
    theirs = sum(kept, exact.sum() * 0) / max(1, len(kept))
    assert_equal(ours, theirs, reps, exact, error)
