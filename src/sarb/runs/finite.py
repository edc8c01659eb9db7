"""Numbers that are not finite are never written: a model or checkpoint that holds some is worse than none."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from sarb.errors import SarbError

#: tensors that an error names
MOST = 3


def not_finite(tensors: Mapping[str, Tensor]) -> list[str]:
    """Names of the tensors that hold NaN or infinity."""
    return [
        name
        for name, value in tensors.items()
        if value.is_floating_point() and not bool(torch.isfinite(value).all())
    ]


def check_finite(tensors: Mapping[str, Tensor], where: str) -> None:
    """Raise SarbError with the names of tensors that are not finite; ``where`` begins the message."""
    wrong = not_finite(tensors)
    if wrong:
        more = f" and {len(wrong) - MOST:,} more tensors" if len(wrong) > MOST else ""
        raise SarbError(
            f"{where}: {', '.join(wrong[:MOST])}{more} hold values that are not finite (NaN or infinity), so "
            "nothing was written"
        )
