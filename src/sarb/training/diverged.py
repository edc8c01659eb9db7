"""A training that has left the finite numbers: stop at this step, and say where it began."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from sarb.batches.loader import Batch
from sarb.errors import SarbError
from sarb.methods.base import Method
from sarb.runs.finite import MOST, check_finite, not_finite

ADVICE = "try a smaller lr or clip=1"


def check_loss(
    loss: Tensor, terms: Mapping[str, Tensor], batch: Batch, method: Method, paths: Sequence[str], where: str
) -> None:
    """Raise SarbError if the loss is not finite: name its terms and, if they are the cause, images or weights."""
    if torch.isfinite(loss):
        return
    wrong = [f"{name} is {value.item():.3g}" for name, value in terms.items() if not torch.isfinite(value)]
    text = f"the loss is not finite at {where}: {', '.join(wrong) or 'the sum of its terms'}"
    rows = torch.isfinite(batch.images).flatten(1).all(1).logical_not().nonzero()[:, 0]
    weights = not_finite(weights_of(method))
    if len(rows):
        names = ", ".join(paths[index] for index in batch.index[rows[:MOST]].tolist())
        what = "cached features" if batch.frozen else "pixels"
        raise SarbError(
            f"{text}, because {what} of {len(rows):,} images are not finite: {names}; 'sarb data check' "
            "checks images, and cached features are computed again once their file is removed"
        )
    if weights:
        raise SarbError(f"{text}, because weights are not finite: {', '.join(weights[:MOST])}; {ADVICE}")
    raise SarbError(f"{text}; {ADVICE}")


def check_gradients(method: Method, where: str) -> None:
    """Raise SarbError if a gradient is not finite, and name its parameter; call this before the step."""
    gradients = {name: each.grad for name, each in method.named_parameters() if each.grad is not None}
    if torch.isfinite(torch.nn.utils.get_total_norm(gradients.values())):
        return
    names = not_finite(gradients) or ["their norm"]
    raise SarbError(f"the gradient is not finite at {where}: {', '.join(names[:MOST])}; {ADVICE}")


def check_state(method: Method, optimizer: torch.optim.Optimizer, where: str) -> None:
    """Raise SarbError if something that a checkpoint holds is not finite."""
    moments = {
        f"optimizer.{number}.{key}": value
        for number, values in optimizer.state_dict()["state"].items()
        for key, value in values.items()
        if isinstance(value, Tensor)
    }
    check_finite({**weights_of(method), **moments}, where)


def weights_of(method: Method) -> dict[str, Tensor]:
    """Parameters and buffers, without those in which NaN means "not yet"."""
    return {name: value for name, value in method.state_dict().items() if name not in method.unset}
