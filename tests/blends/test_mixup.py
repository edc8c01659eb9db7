"""Position-wise mixing."""

import pytest
import torch

from sarb.blends import draw_mixing, mix


@pytest.mark.parametrize("shape", [(3, 3, 4, 4), (3, 8, 2, 2)])
def test_mix_equals_the_slow_loop(shape):
    x, partner, share = torch.randn(shape), torch.tensor([2, 0, 1]), torch.tensor(0.3)
    mixed = mix(x, share, partner)
    for n in range(3):
        assert torch.allclose(mixed[n], 0.3 * x[n] + 0.7 * x[partner[n]], atol=1e-6)


def test_gradients_reach_both_images():
    x = torch.randn(2, 1, 1, 1, requires_grad=True)
    mix(x, torch.tensor(0.25), torch.tensor([1, 0]))[0].sum().backward()
    assert x.grad.flatten().tolist() == [0.25, 0.75]


def test_draw_is_seeded_one_share_per_batch_and_nobody_is_his_own_partner():
    torch.manual_seed(0)
    first = draw_mixing(5, 0.2)
    torch.manual_seed(0)
    second = draw_mixing(5, 0.2)
    assert first[0].shape == () and torch.equal(first[0], second[0]) and torch.equal(first[1], second[1])
    assert sorted(first[1].tolist()) == list(range(5)) and (first[1] != torch.arange(5)).all()


@pytest.mark.parametrize(("concentration", "variance"), [(0.2, 0.25 / 1.4), (1.0, 1 / 12), (4.0, 0.25 / 9)])
def test_share_follows_the_beta_distribution(concentration, variance):
    # mean 1/2 and variance 1/(4 (2a + 1))
    torch.manual_seed(1)
    shares = torch.stack([draw_mixing(2, concentration)[0] for _ in range(2000)])
    assert shares.mean().item() == pytest.approx(0.5, abs=0.02)
    assert shares.var().item() == pytest.approx(variance, rel=0.08)


def test_a_single_image_is_left_as_it_is():
    share, partner = draw_mixing(1, 0.2)
    x = torch.randn(1, 3, 2, 2)
    assert share == 1 and torch.equal(mix(x, share, partner), x)
