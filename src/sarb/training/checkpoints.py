"""When a training saves its state, at the end of an epoch or inside it, and how it is taken up again.

Randomness follows from (seed, epoch), so at the end of an epoch no generator needs to be kept. A checkpoint inside
an epoch also holds the states of the generators, the sums of the epoch's log row, and what the method keeps in plain
attributes.
"""

from __future__ import annotations

import math
import time
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from sarb.methods.base import Method
from sarb.progress import Progress
from sarb.runs.checkpoint import State, load_checkpoint, save_checkpoint
from sarb.settings import checkpoint_pace
from sarb.training.attributes import Attributes, NotStorableError

ATTRIBUTE = "attribute."
GENERATOR = "generator."


class Checkpoints:
    """The checkpoints of one training.

    Args:
        method: with the network; made and prepared, before the first epoch.
        every: see :func:`sarb.settings.checkpoint_pace`.
        processes: of ``torchrun``. With several, each has generators of its own: only whole epochs are saved.
        talk: says so.
        scaler: of the gradients, with fp16.
    """

    def __init__(
        self,
        method: Method,
        every: int | str,
        processes: int,
        talk: Progress,
        scaler: torch.amp.GradScaler | None = None,
    ) -> None:
        self.file: Path | None = None
        self._method = method
        self._talk = talk
        self._scaler = scaler
        self._attributes = Attributes(method)
        self._extra: dict[str, Tensor] = {}
        self._steps, self._seconds = checkpoint_pace(every)
        if processes > 1:
            self._only_epochs(f"{processes} processes train together")
        self._wait()

    def _only_epochs(self, reason: str) -> None:
        if min(self._steps, self._seconds) < math.inf:
            self._talk.say(f"checkpoints: at the end of each epoch only, because {reason}")
        self._steps = self._seconds = math.inf

    def _wait(self) -> None:
        self._done = 0
        self._last = time.monotonic()

    def is_due(self) -> bool:
        """Called after each step: whether the state should be saved now."""
        self._done += 1
        return self.file is not None and (
            self._done >= self._steps or time.monotonic() - self._last >= self._seconds
        )

    def save(self, optimizer: torch.optim.Optimizer, state: State) -> None:
        """Write the state; inside an epoch with all that the rest of it depends on."""
        assert self.file is not None
        extra: dict[str, Tensor] = {}
        if state.step:
            try:
                state.attributes, tensors = self._attributes.changed()
            except NotStorableError as error:
                self._only_epochs(f"the method keeps '{error}', which no checkpoint can hold")
                return
            extra = {ATTRIBUTE + key: value for key, value in tensors.items()}
            extra |= {GENERATOR + key: value for key, value in _generators().items()}
        if self._scaler is not None:
            state.scaler = self._scaler.state_dict()
        save_checkpoint(self.file, self._method, optimizer, vars(state), extra)
        self._wait()

    def load(self, optimizer: torch.optim.Optimizer) -> State:
        """Put weights, buffers, optimiser and attributes back, and return the rest."""
        assert self.file is not None
        state = State(**load_checkpoint(self.file, self._method, optimizer, self._extra, self._method.unset))
        if state.step:
            self._attributes.restore(state.attributes, _part(self._extra, ATTRIBUTE))
        if self._scaler is not None and state.scaler:
            self._scaler.load_state_dict(state.scaler)
        return state

    def continue_epoch(self) -> None:
        """Put the generators back, just before the next step."""
        for name, value in _part(self._extra, GENERATOR).items():
            _generator_module(name).set_rng_state(value)
        self._extra = {}


def _part(tensors: dict[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {key.removeprefix(prefix): value for key, value in tensors.items() if key.startswith(prefix)}


def _generators() -> dict[str, Tensor]:
    """States of the global generators, of the CPU and of the GPU in use."""
    names = ["cpu"]
    if torch.accelerator.is_available():
        names.append(str(torch.accelerator.current_accelerator()).partition(":")[0])
    return {name: _generator_module(name).get_rng_state().cpu() for name in names}


def _generator_module(name: str) -> Any:
    return torch if name == "cpu" else getattr(torch, name)
