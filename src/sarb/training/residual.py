"""The residual: a semantic network that learns what the ladder leaves over, judged on entries that nothing has seen.

The known entries are divided into three groups: one part, and twice two. For each group, the ladder is fitted again
without it, and a network learns on the other entries on top of that ladder's out-of-fold logits. Both are then new
to the group. It is not enough that the network has not seen it: logits of a ladder that has seen an entry are higher
where an image looks like it, the network learns to take that back, and is wrong about just this entry. If no weight
above 0 lowers the loss of the first group, the rung ends. Otherwise all groups choose the weight, and a last network
learns on everything and joins the model:

    s = s_ladder + w · r(image),   w in [0, 1]
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from sarb.auto.judge import Judge
from sarb.auto.ladder import SHARED
from sarb.auto.parts import Floats, Mask, Parts
from sarb.auto.rung import Rung
from sarb.auto.solver import log_loss
from sarb.batches.sources import Split
from sarb.data.dataset import Dataset
from sarb.errors import ConfigError
from sarb.labels import UNKNOWN, LabelMatrix
from sarb.methods.together import objects_of_all
from sarb.model import Model
from sarb.networks.backbones.base import Backbone
from sarb.networks.base import Network
from sarb.networks.on_top import OnTop
from sarb.progress import Progress
from sarb.registry import METHODS, find
from sarb.runs.checkpoint import part_file
from sarb.runs.folder import RunFolder
from sarb.settings import Settings, resolve
from sarb.training.loop import Training

#: networks that do not learn on everything: the first without one part of five, the others without two each
GROUPS = 3
#: weights of the residual that are compared
WEIGHTS = (0.0, 0.1, 0.25, 0.5, 0.75, 1.0)
#: settings that the residual does not take from the run; its SAM uses no words
OWN = ("method", "network", "method_options", "network_options", "lr_scale", "words")


@dataclass(frozen=True)
class Residual:
    """A trained residual.

    Attributes:
        network: the inner network.
        options: keyword options that build it again.
        weight: w.
        scores: (n, C) its logits of the training images.
    """

    network: Network
    options: dict[str, Any]
    weight: float
    scores: Floats


@dataclass(frozen=True)
class Task:
    """What the residuals are trained on.

    Attributes:
        whole: all images, so that their cached features are found.
        valid: which of them do not train.
        rows: (n,) readable ones among the training images.
        labels: (n, C).
        scores: (n, C) out-of-fold logits of the ladder.
        refit: labels (n, C) -> out-of-fold logits (n, C) of a ladder fitted to them.
        parts: of the known entries.
        backbone: whose maps the ladder was fitted to.
        settings: of the residual.
        talk: reports progress.
        checkpoints: folder for the checkpoints of the networks; None for none.
    """

    whole: Dataset
    valid: float | Dataset | None
    rows: NDArray[np.int64]
    labels: LabelMatrix
    scores: Floats
    refit: Callable[[LabelMatrix], Floats]
    parts: Parts
    backbone: Backbone
    settings: Settings
    talk: Progress
    checkpoints: Path | None = None

    def without(self, hidden: Mask) -> Floats:
        """Out-of-fold logits (n, C) of a ladder that has not seen the entries in ``hidden`` (n, C)."""
        values = np.where(hidden, UNKNOWN, self.labels.values)
        return self.refit(LabelMatrix(values, self.labels.categories, self.labels.paths))

    def train(self, seen: Mask, scores: Floats) -> Trained:
        """Train one network on the known entries in ``seen`` (n, C), on top of logits (n, C).

        With patience, the other known entries say when to stop.
        """
        images = Split.of(self.whole, self.valid, self.settings.seed)
        values = np.zeros(self.whole.labels.values.shape, np.int8)
        values[images.rows[self.rows]] = np.where(seen, self.labels.values, UNKNOWN)
        labels = LabelMatrix(values, self.whole.categories, self.whole.labels.paths)
        offsets = np.zeros((len(images.train), len(labels.categories)), np.float32)
        offsets[self.rows] = scores
        held = np.zeros(offsets.shape, np.int8)
        held[self.rows] = np.where(seen, UNKNOWN, self.labels.values)
        training = ResidualTraining(replace(self.whole, labels=labels), self, Held(offsets, held))
        start = (values.tobytes(), offsets.tobytes(), held.tobytes(), training.settings.identity())
        weights = self.backbone.frozen_fingerprint().encode()
        name = "residual"
        training.run_part(part_file(self.checkpoints, name, *start, weights), name)
        best = training.state.best_epoch
        return Trained(
            training.inner,
            training.settings.network_options,
            training.scores()[self.rows],
            training.state.epoch if best < 0 else best + 1,
        )


@dataclass(frozen=True)
class Trained:
    """A network, its options, its logits (n, C) of the training images and the epochs that were best for it."""

    network: Network
    options: dict[str, Any]
    scores: Floats
    epochs: int


class Held(NamedTuple):
    """Offsets (N, C) of the training images and the labels (N, C) that are held out, in {-1, 0, +1}."""

    offsets: NDArray[np.float32]
    labels: NDArray[np.int8]


class ResidualTraining(Training):
    """The usual loop with a network on top of a fitted model."""

    def __init__(self, train: Dataset, task: Task, held: Held) -> None:
        self.offsets = torch.from_numpy(held.offsets)
        self.held = held
        self.backbone = task.backbone
        super().__init__(train, task.settings, task.valid, None, task.talk)

    def _new_model(self) -> Model:
        model = super()._new_model()
        model.network.backbone.load_state_dict(self.backbone.state_dict())
        return Model(OnTop(model.network, self.offsets), model.categories, model.config)

    def _validate(self, folder: RunFolder | None) -> dict[str, Any]:
        """With patience: the loss of the known entries that are held out, instead of validation images."""
        if self.settings.patience is None or not self.held.labels.any():
            return {}
        known = self.held.labels != UNKNOWN
        logits = self.held.offsets[known] + self.scores()[known]
        loss = float(log_loss(logits, (self.held.labels[known] > 0).astype(np.float64)).mean())
        loss = objects_of_all(loss)[0]  # rounding must not let one process stop and another go on
        if -loss > self.state.best:
            self.state.best = -loss
            self.state.best_epoch = self.state.epoch
        return {"held_out_loss": loss}

    @property
    def inner(self) -> Network:
        """The network that was trained."""
        network = self.model.network
        assert isinstance(network, OnTop)
        return network.inner

    def scores(self) -> Floats:
        """Residual logits (N, C) of the training images."""
        result = np.zeros(self.held.offsets.shape)
        inner = self.inner.eval()
        with torch.inference_mode():
            for batch in self._plain_batches():
                maps = inner.from_frozen(batch.images) if batch.frozen else inner.maps(batch.images)
                result[batch.index.cpu().numpy()] = inner.head(maps).float().cpu().numpy()
        return result


def residual_settings(settings: Settings, method: str, options: Mapping[str, Any] | None = None) -> Settings:
    """Settings of the residual: those of the run, with the network, method and rates of the recipe ``auto``."""
    if method in METHODS and not find("method", METHODS, method).on_top:
        problem = f"method '{method}' cannot train a residual; choose another, such as partial_bce or sarb"
        raise ConfigError([problem])
    shared = {
        field.name: getattr(settings, field.name) for field in fields(settings) if field.name not in OWN
    }
    return resolve("auto", method=method, network="ssgrl", method_options=dict(options or {}), **shared)


def fit_residual(task: Task) -> tuple[Rung, Residual | None, Floats]:
    """Try a residual: its rung, the residual if it is kept, and the out-of-fold logits (n, C) with it."""
    started = time.perf_counter()
    parts = task.parts
    whole = Judge.of(parts)
    group = -(-parts.numbers * (GROUPS - 1) // max(parts.count - 1, 1))  # part 0 alone, then equal shares
    before = np.zeros(task.scores.shape)
    scores = np.zeros(task.scores.shape)
    for number in np.unique(group):
        own = group == number
        ladder = task.without(own)
        trained = task.train(parts.known & ~own, ladder)
        before = np.where(own, ladder, before)
        scores = np.where(own, trained.scores, scores)
        if task.settings.patience is not None:  # the first network finds the number of epochs for all
            task = replace(
                task, settings=replace(task.settings, epochs=trained.epochs, min_steps=0, patience=None)
            )
        judge = _only(whole, group <= number)
        weights = objects_of_all(_weights(judge, before, scores))[0]  # all must go on, or none
        if not weights[-1]:
            break
    each = np.take(weights, parts.numbers)  # chosen without the entry's own part
    after = before + each * scores
    gain = judge.gain(before, after)
    kept: bool = objects_of_all(bool(gain.mean > 0 and weights[-1] > 0))[0]
    residual = None
    if kept:
        trained = task.train(parts.known, task.scores)
        residual = Residual(trained.network, trained.options, float(weights[-1]), trained.scores)
    else:
        after = task.scores
    name = f"residual {task.settings.method}"
    rung = Rung.of(name, kept, whole, after, gain, float(weights[-1]), started)
    return rung, residual, after


def _only(judge: Judge, tried: Mask) -> Judge:
    """A judge that looks at some of the entries only."""
    return replace(judge, weights=np.where(tried, judge.weights, 0.0))


def _weights(judge: Judge, before: Floats, residual: Floats) -> Floats:
    """The weight for each model (F + 1,), the same for all categories."""
    grid = np.stack([before + weight * residual for weight in WEIGHTS])
    return judge.choose(grid, np.array(WEIGHTS), SHARED)[:, 0]
