"""``fit``: from labelled images to a trained model, and to the run that knows how it was made."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

from sarb import __version__
from sarb.batches.sources import Sources, Split
from sarb.data.dataset import Dataset
from sarb.errors import ConfigError, SarbError, check_type, setting
from sarb.labels import LabelMatrix
from sarb.methods.together import connected
from sarb.model import LEARNED, Model
from sarb.progress import Progress
from sarb.registry import METHODS, find
from sarb.runs.folder import RunFolder
from sarb.settings import Settings, resolve
from sarb.training.fitted import Fitting
from sarb.training.loop import Training
from sarb.training.track import Trackers


@dataclass(frozen=True)
class Run:
    """What a training knows when it ends.

    Attributes:
        model: of the last epoch.
        settings: as they were used; ``epochs`` may have grown to ``min_steps``.
        split: which images trained and which validated.
        sources: where their batches came from.
        labels: what it learned from: the training labels without those of unreadable images.
        config: content of ``config.json``.
        folder: the run folder; None if nothing was written.
        writes: False in all processes but the first of ``torchrun``.
        finished: whether the folder held the finished model already, so that nothing was trained or written.
    """

    model: Model
    settings: Settings
    split: Split
    sources: Sources
    labels: LabelMatrix
    config: dict[str, Any]
    folder: RunFolder | None
    writes: bool
    finished: bool = False


def fit(
    train: Dataset,
    *,
    method: str | None = None,
    network: str | None = None,
    backbone: str | None = None,
    seed: int | None = None,
    out: str | Path | None = None,
    valid: float | Dataset | None = None,
    words: str | Path | None = None,
    init: str | Path | Model | None = None,
    resume: bool = False,
    patience: int | None = None,
    method_options: Mapping[str, Any] | None = None,
    network_options: Mapping[str, Any] | None = None,
    backbone_options: Mapping[str, Any] | None = None,
    recipe: str | Path | None = None,
    progress: bool | Progress = True,
    record: Mapping[str, Any] | None = None,
    track: str | Sequence[str] | Trackers | None = None,
    **options: Any,
) -> Model:
    """Train a network on partial labels and return the model, that of the last epoch.

    With no method, network or recipe given, it fits method ``auto`` on the frozen features of the backbone.
    Epochs and lr then apply only to the residual and to fine-tuning, and patience to the residual.
    Images that cannot be read are skipped and listed in ``errors.csv``; more than 1 % of them stop the run.

    Args:
        train: images with labels in {-1, 0, +1}; hide some first with ``train.hide(known, seed)``.
        method: a key of ``METHODS``; None takes the recipe's.
        network: a key of ``NETWORKS``; None takes the recipe's, ``probe`` for ``auto``, otherwise ``ssgrl``.
        backbone: a key of ``BACKBONES``, ``timm:NAME`` or ``hf:NAME``; ``efficientnet_lite0``.
        seed: of weights, order, augmentation and blending (0); the same seed gives the same model.
        out: run folder to write; None writes nothing.
        valid: share of the training images (or a Dataset) for validation after each epoch.
        words: GloVe-format file of word vectors, or ``hf:NAME`` for the text encoder of a CLIP or SigLIP model,
            the default with such a backbone; not used by ``auto``. Missing names, and all with ``"none"``, get a
            learned embedding.
        init: model or folder to start from; ``auto`` takes over its backbone only.
        resume: continue the run in ``out`` from its last checkpoint, see ``checkpoint_every``.
        patience: stop after this many epochs without a better validation mAP; ``auto`` needs no ``valid``.
        method_options: keyword arguments of the method, e.g. ``{"claims": "strict"}`` for ``auto``.
        network_options: of the network, e.g. ``{"csrl": "sam"}`` for ``ssgrl``.
        backbone_options: ``train_stages``, ``weights``, ``frozen_norms``, ``scales``.
        recipe: name or file of a recipe with the defaults; None takes ``auto``. If another method or network
            is given, None takes ``gpu`` with a GPU and ``small`` without one.
        progress: report progress on stderr.
        record: facts about the data source to keep in ``config.json``.
        track: also log to ``tensorboard``, ``wandb`` or both; changes no number.
        options: any other setting of :class:`sarb.settings.Settings`: epochs, batch_size, lr, image_size, …
    """
    settings = resolve(
        recipe,
        method=method,
        network=network,
        backbone=backbone,
        seed=seed,
        patience=patience,
        words=words,
        method_options=method_options,
        network_options=network_options,
        backbone_options=backbone_options,
        **options,
    )
    run = start_run(
        train,
        settings,
        out=out,
        valid=valid,
        init=init,
        resume=resume,
        progress=progress,
        record=record,
        track=track,
    )
    return run.model


def start_run(
    train: Dataset,
    settings: Settings,
    *,
    out: str | Path | None = None,
    valid: float | Dataset | None = None,
    init: str | Path | Model | None = None,
    resume: bool = False,
    progress: bool | Progress = True,
    record: Mapping[str, Any] | None = None,
    track: str | Sequence[str] | Trackers | None = None,
) -> Run:
    """Train with settings that are resolved already; arguments as in :func:`fit`."""
    kind = Fitting if find("method", METHODS, settings.method).fitted else Training
    if settings.patience is not None and not valid and kind is Training:
        raise ConfigError([f"patience needs a validation split: add {setting('valid', 0.1)}"])
    folder = None if out is None else RunFolder(out)
    trackers = Trackers.of(track, None if folder is None else folder.path)
    _check_start(train, folder, resume)  # before the first long computation
    with connected():
        training = kind(train, settings, valid, init, Progress.of(progress))
        config = _config(training, record or {})
        finished = False
        if folder is not None:
            training.open(folder, config, resume)
            finished = resume and training.finished and folder.model.exists()
        if not finished:
            with trackers:
                trackers.open(config, training.state.log, writing=training.writes)
                training.run(folder, trackers.log)
    return Run(
        model=training.model if folder is None or not finished else Model.load(folder.model.path),
        settings=training.settings,
        split=training.split,
        sources=training.sources,
        labels=training.skipped.used(),
        config=config,
        folder=folder,
        writes=training.writes,
        finished=finished,
    )


def _check_start(train: Dataset, folder: RunFolder | None, resume: bool) -> None:
    """Refuse what cannot become a run."""
    check_type("train", train, Dataset, "a Dataset, such as sarb.load(SOURCE).train")
    if not len(train):
        raise SarbError(f"{train.name}: there are no training images")
    if not train.labels.known.any():
        raise SarbError(f"{train.name}: none of the {train.labels.values.size:,} training labels is known")
    if resume and folder is None:
        raise ConfigError([f"resume needs the run folder: give {setting('out', 'DIR')}"])
    if folder is not None and resume:
        folder.model.check_whole()
    if folder is not None and (folder.checkpoint.is_file() or folder.model.exists()) and not resume:
        raise SarbError(
            f"{folder.path}: holds a run already; continue it with {setting('resume')} or choose another folder"
        )


def _config(training: Training | Fitting, record: Mapping[str, Any]) -> dict[str, Any]:
    """Everything needed to repeat the run."""
    train = training.split.whole
    return {
        "settings": training.settings.as_dict(),
        "data": {
            "name": train.name,
            "root": str(train.root.absolute()),
            "images": len(train),
            "known_share": train.labels.known_share,
            "labels": train.labels.fingerprint(),
            "valid_images": len(training.split.valid),
            **record,
        },
        "categories": list(train.categories),
        "versions": _versions(),
        "threads": torch.get_num_threads(),
        "device": str(training.device),
        "words": _words(training),
        **training.sources.record(),
        **({"out_of_fold": training.method.folds} if isinstance(training, Fitting) else {}),
    }


def _words(training: Training | Fitting) -> str:
    """Where the category semantics come from, in words for the report."""
    if not training.model.network.uses_words:
        return "not used"
    encoder = training.model.config.get("word_source")
    if encoder is not None:
        return f"text encoder of {encoder}"
    given = training.settings.words
    return given if given not in (None, LEARNED) else "none given: one embedding per category is learned"


def _versions() -> dict[str, str]:
    """Versions of what decides the numbers."""
    packages = ("torch", "numpy", "pillow", "accelerate", "scikit-learn")
    return {
        "sarb": __version__,
        "python": platform.python_version(),
        **{name: version(name) for name in packages},
    }
