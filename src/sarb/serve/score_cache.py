"""The scores of a review's images, kept from one start to the next; new or changed photos are scored again.

One ``.npz`` (no pickle) per model and review in the cache folder: ``logits`` (n, C), ``marks`` (n, 2) with
the size and modification time of each file, and ``paths``, the file names as bytes separated by zeros.
"""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sarb import __version__
from sarb.files import atomic_write, cache_dir
from sarb.model import Model

Floats = NDArray[np.float32]
Flags = NDArray[np.bool_]


def fingerprint(model: Model) -> str:
    """Return a hash of what a score depends on besides the photo: weights, categories, network, version."""
    facts = [__version__, model.categories, model.config, model.transform.config()]
    digest = hashlib.sha256(json.dumps(facts, sort_keys=True).encode())
    for name, tensor in model.network.state_dict().items():
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(tensor.detach().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()


class ScoreCache:
    """The stored scores of one review.

    Args:
        model: the model.
        out: the CSV of the review.
        files: N image files as they are now; a file that changes later is scored again at the next start.
    """

    def __init__(self, model: Model, out: Path, files: Sequence[Path]) -> None:
        key = hashlib.sha256(f"{fingerprint(model)}\n{out.absolute()}".encode("utf-8", "surrogateescape"))
        self.file = cache_dir() / "scores" / f"{key.hexdigest()[:20]}.npz"
        self._names = [str(file.absolute()) for file in files]
        self._marks = np.array([_mark(file) for file in files], np.int64).reshape(-1, 2)
        self._categories = len(model.categories)

    def read(self) -> tuple[Floats, Flags]:
        """Return logits (N, C), 0 where unknown, and whether they are known (N,); ignore a damaged file."""
        logits = np.zeros((len(self._names), self._categories), np.float32)
        known = np.zeros(len(self._names), bool)
        try:
            with np.load(self.file, allow_pickle=False) as stored:
                names = stored["paths"].tobytes().decode("utf-8", "surrogateescape").split("\0")
                stored_marks = stored["marks"]
                stored_logits = stored["logits"]
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
            return logits, known
        if stored_marks.shape != (len(names), 2) or stored_logits.shape != (len(names), self._categories):
            return logits, known
        stored_row = {name: row for row, name in enumerate(names)}
        for row, name in enumerate(self._names):
            old = stored_row.get(name)
            if old is not None and (stored_marks[old] == self._marks[row]).all():
                logits[row] = stored_logits[old]
                known[row] = True
        return logits, known

    def write(self, logits: Floats, readable: Flags) -> None:
        """Store the logits (N, C) of the readable images (N,) only."""
        names = "\0".join(name for name, good in zip(self._names, readable, strict=True) if good)
        paths = np.frombuffer(names.encode("utf-8", "surrogateescape"), np.uint8)
        with atomic_write(self.file, "wb") as file:
            np.savez(file, logits=logits[readable], marks=self._marks[readable], paths=paths)


def _mark(file: Path) -> tuple[int, int]:
    """Return size and modification time in nanoseconds; (-1, -1) for a missing file."""
    try:
        status = file.stat()
    except OSError:
        return -1, -1
    return status.st_size, status.st_mtime_ns
