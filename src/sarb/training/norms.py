"""Batch norms whose statistics are those of the images of all processes."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from sarb.methods.together import group, stands_in, summed
from sarb.progress import Progress

#: a batch norm of another package may do more than normalise, so only these are replaced
KINDS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)


class SyncNorms:
    """The trained batch norms of a module, replaced by synchronised ones until :meth:`restore`.

    They keep parameters, buffers and names. Batch norms of frozen parts, which are in eval mode, stay as they are.

    Args:
        module: in training mode.
        talk: says which batch norms could not be replaced.
    """

    def __init__(self, module: nn.Module, talk: Progress) -> None:
        self._before: list[tuple[nn.Module, str, nn.Module]] = []
        others: set[str] = set()
        for parent, name, norm in list(_trained(module)):
            if type(norm) not in KINDS:
                others.add(type(norm).__name__)
                continue
            self._before.append((parent, name, norm))
            setattr(parent, name, _synchronised(norm))
        if others:
            names = ", ".join(sorted(others))
            talk.say(f"batch norms of type {names} cannot be synchronised: each process uses its own images")

    def restore(self) -> None:
        """Put the plain batch norms back."""
        for parent, name, norm in self._before:
            now = getattr(parent, name)
            norm._parameters.update(now._parameters)
            norm._buffers.update(now._buffers)
            norm.train(now.training)
            setattr(parent, name, norm)
        self._before = []


def _trained(module: nn.Module) -> Iterator[tuple[nn.Module, str, _BatchNorm]]:
    for parent in module.modules():
        for name, child in parent.named_children():
            if isinstance(child, _BatchNorm) and not isinstance(child, nn.SyncBatchNorm) and child.training:
                yield parent, name, child


def _synchronised(norm: _BatchNorm) -> nn.Module:
    """PyTorch's own, which works on accelerators only, or the same for the CPU."""
    weight = norm.weight if norm.affine else norm.running_mean
    if weight is not None and weight.device.type != "cpu":
        made: nn.Module = nn.SyncBatchNorm.convert_sync_batchnorm(norm, group())  # type: ignore[no-untyped-call]
        return made
    synchronised = CPUSyncNorm(
        norm.num_features, norm.eps, norm.momentum, norm.affine, norm.track_running_stats
    )
    synchronised._parameters.update(norm._parameters)
    synchronised._buffers.update(norm._buffers)
    return synchronised


class CPUSyncNorm(_BatchNorm):
    """y = γ (x − μ) / √(σ² + ε) + β, with μ and σ² of the images of all processes, (n, D, …).

    ``torch.nn.SyncBatchNorm`` refuses tensors of the CPU.
    """

    def _check_input_dim(self, input: Tensor) -> None:
        """Any shape with at least two dimensions."""

    def forward(self, input: Tensor) -> Tensor:
        """Normalise, and move the running statistics."""
        if not self.training:
            return super().forward(input)
        others = [0, *range(2, input.dim())]
        shape = [1, -1, *[1] * (input.dim() - 2)]
        counts = float(not stands_in())
        local = input.new_tensor([input.numel() / input.shape[1]])
        both = summed(torch.cat([input.sum(others), local]) * counts)
        count = both[-1].detach()
        mean = both[:-1] / count
        centered = input - mean.view(shape)
        # in two passes, because Σx² − (Σx)²/n loses digits
        variance = summed(centered.square().sum(others) * counts) / count
        self._remember(mean.detach(), variance.detach() * count / (count - 1).clamp(min=1))
        scaled = centered * (variance + self.eps).rsqrt().view(shape)
        if not self.affine:
            return scaled
        return scaled * self.weight.view(shape) + self.bias.view(shape)

    @torch.no_grad()
    def _remember(self, mean: Tensor, variance: Tensor) -> None:
        if not self.track_running_stats or self.running_mean is None or self.running_var is None:
            return
        assert self.num_batches_tracked is not None
        self.num_batches_tracked.add_(1)
        share = 1 / float(self.num_batches_tracked) if self.momentum is None else self.momentum
        self.running_mean.lerp_(mean.to(self.running_mean.dtype), share)
        self.running_var.lerp_(variance.to(self.running_var.dtype), share)
