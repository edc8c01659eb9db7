"""The element-wise half of a gated graph step, with its gradient written out."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional as F


def gated_update(states: Tensor, message: Tensor, state: Tensor, candidate: Tensor) -> Tensor:
    """One gated step from precomputed products: h ← (1 − z) ⊙ h + z ⊙ h'.

        z, r = σ(message_zr + state)        h' = tanh(message_h + U_h (r ⊙ h))

    Autograd would pass over (B, C, 3D) a dozen times more than needed, because it joins the gradients of the
    slices and keeps a copy for each product. The gradient written by hand avoids this. Compilers,
    exporters and mixed precision get the plain expression.

    Args:
        states: h (B, C, D).
        message: (B, C, 3D) of W_z, W_r and W_h, with bias.
        state: (B, C, 2D) of U_z and U_r.
        candidate: U_h (D, D).
    """
    written_out = torch.is_grad_enabled() and not torch.compiler.is_compiling()
    if written_out and not torch.is_autocast_enabled(states.device.type):
        new: Tensor = _GatedUpdate.apply(states, message, state, candidate)  # type: ignore[no-untyped-call]
        return new
    return _forward(states, message, state, candidate)[0]


def _forward(
    states: Tensor, message: Tensor, state: Tensor, candidate: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """New states, the gates [z, r] (B, C, 2D), and the proposed states h' (B, C, D)."""
    width = states.shape[-1]
    # split instead of slices: the gradient of a slice is padded with zeros and then added up
    first, content = torch.split(message, [2 * width, width], -1)
    gates = (first + state).sigmoid_()
    update, reset = gates.chunk(2, -1)
    proposal = (F.linear(reset * states, candidate) + content).tanh_()
    return torch.lerp(states, proposal, update), gates, proposal


class _GatedUpdate(torch.autograd.Function):
    """The gradient of a step, with respect to z, r and h' before their σ and tanh.

    With g = ∂L/∂h_new: ∂h' = g z (1 − h'²), q = ∂h' U_h, ∂z = g (h' − h) z (1 − z), ∂r = q h r (1 − r),
    ∂h = g (1 − z) + q r, ∂U_h = ∂h'ᵀ (r h).
    """

    @staticmethod
    def forward(ctx: Any, states: Tensor, message: Tensor, state: Tensor, candidate: Tensor) -> Tensor:
        new, gates, proposal = _forward(states, message, state, candidate)
        ctx.save_for_backward(states, gates, proposal, candidate)
        return new

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        states, gates, proposal, candidate = ctx.saved_tensors
        width = states.shape[-1]
        update, reset = gates.chunk(2, -1)
        to_message = gates.new_empty(*gates.shape[:-1], 3 * width)
        to_update, to_reset, to_content = to_message.chunk(3, -1)
        moved = gradient * update
        torch.ops.aten.tanh_backward.grad_input(moved, proposal, grad_input=to_content)
        back = to_content @ candidate
        to_candidate = to_content.flatten(0, -2).T @ (reset * states).flatten(0, -2)
        to_states = torch.sub(gradient, moved, out=moved).addcmul_(back, reset)
        torch.ops.aten.sigmoid_backward.grad_input(back.mul_(states), reset, grad_input=to_reset)
        difference = torch.sub(proposal, states).mul_(gradient)
        torch.ops.aten.sigmoid_backward.grad_input(difference, update, grad_input=to_update)
        return to_states, to_message, to_message[..., : 2 * width], to_candidate
