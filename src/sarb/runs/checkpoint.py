"""The state a run resumes from: weights, buffers, optimiser and bookkeeping in one safetensors file."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from sarb.errors import SarbError
from sarb.files import atomic_write


@dataclass
class State:
    """Bookkeeping of a run that a resume brings back.

    Epochs done, best validation, one log row per epoch, the loss of each step (None where no image could be
    read), and the rows of ``errors.csv``.
    """

    epoch: int = 0
    best: float = -math.inf
    best_epoch: int = -1
    log: list[dict[str, Any]] = field(default_factory=list)
    steps: list[float | None] = field(default_factory=list)
    skipped: list[dict[str, str]] = field(default_factory=list)

    def step_rows(self) -> list[dict[str, Any]]:
        """Rows of ``steps.csv``; all epochs have the same number of steps."""
        count = len(self.steps) // self.epoch
        return [{"step": step, "epoch": step // count, "loss": loss} for step, loss in enumerate(self.steps)]


def save_checkpoint(
    file: Path, method: torch.nn.Module, optimizer: torch.optim.Optimizer, state: dict[str, Any]
) -> None:
    """Write weights, buffers (prototypes, α, β), optimiser and bookkeeping as one atomic safetensors file."""
    tensors = {
        f"method.{key}": value.detach().cpu().contiguous() for key, value in method.state_dict().items()
    }
    scalars: dict[str, float] = {}
    for number, values in optimizer.state_dict()["state"].items():
        for key, value in values.items():
            if isinstance(value, Tensor):
                tensors[f"optimizer.{number}.{key}"] = value.detach().cpu().contiguous()
            else:
                scalars[f"{number}.{key}"] = value
    metadata = {"state": json.dumps({**state, "optimizer_scalars": scalars})}
    with atomic_write(file, "wb") as stream:
        stream.write(save(tensors, metadata))


def load_checkpoint(file: Path, method: torch.nn.Module, optimizer: torch.optim.Optimizer) -> dict[str, Any]:
    """Put weights, buffers and optimiser back; return the bookkeeping."""
    try:
        with safe_open(file, framework="pt") as stored:
            tensors = {key: stored.get_tensor(key) for key in list(stored.keys())}
            state: dict[str, Any] = json.loads((stored.metadata() or {})["state"])
            scalars = state.pop("optimizer_scalars")
    except (SafetensorError, OSError, KeyError, ValueError) as error:
        raise SarbError(
            f"{file}: cannot be read as a checkpoint ({error!r}); remove it to start over"
        ) from error
    weights = {
        key.removeprefix("method."): value for key, value in tensors.items() if key.startswith("method.")
    }
    entries: dict[int, dict[str, Any]] = {}
    for key, value in tensors.items():
        if key.startswith("optimizer."):
            _, number, name = key.split(".", 2)
            entries.setdefault(int(number), {})[name] = value
    for key, value in scalars.items():
        number, name = key.split(".", 1)
        entries.setdefault(int(number), {})[name] = value
    try:
        method.load_state_dict(weights)
        optimizer.load_state_dict({"state": entries, "param_groups": optimizer.state_dict()["param_groups"]})
    except (RuntimeError, ValueError, KeyError) as error:
        reason = str(error).splitlines()[0]
        raise SarbError(f"{file}: does not fit this run ({reason}); remove it to start over") from error
    return state
