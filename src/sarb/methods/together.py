"""What several processes of one training find out: a memory that all share must be the same in all."""

from __future__ import annotations

import torch
from torch import Tensor, distributed


def from_all(*parts: Tensor) -> list[Tensor]:
    """Join tensors (n, …) of all processes, in the order of the processes; n may differ between them.

    Every process must call it at the same point. In a single process, the tensors come back as they are.
    Buffers need this: before each step, those of the first process replace those of all others.
    """
    if not (distributed.is_available() and distributed.is_initialized()):
        return list(parts)
    gathered: list[list[Tensor]] = [[] for _ in range(distributed.get_world_size())]
    distributed.all_gather_object(gathered, [part.detach().cpu() for part in parts])
    return [
        torch.cat(pieces).to(part.device)
        for part, pieces in zip(parts, zip(*gathered, strict=True), strict=True)
    ]
