"""The state a run resumes from: weights, buffers, optimiser and bookkeeping in one safetensors file."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save
from torch import Tensor

from sarb.errors import SarbError
from sarb.runs.checks import parse
from sarb.runs.folder import START_OVER, checkpoint_manifest
from sarb.runs.schema import CHECKPOINT
from sarb.runs.tensors import read_tensors


@dataclass
class State:
    """Bookkeeping of a run that a resume brings back.

    Epochs done, best validation, one log row per epoch, the loss of each step (None where no image could be
    read), and the rows of ``errors.csv``. Inside an epoch also: its steps done, the last learning rate,
    the sums of its log row, its seconds, and the attributes of the method, see :mod:`sarb.training.attributes`.
    With fp16 also the state of the gradient scaler.
    """

    epoch: int = 0
    best: float = -math.inf
    best_epoch: int = -1
    log: list[dict[str, Any]] = field(default_factory=list)
    steps: list[float | None] = field(default_factory=list)
    skipped: list[dict[str, str]] = field(default_factory=list)
    step: int = 0
    lr: float = 0.0
    sums: dict[str, float] = field(default_factory=dict)
    seconds: float = 0.0
    attributes: dict[str, Any] = field(default_factory=dict)
    scaler: dict[str, Any] = field(default_factory=dict)

    def end_epoch(self, row: dict[str, Any]) -> None:
        """Add the row of an epoch and forget what belongs to it alone."""
        self.log.append(row)
        self.epoch += 1
        self.step = 0
        self.sums = {}
        self.seconds = 0.0
        self.attributes = {}

    def step_rows(self) -> list[dict[str, Any]]:
        """Rows of ``steps.csv``; all epochs have the same number of steps."""
        count = len(self.steps) // self.epoch
        return [{"step": step, "epoch": step // count, "loss": loss} for step, loss in enumerate(self.steps)]


def part_file(folder: Path | None, name: str, *content: bytes) -> Path | None:
    """The checkpoint of one training of several in a run; what the training starts from is in its name.

    So a checkpoint of other labels, settings or weights is never continued.
    """
    if folder is None:
        return None
    key = hashlib.sha256()
    for part in content:
        key.update(hashlib.sha256(part).digest())
    return folder / f"{name}-{key.hexdigest()[:16]}.safetensors"


def save_checkpoint(
    file: Path,
    method: torch.nn.Module,
    optimizer: torch.optim.Optimizer,
    state: dict[str, Any],
    extra: Mapping[str, Tensor] | None = None,
) -> None:
    """Write weights, buffers (prototypes, α, β), optimiser and bookkeeping as one atomic safetensors file.

    ``extra`` are more tensors, by name.
    """
    tensors: dict[str, Tensor] = {}
    shared: dict[str, str] = {}  # a residual shares its backbone: safetensors stores no tensor twice
    places: dict[tuple[int, torch.Size], str] = {}
    for key, value in method.state_dict().items():
        first = places.setdefault((value.data_ptr(), value.shape), key)
        if first == key or not value.numel():
            tensors[f"method.{key}"] = value.detach().cpu().contiguous()
        else:
            shared[f"method.{key}"] = f"method.{first}"
    tensors |= {f"extra.{key}": value for key, value in (extra or {}).items()}
    scalars: dict[str, float] = {}
    for number, values in optimizer.state_dict()["state"].items():
        for key, value in values.items():
            if isinstance(value, Tensor):
                tensors[f"optimizer.{number}.{key}"] = value.detach().cpu().contiguous()
            else:
                scalars[f"{number}.{key}"] = value
    metadata = {"state": json.dumps({**state, "optimizer_scalars": scalars, "shared": shared})}
    checkpoint_manifest(file).write(file, save(tensors, metadata))


def load_checkpoint(
    file: Path,
    method: torch.nn.Module,
    optimizer: torch.optim.Optimizer,
    extra: dict[str, Tensor] | None = None,
    unset: Collection[str] = (),
) -> dict[str, Any]:
    """Put weights, buffers and optimiser back, and more tensors into ``extra``; return the bookkeeping.

    Tensors of the method whose names are in ``unset`` may hold NaN.
    """
    checkpoint_manifest(file).check(file, START_OVER)
    try:
        tensors, metadata = read_tensors(
            file, may_be_nan=lambda name: name.startswith("extra.") or name.removeprefix("method.") in unset
        )
        state: dict[str, Any] = parse(metadata["state"].encode())
        CHECKPOINT(state, "")
        scalars = state.pop("optimizer_scalars")
        tensors |= {key: tensors[first] for key, first in state.pop("shared", {}).items()}
        if strange := state.keys() - {each.name for each in fields(State)}:
            raise ValueError(f"unknown fields {', '.join(sorted(strange)[:3])}")
    except (SarbError, KeyError, ValueError) as error:
        raise SarbError(
            f"{file}: cannot be read as a checkpoint ({error}); remove it to start over"
        ) from error
    weights = {
        key.removeprefix("method."): value for key, value in tensors.items() if key.startswith("method.")
    }
    try:
        entries = _optimizer_entries(
            {**tensors, **{f"optimizer.{key}": scalars[key] for key in scalars}}, optimizer
        )
        method.load_state_dict(weights)
        optimizer.load_state_dict({"state": entries, "param_groups": optimizer.state_dict()["param_groups"]})
    except (RuntimeError, ValueError, KeyError, TypeError) as error:
        reason = (str(error) or type(error).__name__).splitlines()[0]
        raise SarbError(f"{file}: does not fit this run ({reason}); remove it to start over") from error
    if extra is not None:
        extra.update(
            {key.removeprefix("extra."): tensors[key] for key in tensors if key.startswith("extra.")}
        )
    return state


def _optimizer_entries(
    stored: Mapping[str, Any], optimizer: torch.optim.Optimizer
) -> dict[int, dict[str, Any]]:
    """What the optimiser remembers of each parameter, by number; ValueError if it cannot be of these parameters."""
    entries: dict[int, dict[str, Any]] = {}
    for key, value in stored.items():
        if key.startswith("optimizer."):
            _, number, name = key.split(".", 2)
            entries.setdefault(int(number), {})[name] = value
    shapes = [each.shape for group in optimizer.param_groups for each in group["params"]]
    for place, entry in entries.items():
        if not 0 <= place < len(shapes) or entry.keys() != next(iter(entries.values())).keys():
            raise ValueError(f"the optimiser's entry {place} is not one of its parameters")
        for name, value in entry.items():
            expected = torch.Size([]) if name == "step" else shapes[place]
            if isinstance(value, Tensor) and value.shape != expected:
                raise ValueError(f"the optimiser's entry {place}, {name}, has the shape {tuple(value.shape)}")
    return entries
