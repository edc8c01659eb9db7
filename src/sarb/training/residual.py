"""The residual: a semantic network that learns what the ladder leaves over, judged on entries it has not seen.

A network learns on the known entries outside one part, on top of the ladder's out-of-fold logits, and is judged
on that part. If no weight above 0 lowers the loss there, the rung ends. If one does, two more networks learn
without two parts each, so that every known entry has a residual that has not seen it; these choose the weight,
and a last network learns on everything and joins the model:

    s = s_ladder + w · r(image),   w in [0, 1]
"""

from __future__ import annotations

import time
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from sarb.auto.judge import Judge
from sarb.auto.ladder import SHARED, Rung
from sarb.auto.parts import Floats, Mask, Parts
from sarb.batches.sources import Split
from sarb.data.dataset import Dataset
from sarb.labels import UNKNOWN, LabelMatrix
from sarb.model import Model
from sarb.networks.base import Network
from sarb.networks.on_top import OnTop
from sarb.progress import Progress
from sarb.runs.folder import RunFolder
from sarb.settings import Settings, resolve
from sarb.training.loop import Training

#: networks that do not learn on everything: the first without one part, the others without two each on average
GROUPS = 3
#: weights of the residual that are compared
WEIGHTS = (0.0, 0.1, 0.25, 0.5, 0.75, 1.0)
#: settings that the residual does not take from the run
OWN = ("method", "network", "method_options", "network_options", "lr_scale")


@dataclass(frozen=True)
class Residual:
    """A trained residual.

    Attributes:
        network: the inner network.
        options: keyword options that build it again.
        weight: w.
    """

    network: Network
    options: dict[str, Any]
    weight: float


@dataclass(frozen=True)
class Task:
    """What the residuals are trained on.

    Attributes:
        whole: all images, so that their cached features are found.
        valid: which of them do not train.
        rows: (n,) readable ones among the training images.
        labels: (n, C).
        scores: (n, C) out-of-fold logits of the ladder.
        parts: of the known entries.
        settings: of the residual.
        talk: reports progress.
    """

    whole: Dataset
    valid: float | Dataset | None
    rows: NDArray[np.int64]
    labels: LabelMatrix
    scores: Floats
    parts: Parts
    settings: Settings
    talk: Progress

    def train(self, seen: Mask) -> Trained:
        """Train one network on the known entries in ``seen`` (n, C)."""
        images = Split.of(self.whole, self.valid, self.settings.seed)
        values = np.zeros(self.whole.labels.values.shape, np.int8)
        values[images.rows[self.rows]] = np.where(seen, self.labels.values, UNKNOWN)
        labels = LabelMatrix(values, self.whole.categories, self.whole.labels.paths)
        offsets = np.zeros((len(images.train), len(labels.categories)), np.float32)
        offsets[self.rows] = self.scores
        training = ResidualTraining(
            replace(self.whole, labels=labels), self.settings, self.valid, offsets, self.talk
        )
        training.run(None, lambda log: None)
        return Trained(training.inner, training.settings.network_options, training.scores()[self.rows])


@dataclass(frozen=True)
class Trained:
    """A network, its options and its logits (n, C) of the training images."""

    network: Network
    options: dict[str, Any]
    scores: Floats


class ResidualTraining(Training):
    """The usual loop with a network on top of a fitted model."""

    def __init__(
        self,
        train: Dataset,
        settings: Settings,
        valid: float | Dataset | None,
        offsets: NDArray[np.float32],
        talk: Progress,
    ) -> None:
        self.offsets = torch.from_numpy(offsets)
        super().__init__(train, settings, valid, None, talk)

    def _new_model(self) -> Model:
        model = super()._new_model()
        return Model(OnTop(model.network, self.offsets), model.categories, model.config)

    def _validate(self, folder: RunFolder | None) -> dict[str, Any]:
        return {}  # validation images have no out-of-fold logits

    @property
    def inner(self) -> Network:
        """The network that was trained."""
        network = self.model.network
        assert isinstance(network, OnTop)
        return network.inner

    def scores(self) -> Floats:
        """Residual logits (N, C) of the training images."""
        result = np.zeros(self.offsets.shape)
        inner = self.inner.eval()
        with torch.inference_mode():
            for batch in self._plain_batches():
                maps = inner.from_frozen(batch.images) if batch.frozen else inner.maps(batch.images)
                result[batch.index.cpu().numpy()] = inner.head(maps).float().cpu().numpy()
        return result


def residual_settings(settings: Settings, method: str) -> Settings:
    """Settings of the residual: those of the run, with the network, method and rates of the recipe ``small``."""
    shared = {
        field.name: getattr(settings, field.name) for field in fields(settings) if field.name not in OWN
    }
    return resolve("small", method=method, network="ssgrl", **shared)


def fit_residual(task: Task) -> tuple[Rung, Residual | None, Floats]:
    """Try a residual: its rung, the residual if it is kept, and the out-of-fold logits (n, C) with it."""
    started = time.perf_counter()
    parts = task.parts
    judge = Judge.of(parts)
    group = -(-parts.numbers * (GROUPS - 1) // max(parts.count - 1, 1))  # part 0 alone, then equal shares
    scores = np.zeros(task.scores.shape)
    for number in np.unique(group):
        scores = np.where(group == number, task.train(parts.known & (group != number)).scores, scores)
        weights = _weights(_only(judge, group <= number), task.scores, scores)
        if not weights[-1]:
            break
    each = np.take(weights, parts.numbers)  # chosen without the entry's own part
    after = task.scores + each * scores
    gain = judge.gain(task.scores, after)
    kept = bool(gain.mean > 0 and weights[-1] > 0)
    residual = None
    if kept:
        trained = task.train(parts.known)
        residual = Residual(trained.network, trained.options, float(weights[-1]))
    seconds = time.perf_counter() - started
    name = f"residual {task.settings.method}"
    rung = Rung(name, kept, judge.mean_ap(after), judge.loss(after), *gain, float(weights[-1]), seconds)
    return rung, residual, after if kept else task.scores


def _only(judge: Judge, tried: Mask) -> Judge:
    """A judge that looks at some of the entries only."""
    return replace(judge, weights=np.where(tried, judge.weights, 0.0))


def _weights(judge: Judge, before: Floats, residual: Floats) -> Floats:
    """The weight for each model (F + 1,), the same for all categories."""
    grid = np.stack([before + weight * residual for weight in WEIGHTS])
    return judge.choose(grid, np.array(WEIGHTS), SHARED)[:, 0]
