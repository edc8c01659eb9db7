"""Parameter groups, optimisers and learning-rate schedules."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import torch
from torch import nn

from sarb.methods.base import Method, Rate
from sarb.networks.base import Network
from sarb.settings import METHOD_PART

OPTIMIZERS: dict[str, type[torch.optim.Optimizer]] = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW}

#: function (position in training 0..1, epochs) -> factor of the learning rate
SCHEDULES: dict[str, Callable[[float, int], float]] = {
    "constant": lambda position, epochs: 1.0,
    # the paper: ÷10 every 10 epochs
    "step": lambda position, epochs: 0.1 ** int(position * epochs / 10 + 1e-9),
    "cosine": lambda position, epochs: 0.5 * (1 + math.cos(math.pi * position)),
    "linear": lambda position, epochs: 1 - position,
}


def schedule_factor(schedule: str, step: int, steps: int, epochs: int, warmup: float) -> float:
    """Factor of the learning rate at a step, with linear warm-up over the first ``warmup`` epochs."""
    position = step / max(1, steps)
    ramp = warmup / max(1, epochs)
    growth = min(1.0, (step + 1) / (ramp * steps)) if ramp > 0 else 1.0
    return growth * SCHEDULES[schedule](position, epochs)


def part_of(name: str, network: Network) -> str:
    """Return the part of a parameter: ``"blend"`` if it is the method's own, else the network decides."""
    owner, _, parameter = name.partition(".")
    return network.part_of(parameter) if owner == "network" else METHOD_PART


def parameter_groups(
    method: Method, lr: float, scale: Mapping[str, float], weight_decay: float
) -> list[dict[str, object]]:
    """One group per part with learning rate ``lr · scale[part]``; blend coefficients have no weight decay.

    What a method lists in ``rates`` learns at a rate of its own.
    """
    parts: dict[tuple[str, Rate], list[nn.Parameter]] = {}
    for name, parameter in method.named_parameters():
        if parameter.requires_grad:
            part = part_of(name, method.network)
            usual = Rate(scale.get(part, 1.0), decay=part != METHOD_PART)
            own = [rate for prefix, rate in method.rates.items() if name.startswith(prefix)]
            parts.setdefault((part, own[0] if own else usual), []).append(parameter)
    return [
        {
            "params": parameters,
            "lr": lr * rate.factor,
            "base_lr": lr * rate.factor,
            "weight_decay": weight_decay if rate.decay else 0.0,
            "part": part,
        }
        for (part, rate), parameters in parts.items()
    ]
