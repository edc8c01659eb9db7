"""What a worker must know; it can be sent to another process or computer."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

PREDICT = "predict"
COMPLETE = "complete"
FEATURES = "features"


@dataclass(frozen=True)
class Job:
    """A kind of work on the images listed in a folder.

    Attributes:
        kind: ``predict``, ``complete`` or ``features``.
        run: run or model folder, or hub id; every worker reads it. Features: the name of the cache file.
        out: the folder of the parts; every worker writes there.
        identity: hash of everything that decides the content of the parts.
        model: checksum of the model, see :func:`sarb.bulk.plan.model_checksum`; features: of the frozen stages.
        options: of the kind: ``top_k`` and ``threshold``, or ``min_confidence`` and ``min_precision``; features:
            ``engine``, the value of ``SARB_ENGINE``.
        batch_size: images per step, inside a chunk.
        threads: of torch in a worker; together with the batches it fixes every bit of the result.
    """

    kind: str
    run: str
    out: str
    identity: str
    model: str
    options: dict[str, Any]
    batch_size: int
    threads: int

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON can hold it."""
        return asdict(self)
