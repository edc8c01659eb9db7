"""Train the last stage of the backbone too, where frozen features explain little; kept if held-out images gain.

A fifth of the training images is held out by seed. On the others, network ``pooled`` with method ``partial_bce``
trains the last stage. Then the ladder is fitted to the new features of all images. The backbone has seen the labels
of the other images, so only known entries of the held-out ones choose in this ladder, set its scale and compare it
with the ladder on frozen features. Both score these entries out of fold.
"""

from __future__ import annotations

import copy
import time
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from sarb.auto.judge import Judge
from sarb.auto.ladder import Ladder
from sarb.auto.parts import Parts
from sarb.auto.rung import FINETUNE, Rung
from sarb.batches.loader import Batch
from sarb.batches.sources import Split, use_cache
from sarb.data.dataset import Dataset
from sarb.errors import ConfigError
from sarb.labels import LabelMatrix
from sarb.model import Model
from sarb.networks.backbones.base import Backbone
from sarb.progress import Progress
from sarb.runs.checkpoint import part_file
from sarb.runs.folder import RunFolder
from sarb.settings import Settings, resolve
from sarb.training.loop import Training

#: frozen features are poor if the loss of the finished ladder is above this; 1 is knowing only the rates, and
#: photos like those of ImageNet reach 0.62 with 10 % of the labels (results/auto/development.csv)
POOR = 0.7
#: known positives per category, on average; with fewer, the labels may be too few rather than the features poor
ENOUGH = 30
#: share of the training images on which the trained stage is judged
HELD_OUT = 0.2
#: images and steps that are timed to know how long it takes
TIMED_IMAGES = 16
TIMED_STEPS = 3
#: no further step is timed after this many seconds
TIMED_SECONDS = 2.0
#: settings that fine-tuning does not take from the run
OWN = ("method", "network", "method_options", "network_options", "words", "patience")
#: what the recipe ``auto`` sets for the residual; fine-tuning needs more steps, as ``pooled`` has them in ``small``
SCHEDULE = (("epochs", "min_steps"), ("lr",), ("warmup",))


def is_poor(loss: float, labels: LabelMatrix) -> bool:
    """Whether a loss is high although there are enough labels."""
    return loss > POOR and int(labels.positives.sum()) >= ENOUGH * len(labels.categories)


def tuning_settings(settings: Settings) -> Settings:
    """Settings for the last stage: those of the run; its schedule only if it is not that of the recipe ``auto``."""
    shared = {each.name: getattr(settings, each.name) for each in fields(settings) if each.name not in OWN}
    usual = resolve("auto")
    longer = resolve("small", method="partial_bce", network="pooled")
    for names in SCHEDULE:
        if all(shared[name] == getattr(usual, name) for name in names):
            shared |= {name: getattr(longer, name) for name in names}
    stages = settings.backbone_options.get("train_stages") or 1
    shared["backbone_options"] = {**settings.backbone_options, "train_stages": stages}
    return resolve("small", method="partial_bce", network="pooled", **shared)


