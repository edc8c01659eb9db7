"""FiftyOne samples. They are made without its database; only adding them to a dataset needs it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sarb.errors import SarbError


def to_samples(
    paths: Sequence[str],
    categories: Sequence[str],
    fields: dict[str, NDArray[np.bool_]],
    confidence: NDArray[np.float64] | None = None,
    root: str | Path | None = None,
) -> list[Any]:
    """Return a ``fiftyone.Sample`` per image; each field is a ``Classifications``.

    Args:
        paths: N image names.
        categories: C names.
        fields: name of a field -> (N, C) mask of the categories in it.
        confidence: (N, C) of the classifications.
        root: folder of the images.
    """
    package = _package()
    dictionaries = sample_dictionaries(paths, categories, fields, confidence, root)
    return [package.Sample.from_dict(dictionary) for dictionary in dictionaries]


def sample_dictionaries(
    paths: Sequence[str],
    categories: Sequence[str],
    fields: dict[str, NDArray[np.bool_]],
    confidence: NDArray[np.float64] | None = None,
    root: str | Path | None = None,
) -> list[dict[str, Any]]:
    """Return the samples as FiftyOne's own dictionaries; needs no package."""
    samples = []
    for row, path in enumerate(paths):
        sample: dict[str, Any] = {"filepath": str(Path(root or "", path).absolute()), "tags": []}
        for field, mask in fields.items():
            found = [
                {"_cls": "Classification", "label": categories[column]}
                | ({} if confidence is None else {"confidence": float(confidence[row, column])})
                for column in np.flatnonzero(mask[row]).tolist()
            ]
            sample[field] = {"_cls": "Classifications", "classifications": found}
        samples.append(sample)
    return samples


def _package() -> Any:
    try:
        import fiftyone
    except ImportError:
        raise SarbError("to_fiftyone needs FiftyOne: pip install fiftyone") from None
    return fiftyone
