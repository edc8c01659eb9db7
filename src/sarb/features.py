"""The feature cache: what a frozen trunk makes of each image, computed once.

One view per image (the evaluation transform), fp16, memory-mapped, keyed by the image files, the frozen weights and
the transform. It says its size first and refuses to fill the disk. Unreadable images have no activations; a JSON file
beside the array tells why.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from sarb.data.dataset import Dataset
from sarb.errors import SarbError
from sarb.files import cache_dir, read_json, write_json
from sarb.loader import Batches, Pictures, check_readable, make_loader
from sarb.networks.backbone import Backbone
from sarb.progress import Progress

#: share of the free disk space that a cache may take
DISK_SHARE = 0.5


class Features(NamedTuple):
    """Activations (N, c, h, w), a read-only memory map, and row -> reason of the images that could not be read."""

    activations: NDArray[np.float16]
    unreadable: dict[int, str]


def cache_file(backbone: Backbone, dataset: Dataset, transform: Any) -> Path:
    """Where the activations of this data set under these weights and this transform are kept."""
    parts = [dataset.fingerprint(), backbone.frozen_fingerprint(), json.dumps(transform.config(), sort_keys=True)]
    key = hashlib.sha256("\n".join(parts).encode()).hexdigest()[:20]
    return cache_dir() / "features" / f"{key}.npy"


def cached_features(
    backbone: Backbone,
    dataset: Dataset,
    transform: Any,
    *,
    device: torch.device | None = None,
    batch_size: int = 32,
    workers: int = 0,
    progress: Progress | None = None,
) -> Features:
    """Return what the frozen trunk makes of the images, computing it if need be; too many unreadable ones stop it."""
    progress = progress or Progress(enabled=False)
    file = cache_file(backbone, dataset, transform)
    if not file.exists():
        _build(file, backbone, dataset, transform, device or torch.device("cpu"), batch_size, workers, progress)
    reasons = file.with_suffix(".json")
    return Features(np.load(file, mmap_mode="r"), dict(read_json(reasons)) if reasons.exists() else {})


def _build(
    file: Path, backbone: Backbone, dataset: Dataset, transform: Any, device: torch.device, batch_size: int,
    workers: int, progress: Progress,
) -> None:  # fmt: skip
    file.parent.mkdir(parents=True, exist_ok=True)
    source = Pictures(dataset.paths, dataset.labels.values, [transform])
    backbone = backbone.to(device).eval()
    sample = torch.zeros(1, 3, transform.size, transform.size, device=device)
    shape = (len(dataset), *_activations(backbone, sample).shape[1:])
    size = 2 * int(np.prod(shape))
    free = shutil.disk_usage(file.parent).free
    progress.say(
        f"feature cache: {size / 1e6:,.0f} MB for {len(dataset):,} images in {file} ({free / 1e9:,.1f} GB free)"
    )
    if size > DISK_SHARE * free:
        raise SarbError(
            f"{file.parent}: the cache needs {size / 1e9:.1f} GB, but only {free / 1e9:.1f} GB are free and it may "
            f"take {DISK_SHARE:.0%} of that. Set SARB_CACHE to a larger disk, or train with cache=False (--no-cache)"
        )
    partial, unreadable = file.with_name(f".{file.stem}.{os.getpid()}.npy"), dict[int, str]()
    try:
        array = np.lib.format.open_memmap(partial, mode="w+", dtype=np.float16, shape=shape)
        with progress.bar("computing features", len(dataset)) as advance:
            for batch in make_loader(source, Batches(len(dataset), batch_size), workers):
                unreadable.update(batch.failures)
                check_readable(list(unreadable.values()), len(dataset))
                if len(batch.index):
                    array[batch.index.numpy()] = _activations(backbone, batch.images.to(device)).cpu().numpy()
                advance(len(batch.index) + len(batch.failures))
        array[list(unreadable)] = np.nan  # should the list of them ever get lost, no run may take zeros for a picture
        array.flush()
        del array
        file.with_suffix(".json").unlink(missing_ok=True)
        if unreadable:
            write_json(file.with_suffix(".json"), list(unreadable.items()))
        partial.replace(file)
    finally:
        partial.unlink(missing_ok=True)


@torch.inference_mode()
def _activations(backbone: Backbone, images: torch.Tensor) -> torch.Tensor:
    """Images -> activations in fp16, clipped to what fp16 can hold."""
    limit = torch.finfo(torch.float16).max
    return backbone.frozen(images.contiguous(memory_format=torch.channels_last)).clamp(-limit, limit).half()
