"""Hugging Face datasets. A label is in the column of what it is; one that is in neither is unknown."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sarb.errors import SarbError


def to_dataset(
    paths: Sequence[str],
    categories: Sequence[str],
    *,
    lists: dict[str, NDArray[np.bool_]] | None = None,
    numbers: dict[str, NDArray[np.float64]] | None = None,
    root: str | Path | None = None,
) -> Any:
    """Return a ``datasets.Dataset`` with a row per image.

    Args:
        paths: N image names, the column ``file_name``.
        categories: C names.
        lists: column -> (N, C) mask; the column lists the chosen categories, as class labels.
        numbers: column -> (N, C); the column has a number per category, by name.
        root: folder of the images; with it there is a column ``image``, decoded on access.
    """
    package = _package()
    features: dict[str, Any] = {"file_name": package.Value("string")}
    columns: dict[str, Any] = {"file_name": list(paths)}
    if root is not None:
        features["image"] = package.Image()
        columns["image"] = [str(Path(root) / path) for path in paths]
    for name, mask in (lists or {}).items():
        features[name] = package.List(package.ClassLabel(names=list(categories)))
        columns[name] = [np.flatnonzero(row).tolist() for row in mask]
    for name, values in (numbers or {}).items():
        features[name] = {category: package.Value("float32") for category in categories}
        columns[name] = [dict(zip(categories, row, strict=True)) for row in values.tolist()]
    return package.Dataset.from_dict(columns, features=package.Features(features))


def _package() -> Any:
    try:
        import datasets
    except ImportError:
        raise SarbError("to_datasets needs Hugging Face datasets: pip install datasets") from None
    return datasets
