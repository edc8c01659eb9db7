"""``sarb data stats``: save the statistics of a data source as JSON or as a page."""

from __future__ import annotations

from pathlib import Path

from sarb.data.check.stats import Stats, writable
from sarb.errors import DataError
from sarb.files import atomic_write
from sarb.report.data_page import data_page


def save_stats(
    stats: Stats, path: str | Path, *, samples: int = 24, seed: int = 0, images: bool = True
) -> Path:
    """Write ``.json``, or ``.html``: a page with plots and random sample images.

    Args:
        stats: what to save.
        path: file to write.
        samples: number of sample images.
        seed: seed for choosing them.
        images: False leaves out all images.
    """
    path = Path(path)
    if path.suffix.lower() == ".json":
        return stats.save(path)
    if path.suffix.lower() not in (".html", ".htm"):
        raise DataError(f"{path}: statistics are written as .html or .json; use one of these suffixes")
    with atomic_write(path) as file:
        file.write(writable(data_page(stats, samples=samples, seed=seed, images=images)))
    return path
