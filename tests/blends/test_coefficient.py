import pytest
import torch
from torch import nn

from sarb.blends.coefficient import EPSILON, add_coefficient, bounded, clamp_
from sarb.errors import ConfigError


def module(start=0.5, learnable=True, categories=None):
    holder = nn.Module()
    add_coefficient(holder, "alpha", start, learnable, categories)
    return holder


@pytest.mark.parametrize("start", [0.01, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99])
@pytest.mark.parametrize("learnable", [True, False])
def test_starts_exactly_where_asked(start, learnable):
    alpha = module(start, learnable).alpha
    assert torch.equal(bounded(alpha.detach()), torch.tensor(start))
    assert alpha.requires_grad is learnable


def test_fixed_and_learned_share_the_state_key():
    assert list(module().state_dict()) == list(module(learnable=False).state_dict()) == ["alpha"]
    assert not list(module(learnable=False).parameters())


def test_per_category_shape():
    assert module(categories=4).alpha.tolist() == [0.5] * 4
    assert module().alpha.shape == ()


@pytest.mark.parametrize("start", [0.0, 1.0, -0.2, 1.5, float("nan")])
def test_start_outside_the_interval_is_refused(start):
    with pytest.raises(ConfigError, match=r"alpha must lie between 0\.01 and 0\.99, got"):
        module(start)


@pytest.mark.parametrize(("raw", "expected"), [(-3.0, EPSILON), (7.0, 1 - EPSILON), (0.4, 0.4)])
def test_bounded_stays_inside_and_keeps_its_gradient(raw, expected):
    raw = torch.tensor(raw, requires_grad=True)
    value = bounded(raw)
    value.backward()
    assert value.item() == pytest.approx(expected, rel=1e-5)
    assert raw.grad.item() == 1.0


@pytest.mark.parametrize(("sign", "edge"), [(-1, 1 - EPSILON), (1, EPSILON)])
def test_pushed_to_the_edge_it_stays_there_and_can_come_back(sign, edge):
    alpha = module().alpha
    optimiser = torch.optim.SGD([alpha], lr=0.1)
    for _ in range(20):
        optimiser.zero_grad()
        (sign * bounded(alpha)).backward()
        optimiser.step()
        clamp_(alpha)
    assert alpha.item() == pytest.approx(edge)
    (-sign * 2 * bounded(alpha)).backward()
    optimiser.step()
    assert abs(alpha.item() - edge) == pytest.approx(0.1, rel=1e-4)


def test_a_small_learning_rate_moves_it_by_that_much():
    alpha = module().alpha
    optimiser = torch.optim.Adam([alpha], lr=1e-4)
    for _ in range(10):
        optimiser.zero_grad()
        bounded(alpha).backward()
        optimiser.step()
    assert alpha.item() == pytest.approx(0.5 - 1e-3, abs=1e-6)
