"""The only inference loop, and what it gives: Scores."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence, Sized
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray

from sarb.batches.features import View, cached_features
from sarb.batches.loader import Batch, Batches, CachedMaps, Pictures, Source, check_readable, make_loader
from sarb.data.dataset import Data, Dataset
from sarb.errors import ImageError, SarbError, check_type, did_you_mean
from sarb.labels import LabelMatrix
from sarb.methods.together import objects_of_all, place
from sarb.model import Model, as_model
from sarb.networks.backbones.fold import folded
from sarb.networks.base import Network
from sarb.progress import Progress
from sarb.report import Report
from sarb.scores import Scores

#: receives the index (b,) of some images and their maps (b, D, H, W)
OnMaps = Callable[[NDArray[np.int64], torch.Tensor], None]


@torch.inference_mode()
def infer(
    network: Network, batches: Iterable[Batch], progress: Any = None, on_maps: OnMaps | None = None
) -> tuple[NDArray[np.float32], NDArray[np.int64], list[tuple[int, str]]]:
    """Run a network over batches: logits (n, C), image index of each row, (index, reason) of failures."""
    training = network.training
    network.eval()
    first = next(network.parameters())
    device = first.device
    dtype = torch.float64 if first.dtype == torch.float64 else None
    logits = [np.zeros((0, network.categories), np.float32)]
    index = [np.zeros(0, np.int64)]
    failures: list[tuple[int, str]] = []
    trunk = network.backbone
    for number, batch in enumerate(batches):
        failures += batch.failures
        if number == 1 and not batch.frozen and trunk.train_stages < len(trunk.stage_names):
            trunk = folded(trunk)  # does not pay for a single batch
        if len(batch.index):
            inputs = batch.images.to(device, dtype)
            maps = network.from_frozen(inputs if batch.frozen else trunk.frozen(inputs))
            logits.append(network.head(maps).float().cpu().numpy())
            index.append(batch.index.numpy())
            if on_maps is not None:
                on_maps(index[-1], maps)
        if progress is not None:
            progress(len(batch.index) + len(batch.failures))
    network.train(training)
    return np.concatenate(logits), np.concatenate(index), failures


Inferred = tuple[NDArray[np.float32], NDArray[np.int64], list[tuple[int, str]]]


def joined(own: Inferred) -> Inferred:
    """What all processes of ``torchrun`` inferred from their shares, in order; every image is there once."""
    everyone = objects_of_all(own)
    logits, index, failures = zip(*everyone, strict=True)
    return np.concatenate(logits), np.concatenate(index), [each for some in failures for each in some]


def predict(
    model: Model | str | Path,
    images: Dataset | Sequence[Any] | str | Path,
    *,
    batch_size: int = 32,
    workers: int = 0,
    cache: bool = False,
    progress: bool | Progress = False,
    unreadable: Literal["raise", "skip"] = "raise",
    skipped: list[tuple[str, str]] | None = None,
    on_maps: OnMaps | None = None,
    shared: bool = False,
) -> Scores:
    """Score images.

    Args:
        model: a model, or the folder or hub id of one.
        images: a Dataset, a path, or a list of paths, Pillow images or arrays.
        batch_size: images per step.
        workers: processes that decode images; 0 decodes in threads while the network works on the batch
            before.
        cache: keep the frozen trunk's activations (fp16) for the next call on the same Dataset; more than 1
            % of unreadable images are an error then.
        progress: show progress on stderr: a bar on a terminal, else a line per 10 %.
        unreadable: ``"raise"`` an error for the first image that cannot be read, or ``"skip"`` such images:
            they have no row, and ``scores.skipped`` lists them with the reason.
        skipped: a list that also receives (path, reason) of unreadable images; giving it skips them.
        on_maps: called for each batch with positions (b,) of images and their maps (b, D, H, W), for who
            needs features beside scores.
        shared: under ``torchrun``, each process scores its share, and all get all scores. All must call it then.
    """
    talk = Progress.of(progress)
    model = as_model(model)
    if isinstance(images, (str, Path)):
        images = [images]
    check_type("images", images, Sized, "a Dataset such as data.test, a path, or a list of images")
    names = (
        list(images.labels.paths)
        if isinstance(images, Dataset)
        else [_name(item, i) for i, item in enumerate(images)]
    )
    source: Source
    if isinstance(images, Dataset) and cache:
        stored = cached_features(
            model.network.backbone,
            images,
            model.transform,
            device=model.device,
            workers=workers,
            progress=talk,
        )
        source = CachedMaps(stored.activations, images.labels.values, unreadable=stored.unreadable)
    else:
        sources = images.paths if isinstance(images, Dataset) else images
        source = Pictures(sources, np.zeros((len(sources), 0), np.int8), [model.transform])
    batches = Batches(len(names), batch_size)
    rank, world = place() if shared else (0, 1)
    with talk.bar("predicting", -(-len(names) // world)) as advance:
        loader = make_loader(source, batches.share(rank, world), workers)
        found = infer(model.network, loader, advance, on_maps)
    logits, index, failures = joined(found) if shared else found
    if failures and unreadable == "raise" and skipped is None:
        raise ImageError(failures[0][1])
    left_out = [(names[position], reason) for position, reason in failures]
    if skipped is not None:
        skipped += left_out
    return Scores(logits, model.categories, [names[position] for position in index], left_out)


def has_features(model: Model, dataset: Dataset) -> bool:
    """Whether the feature cache has these images, as :func:`predict` with ``cache`` reads them."""
    return View(dataset, model.transform).file(model.network.backbone).exists()


def _name(item: Any, position: int) -> str:
    return str(item) if isinstance(item, (str, Path)) else f"image {position}"


def match_categories(model: Model, dataset: Dataset) -> Dataset:
    """Bring the data set's columns into the model's order; a category the model does not know is an error."""
    check_type("dataset", dataset, Dataset, "a Dataset, such as sarb.load(SOURCE).test")
    if dataset.categories == model.categories:
        return dataset
    missing = [name for name in model.categories if name not in dataset.categories]
    extra = [name for name in dataset.categories if name not in model.categories]
    if missing or extra:
        counts = [
            f"{len(names):,} {what} ('{names[0]}'{', …' if len(names) > 1 else ''})"
            for names, what in ((missing, "missing in the data"), (extra, "missing in the model"))
            if names
        ]
        near = did_you_mean(missing[0], extra) if missing else ""
        end = f".{near}" if near else ""
        raise SarbError(f"the data and the model have different categories: {', '.join(counts)}{end}")
    order = [dataset.categories.index(name) for name in model.categories]
    labels = LabelMatrix(dataset.labels.values[:, order], model.categories, dataset.labels.paths)
    return replace(dataset, labels=labels)


def readable(dataset: Dataset, scores: Scores) -> Dataset:
    """The data set without the images that :func:`predict` skipped; more than 1 % of them are an error."""
    check_readable([reason for _, reason in scores.skipped], len(dataset))
    names = {name for name, _ in scores.skipped}
    if not names:
        return dataset
    return dataset.take(np.array([path not in names for path in dataset.labels.paths], bool))


def evaluate(
    model: Model | str | Path,
    dataset: Dataset | Data,
    *,
    skipped: list[tuple[str, str]] | None = None,
    **options: Any,
) -> Report:
    """Score a data set and compare with its known labels.

    Decisions are measured at 0.5 of the network's own probabilities, as in the paper. If the model is
    calibrated, ``report.calibrated`` has them for its calibrated probabilities and thresholds.

    Args:
        model: a model, or the folder or hub id of one.
        dataset: images with labels; of a Data object, its test images. Unreadable images are left out, with
            a warning; more than 1 % are an error.
        skipped: a list that receives (path, reason) of the unreadable images, instead of the warning.
        options: as in :func:`predict`.
    """
    model = as_model(model)
    dataset = match_categories(model, dataset.test if isinstance(dataset, Data) else dataset)
    scores = predict(model, dataset, unreadable="skip", **options)
    report = Report.of(scores, readable(dataset, scores).labels, calibration=model.calibration())
    if skipped is not None:
        skipped += scores.skipped
    elif scores.skipped:
        count = len(scores.skipped)
        message = (
            f"{count} of {len(dataset)} images could not be read and are left out: {scores.skipped[0][1]}"
        )
        warnings.warn(message + " …" * (count > 1), stacklevel=2)
    return report
