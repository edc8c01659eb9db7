"""The run folder: what a training run leaves behind, and the state it resumes from."""

from __future__ import annotations

import csv
import json
import math
import platform
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from sarb import __version__
from sarb.data.dataset import Dataset
from sarb.errors import ConfigError, SarbError
from sarb.files import atomic_write, read_json, write_json

CHECKPOINT = "checkpoint/state.safetensors"
ERRORS = "errors.csv"
#: settings that may differ in a resumed run because they do not change its numbers
HARMLESS = {"workers", "command"}


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


def versions() -> dict[str, str]:
    """Versions of what decides the numbers."""
    from importlib.metadata import version

    packages = ("torch", "numpy", "pillow", "accelerate", "scikit-learn")
    return {
        "sarb": __version__,
        "python": platform.python_version(),
        **{name: version(name) for name in packages},
    }


def write_rows(path: str | Path, rows: Sequence[dict[str, Any]]) -> None:
    """Write dictionaries as CSV; the header is the union of their keys in order of appearance."""
    header = list(dict.fromkeys(key for row in rows for key in row))
    with atomic_write(path) as file:
        writer = csv.DictWriter(file, header, restval="")
        writer.writeheader()
        writer.writerows(rows)


def write_tables(folder: Path, state: State) -> None:
    """Write ``log.csv``, ``steps.csv`` and ``errors.csv``."""
    write_rows(folder / "log.csv", state.log)
    write_rows(folder / "steps.csv", state.step_rows())
    write_errors(folder, state.skipped)


def write_errors(folder: Path, rows: Sequence[dict[str, str]]) -> None:
    """Write ``errors.csv``, the images that were skipped: file_name, reason, split; no file if there are
    none.
    """
    if rows:
        write_rows(folder / ERRORS, rows)
    else:
        (folder / ERRORS).unlink(missing_ok=True)


def read_errors(folder: Path) -> list[dict[str, str]]:
    """Read ``errors.csv`` back."""
    if not (folder / ERRORS).is_file():
        return []
    with (folder / ERRORS).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def save_checkpoint(
    folder: Path, method: torch.nn.Module, optimizer: torch.optim.Optimizer, state: dict[str, Any]
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
    with atomic_write(folder / CHECKPOINT, "wb") as file:
        file.write(save(tensors, metadata))


def has_checkpoint(folder: Path) -> bool:
    """Whether there is something to resume from."""
    return (folder / CHECKPOINT).is_file()


def load_checkpoint(
    folder: Path, method: torch.nn.Module, optimizer: torch.optim.Optimizer
) -> dict[str, Any]:
    """Put weights, buffers and optimiser back; return the bookkeeping."""
    file = folder / CHECKPOINT
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


def check_start(train: Dataset, folder: Path | None, resume: bool) -> None:
    """Refuse what cannot become a run."""
    if not len(train):
        raise SarbError(f"{train.name}: there are no training images")
    if not train.labels.known.any():
        raise SarbError(f"{train.name}: none of the {train.labels.values.size:,} training labels is known")
    if resume and folder is None:
        raise ConfigError(["resume needs the run folder: give out=DIR (--out DIR)"])
    if folder is not None and has_checkpoint(folder) and not resume:
        raise SarbError(
            f"{folder}: holds a run already; continue it with resume=True (--resume) or choose another folder"
        )


def check_same_run(folder: Path, config: dict[str, Any]) -> None:
    """Refuse to resume a run whose settings differ; name each difference."""
    try:
        before = read_json(folder / "config.json")
    except (OSError, ValueError) as error:
        raise SarbError(
            f"{folder / 'config.json'}: cannot be read, so the run cannot be resumed ({error})"
        ) from error
    config = json.loads(json.dumps(config))  # JSON knows no tuples
    differences = [
        f"{key}: was {before.get(section, {}).get(key)!r}, now {config[section].get(key)!r}"
        for section in ("settings", "data")
        for key in sorted({*before.get(section, {}), *config[section]} - HARMLESS)
        if before.get(section, {}).get(key) != config[section].get(key)
    ]
    if differences:
        raise SarbError(f"{folder}: cannot resume, the settings differ:\n  " + "\n  ".join(differences))


def write_config(folder: Path, config: dict[str, Any]) -> None:
    """Write ``config.json``: all that is needed to repeat the run."""
    write_json(folder / "config.json", config)
