"""Tensors in safetensors files: read with one clear error, finite, and of the names and shapes that are expected."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from sarb.errors import SarbError
from sarb.runs.finite import not_finite

#: what a message lists at most
FEW = 3


def read_tensors(
    file: Path, expected: Mapping[str, Tensor] | None = None, may_be_nan: Callable[[str], bool] | None = None
) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Tensors and metadata of a file.

    Args:
        file: a safetensors file.
        expected: tensors of the names, shapes and types it must have, on the device "meta"; None for any.
        may_be_nan: says of the name of a tensor whether NaN in it means "not yet".
    """
    try:
        with safe_open(file, framework="pt") as stored:
            names = list(stored.keys())
            if expected is not None:
                _compare(stored, set(names), expected)
            tensors = {name: stored.get_tensor(name) for name in names}
            wrong = [name for name in not_finite(tensors) if may_be_nan is None or not may_be_nan(name)]
            if wrong:
                raise ValueError(f"'{wrong[0]}' holds values that are not finite (NaN or infinity)")
            return tensors, stored.metadata() or {}
    except (SafetensorError, OSError, ValueError, RuntimeError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise SarbError(f"{file}: {reason}") from error


def _compare(stored: Any, names: set[str], expected: Mapping[str, Tensor]) -> None:
    """Compare the header of a file with what is expected, before any tensor is read."""
    problems = [f"missing: {name}" for name in expected if name not in names]
    problems += [f"unexpected: {name}" for name in sorted(names) if name not in expected]
    for name in names & expected.keys():
        part = stored.get_slice(name)
        shape = tuple(part.get_shape())
        kind = KINDS.get(part.get_dtype())
        wanted = (tuple(expected[name].shape), expected[name].dtype)
        if (shape, kind) != wanted:
            problems.append(f"{name} is {shape} of {part.get_dtype()}, expected {wanted[0]} of {wanted[1]}")
    if problems:
        more = f" and {len(problems) - FEW} more" if len(problems) > FEW else ""
        raise ValueError(f"does not fit its config.json: {'; '.join(problems[:FEW])}{more}")


#: types of numbers by their names in a file
KINDS = {
    "F64": torch.float64,
    "F32": torch.float32,
    "F16": torch.float16,
    "BF16": torch.bfloat16,
    "I64": torch.int64,
    "I32": torch.int32,
    "I16": torch.int16,
    "I8": torch.int8,
    "U8": torch.uint8,
    "BOOL": torch.bool,
}
