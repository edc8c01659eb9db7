"""Read weight files: safetensors, or PyTorch's own format without running code from it."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor

from sarb.errors import ConfigError


def read_weights(file: Path) -> dict[str, Tensor]:
    """Return the tensors of a ``.pth`` or ``.safetensors`` file by name, its classifier included."""
    if not file.is_file():
        raise ConfigError([f"{file}: no such weight file"])
    try:
        if file.suffix == ".safetensors":
            from safetensors.torch import load_file

            stored = load_file(file)
        else:
            stored = torch.load(file, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        raise ConfigError(
            [f"{file}: not a plain weight file (it holds more than tensors, and loading that could run code)"]
        ) from error
    except Exception as error:
        raise ConfigError([f"{file}: cannot be read as weights: {str(error).splitlines()[0]}"]) from error
    if not isinstance(stored, Mapping) or not all(isinstance(value, Tensor) for value in stored.values()):
        raise ConfigError(
            [f"{file}: expected a state_dict (a dictionary of tensors), got {type(stored).__name__}"]
        )
    return dict(stored)


def one_line(error: BaseException | None) -> str:
    """The first line of an error that says something; those of other packages are pages long."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {' '.join(lines[:2])[:200]}" if lines else type(error).__name__
