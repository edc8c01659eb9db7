"""The blocked scores of semantic decoupling against the expression they stand for."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.autograd import gradcheck

import sarb.networks.scores
from sarb.networks.scores import joint_scores


def literal(image: torch.Tensor, word: torch.Tensor, direction: torch.Tensor) -> torch.Tensor:
    return (torch.tanh(image[None] * word[:, None]) * direction).sum(-1)


def with_gradients(function, tensors, weight):
    tensors = [tensor.clone().requires_grad_() for tensor in tensors]
    result = function(*tensors)
    (result * weight).sum().backward()
    return [result, *(tensor.grad for tensor in tensors)]


@settings(max_examples=40, deadline=None)
@given(
    sizes=st.tuples(st.integers(1, 23), st.integers(1, 9), st.integers(1, 17)),
    block=st.sampled_from([1, 7, 64, 1000, 1 << 21]),
    dtype=st.sampled_from([torch.float32, torch.float64]),
    seed=st.integers(0, 99),
)
def test_values_and_gradients_equal_the_literal_expression(sizes, block, dtype, seed):
    rows, categories, hidden = sizes
    draw = torch.Generator().manual_seed(seed)
    tensors = [
        torch.randn(*shape, generator=draw, dtype=dtype)
        for shape in ((rows, hidden), (categories, hidden), (hidden,))
    ]
    weight = torch.randn(categories, rows, generator=draw, dtype=dtype)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sarb.networks.scores.BLOCK, "cpu", block)
        found = with_gradients(joint_scores, tensors, weight)
    expected = with_gradients(literal, tensors, weight)
    close = 1e-5 if dtype == torch.float32 else 1e-10
    for ours, theirs in zip(found, expected, strict=True):
        assert torch.allclose(ours, theirs, rtol=close, atol=close * float(theirs.abs().max()) + 1e-30)


def test_gradcheck_and_no_second_derivative(monkeypatch):
    monkeypatch.setitem(sarb.networks.scores.BLOCK, "cpu", 20)
    tensors = [
        torch.randn(*shape, dtype=torch.float64, requires_grad=True) for shape in ((5, 4), (3, 4), (4,))
    ]
    assert gradcheck(joint_scores, tensors)


def test_no_tensor_of_rows_times_categories_times_hidden_is_made(monkeypatch):
    """The largest tensor that forward or backward allocates stays a block."""
    monkeypatch.setitem(sarb.networks.scores.BLOCK, "cpu", 1 << 12)
    largest = 0

    class Watch(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            nonlocal largest
            result = function(*args, **(kwargs or {}))
            for tensor in result if isinstance(result, (tuple, list)) else [result]:
                if isinstance(tensor, torch.Tensor):
                    largest = max(largest, tensor.untyped_storage().nbytes() // tensor.element_size())
            return result

    image, word = torch.randn(100, 64, requires_grad=True), torch.randn(50, 64, requires_grad=True)
    with Watch():
        joint_scores(image, word, torch.randn(64)).sum().backward()
    assert 1 << 11 <= largest <= 100 * 64  # the whole joint space has 320,000


def test_a_compiler_gets_the_plain_expression(monkeypatch):
    monkeypatch.setattr(torch.compiler, "is_compiling", lambda: True)
    image, word, direction = torch.randn(6, 4), torch.randn(3, 4), torch.randn(4)
    assert torch.allclose(joint_scores(image, word, direction), literal(image, word, direction), atol=1e-6)
