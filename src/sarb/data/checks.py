"""What readers share: collected problems, missing files, and warnings about official sizes."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path

from sarb.errors import DataError


class DataWarning(UserWarning):
    """Data that can be used, but is probably not what was meant."""


class Problems:
    """Faults of one source, gathered so that the user sees them all at once.

    Only the first ``limit`` are kept as text, so a million bad cells cost no memory.
    """

    def __init__(self, source: str | Path, limit: int = 20) -> None:
        self.source = source
        self.limit = limit
        self.count = 0
        self.shown: list[str] = []

    def add(self, problem: str) -> None:
        """Note one fault."""
        self.count += 1
        if len(self.shown) < self.limit:
            self.shown.append(problem)

    def raise_any(self) -> None:
        """Raise :class:`DataError` with everything noted so far; do nothing when there is nothing."""
        if not self.count:
            return
        if self.count == 1:
            raise DataError(f"{self.source}: {self.shown[0]}")
        more = f"\n  … and {self.count - self.limit} more" if self.count > self.limit else ""
        lines = "".join(f"\n  {problem}" for problem in self.shown)
        raise DataError(f"{self.source}: {self.count} problems{lines}{more}")


def missing_files(root: Path, names: Sequence[str]) -> list[str]:
    """Return the names that are no file under ``root``."""
    return [name for name in names if not (root / name).is_file()]


def say_missing(missing: Sequence[str], total: int, root: Path | str) -> str:
    """Return one line that counts missing image files and names the first few."""
    few = ", ".join(missing[:5]) + (", …" if len(missing) > 5 else "")
    return f"{len(missing)} of {total} image files are missing in {root}: {few}"


def require_files(root: Path, names: Sequence[str], source: str | Path) -> None:
    """Raise one :class:`DataError` when image files are missing."""
    missing = missing_files(root, names)
    if missing:
        raise DataError(f"{source}: {say_missing(missing, len(names), root)}")


def warn_size(name: str, expected: int, found: int) -> None:
    """Warn when an official set does not have its official number of images."""
    if found != expected:
        message = f"{name} has {found:,} images, the official set has {expected:,}: results cannot be compared"
        warnings.warn(message, DataWarning, stacklevel=4)