@dataclass(frozen=True)
class Tuning:
    """The last stage that may be trained, and the images for it.

    Attributes:
        whole: all images, so that their cached features are found.
        valid: which of them do not belong to the training images.
        backbone: to start from; it is not changed.
        settings: from :func:`tuning_settings`.
        talk: reports progress.
        checkpoints: folder for the checkpoint of the training; None for none.
    """

    whole: Dataset
    valid: float | Dataset | None
    backbone: Backbone
    settings: Settings
    talk: Progress
    checkpoints: Path | None = None

    @property
    def share(self) -> float:
        """Share of all images that do not train: a fifth of the training images, and the validation images."""
        valid = self.valid if isinstance(self.valid, float | int) else 0.0
        return valid + HELD_OUT * (1 - valid)

    @property
    def split(self) -> Split:
        """Images that train the stage, and those that do not: the run's validation images are among them."""
        return Split.of(self.whole, self.share, self.settings.seed)

    def check(self) -> None:
        """Raise ConfigError if the backbone cannot train these stages."""
        copy.deepcopy(self.backbone).freeze(self.stages)

    @property
    def possible(self) -> bool:
        """Whether the backbone can train these stages; one at several scales cannot."""
        try:
            self.check()
        except ConfigError:
            return False
        return True

    @property
    def stages(self) -> int:
        """How many stages are trained."""
        return int(self.settings.backbone_options["train_stages"])

    def train(self) -> Backbone:
        """Train the stage and return the whole backbone."""
        training = StageTraining(self.whole, self.settings, self.share, self.backbone, self.talk)
        labels = self.whole.labels.values.tobytes()
        start = (labels, training.settings.identity(), self.backbone.frozen_fingerprint().encode())
        training.run_part(part_file(self.checkpoints, "finetune", *start), "finetune")
        return training.model.network.backbone.eval()

    def seconds(self, rows: NDArray[np.int64]) -> float:
        """Time a few images and a few steps, and multiply; ``rows`` are readable images."""
        few = replace(self.settings, cache=False, cache_views=0, augment=False, epochs=1, min_steps=0)
        sample = self.whole.take(rows[:TIMED_IMAGES])
        training = StageTraining(sample, few, None, self.backbone, Progress(enabled=False))
        image, step = training.measure()
        in_epoch = -(-len(self.split.train) // (few.batch_size * few.accumulate))
        epochs = self.settings.grown(in_epoch).epochs
        cached = use_cache(self.settings, training.method, training.device, training.model.network.backbone)
        passes = 1 + self.settings.cache_views if cached else epochs + 1
        frozen = passes * len(self.whole) * image
        steps = epochs * in_epoch + len(self.whole) / few.batch_size  # one more pass for the ladder
        return float(frozen + steps * step)


class StageTraining(Training):
    """The usual loop, starting from a given backbone."""

    def __init__(
        self,
        train: Dataset,
        settings: Settings,
        valid: float | None,
        backbone: Backbone,
        talk: Progress,
    ) -> None:
        self.backbone = backbone
        super().__init__(train, settings, valid, None, talk)

    def _new_model(self) -> Model:
        model = super()._new_model()
        model.network.backbone.load_state_dict(self.backbone.state_dict())
        return model

    def _validate(self, folder: RunFolder | None) -> dict[str, Any]:
        """Nothing: the held-out images judge the result once, and choose no epoch."""
        return {}

    def measure(self) -> tuple[float, float]:
        """Seconds to decode an image and run the frozen stages, and seconds of a step."""
        started = time.perf_counter()
        batch = self.sources.plain[[(0, index) for index in range(len(self.sources.plain))]].to(self.device)
        with torch.no_grad():
            maps = self.model.network.backbone.frozen(batch.images)
        float(maps.sum())  # wait for a GPU
        image = (time.perf_counter() - started) / max(1, len(batch.index))
        own = -(-self.settings.batch_size // self.spread.world)
        repeated = np.arange(own) % max(1, len(batch.index))
        full = Batch(maps[repeated], batch.labels[repeated], batch.index[repeated], frozen=True)
        self.method.train()
        steps: list[float] = []
        while len(steps) < TIMED_STEPS and sum(steps) < TIMED_SECONDS:
            started = time.perf_counter()
            self._step([full], 0, 0, 1)
            steps.append(time.perf_counter() - started)
        return image, min(steps)  # the first step also prepares the others


def compared(frozen: Ladder, tuned: Ladder, parts: Parts, stages: int, started: float) -> Rung:
    """The rung ``finetune``: both ladders on known entries of the images that judge, which ``parts`` has only."""
    judge = Judge.of(parts)
    after = tuned.out_of_fold
    # the scores of the tuned ladder are tempered on these entries, and the judge tempers them again: the same here
    slope, shift = judge.temper(frozen.out_of_fold)
    gain = judge.gain(slope * frozen.out_of_fold + shift, after)
    rung = Rung.of(FINETUNE, gain.mean > 0, judge, after, gain, float(stages), started)
    if rung.kept:
        return rung
    # beside rungs that are measured on all images, the figures of a few would mislead
    nothing = float("nan")
    return replace(rung, mean_ap=nothing, loss=nothing, spread=np.array([nothing]))
