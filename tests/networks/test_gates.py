"""The written-out gradient of a gated step against the formula, term by term and by automatic
differentiation.
"""

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from sarb.networks.gates import gated_update


def literal(states: Tensor, message: Tensor, state: Tensor, candidate: Tensor) -> Tensor:
    width = states.shape[-1]
    z = torch.sigmoid(message[..., :width] + state[..., :width])
    r = torch.sigmoid(message[..., width : 2 * width] + state[..., width:])
    proposal = torch.tanh(message[..., 2 * width :] + (r * states) @ candidate.T)
    return (1 - z) * states + z * proposal


def inputs(batch: int, categories: int, width: int, kind: torch.dtype, seed: int) -> list[Tensor]:
    generator = torch.Generator().manual_seed(seed)
    shapes = [
        (batch, categories, width),
        (batch, categories, 3 * width),
        (batch, categories, 2 * width),
        (width,) * 2,
    ]
    return [torch.randn(*shape, generator=generator, dtype=kind).requires_grad_() for shape in shapes]


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 4), st.integers(1, 5), st.integers(1, 6), st.booleans(), st.integers(0, 1000))
def test_values_and_gradients_are_those_of_the_formula(
    batch: int, categories: int, width: int, double: bool, seed: int
) -> None:
    kind, tolerance = (torch.float64, 1e-10) if double else (torch.float32, 1e-5)
    given_ = inputs(batch, categories, width, kind, seed)
    ours, wanted = gated_update(*given_), literal(*given_)
    torch.testing.assert_close(ours, wanted, rtol=tolerance, atol=tolerance)
    weight = torch.randn(ours.shape, dtype=kind, generator=torch.Generator().manual_seed(seed + 1))
    for found, expected in zip(
        torch.autograd.grad((ours * weight).sum(), given_),
        torch.autograd.grad((wanted * weight).sum(), given_),
        strict=True,
    ):
        torch.testing.assert_close(found, expected, rtol=tolerance, atol=tolerance)


def test_gradcheck() -> None:
    assert torch.autograd.gradcheck(gated_update, inputs(2, 3, 2, torch.float64, 0))


def test_without_gradients_the_value_is_the_same() -> None:
    given_ = inputs(2, 3, 4, torch.float32, 0)
    with torch.no_grad():
        plain = gated_update(*given_)
    assert not plain.requires_grad
    assert torch.equal(plain, gated_update(*given_))


def test_mixed_precision_takes_the_plain_way_and_keeps_the_gradient() -> None:
    given_ = inputs(2, 3, 4, torch.float32, 0)
    with torch.autocast("cpu", dtype=torch.float16):
        halves = [given_[0].half(), given_[1].half(), given_[2].half(), given_[3]]
        new = gated_update(*halves)
    assert new.dtype is torch.float16
    new.float().sum().backward()
    torch.testing.assert_close(new.float(), literal(*given_), rtol=1e-2, atol=1e-2)
    assert given_[3].grad is not None and given_[3].grad.abs().sum() > 0
