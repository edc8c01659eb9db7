"""An ML backend for Label Studio: what it answers, whatever the route."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL.Image import Image

from sarb.data.parse.messages import few
from sarb.errors import DataError, ImageError
from sarb.label_studio.config import Config, read_config
from sarb.label_studio.host import Host
from sarb.label_studio.tasks import known_labels, model_version, prediction
from sarb.model import Model
from sarb.runs.folder import ModelFolder
from sarb.serve.collected import Collected
from sarb.serve.recogniser import Recogniser
from sarb.serve.retraining import Retraining
from sarb.serve.say import say
from sarb.serve.task_images import TaskImages

#: pictures that are scored together, and most pixels of one of them; larger ones are scored alone
BATCH = 16
SMALL = 1_000_000
#: messages that a server prints at most; whoever sends tasks must not fill the log
MOST_TOLD = 100
#: what Label Studio calls an annotation that is new or has changed
SAVED = ("ANNOTATION_CREATED", "ANNOTATION_UPDATED", "ANNOTATIONS_CREATED")
DELETED = "ANNOTATIONS_DELETED"
TRAIN = "START_TRAINING"


class Backend:
    """Predictions for tasks, and answers collected from annotations.

    Args:
        recogniser: the model.
        images: finds the images of tasks.
        collected: where answers go; None: they are not collected.
        retraining: trains again; None: never.
    """

    def __init__(
        self,
        recogniser: Recogniser,
        images: TaskImages,
        collected: Collected | None = None,
        retraining: Retraining | None = None,
    ) -> None:
        self.recogniser = recogniser
        self.images = images
        self.collected = collected
        self.retraining = retraining
        self._told: set[str] = set()
        self._named: tuple[Model, str] | None = None

    @property
    def host(self) -> Host:
        """Label Studio's server."""
        return self.images.host

    def version(self) -> str:
        """Return the name of the model that answers now."""
        model = self.recogniser.model
        if self._named is None or self._named[0] is not model:
            name = "sarb" if model.folder is None else model_version(ModelFolder(model.folder))
            self._named = model, name
        return self._named[1]

    def setup(self, config: str, token: str) -> str:
        """Check a project's labelling configuration; return the model's name.

        Label Studio sends a legacy token, which serves if the user has set none of their own.
        """
        self.check(config)
        if not self.host.token:
            self.host.token = token
        return self.version()

    def check(self, config: str) -> Config:
        """Return what a labelling configuration asks; raise if it asks about no category of the model."""
        asked = read_config(config)
        ours = [question for question in asked.questions if question.category in self.recogniser.categories]
        if not ours:
            raise DataError(
                "the labelling configuration has no <Choices> with the choices yes and no that is named after "
                f"a category of the model ({few(self.recogniser.categories)}); "
                "'sarb data push label-studio' makes such a project"
            )
        return asked

    def predict(self, tasks: Sequence[Mapping[str, Any]], config: str) -> list[dict[str, Any]]:
        """Return a prediction per task, in the same order; an empty one if its image cannot be read."""
        asked = self.check(config)
        version = self.version()
        replies: list[dict[str, Any]] = []
        for start in range(0, len(tasks), BATCH):
            replies += self._predict(tasks[start : start + BATCH], asked, version)
        return replies

    def _predict(
        self, tasks: Sequence[Mapping[str, Any]], asked: Config, version: str
    ) -> list[dict[str, Any]]:
        found = [self._look(task, asked.image_key) for task in tasks]
        small = [picture for picture in found if isinstance(picture, Image)]
        names = self.recogniser.categories
        scored = iter(self.recogniser.score(small) if small else ())
        rows = [next(scored) if isinstance(seen, Image) else seen for seen in found]
        thresholds = dict(zip(names, self.recogniser.thresholds().tolist(), strict=True))
        empty = {"result": [], "score": 0.0, "model_version": version}
        return [
            prediction(
                asked.questions,
                dict(zip(names, row.tolist(), strict=True)),
                thresholds,
                known_labels(_mapping(task.get("data"))),
                version,
            )
            if row is not None
            else empty
            for task, row in zip(tasks, rows, strict=True)
        ]

    def _look(self, task: Mapping[str, Any], key: str) -> Image | NDArray[np.float64] | None:
        """Return the picture of a task, or its probabilities (C,) at once if the picture is large."""
        recogniser = self.recogniser

        def look(_: object) -> Image | NDArray[np.float64]:
            picture = recogniser.decode(image)
            large = picture.width * picture.height > SMALL
            return recogniser.score([picture])[0] if large else picture

        try:
            image = self.images.find(_mapping(task.get("data")).get(key))
            return recogniser.decoders.submit(image, look).result()
        except ImageError as error:
            self._tell_once(f"task {str(task.get('id'))[:20]}: {error}")
            return None

    def webhook(self, action: str, content: Mapping[str, Any]) -> str:
        """Take what Label Studio reports; return in a few words what was done."""
        project = _mapping(content.get("project")).get("id")
        if action == TRAIN:
            return self.train("Label Studio asked for it")
        if self.collected is None:
            self._tell_once("answers are not collected: the model does not say which labels it belongs to")
            return "not collected"
        if action in SAVED:
            pairs = zip(_listed(content.get("annotation")), _listed(content.get("task")), strict=False)
            for annotation, task in pairs:
                self._save(self.collected, project, annotation, task)
        elif action == DELETED:
            numbers = [item.get("id") for item in _listed(content.get("annotations"))]
            self.collected.delete(project, numbers, _now())
        else:
            return "ignored"
        if self.collected.saver.problem:  # the answers are safe in the journal
            self._tell_once(f"{self.collected.out} could not be written: {self.collected.saver.problem}")
        if self.retraining is not None and self.retraining.due():
            return self.train(f"{self.retraining.waiting():,} new answered tasks")
        return "collected"

    def train_on(self, tasks: Any, project: str) -> str:
        """Collect all annotations of a project, and train: the way of servers that send them together.

        Args:
            tasks: with their annotations.
            project: number and time of creation, ``1.1794964043``.
        """
        number = int(found[0]) if (found := re.match(r"[0-9]{1,18}", project)) else None
        for task in _listed(tasks):
            for annotation in _listed(task.get("annotations")):
                if self.collected is not None:
                    self._save(self.collected, number, annotation, task)
        return self.train("Label Studio asked for it")

    def _save(
        self, collected: Collected, project: Any, annotation: Mapping[str, Any], task: Mapping[str, Any]
    ) -> None:
        if not collected.save(project, annotation, task, _now()):
            self._tell_once(f"task {str(task.get('id'))[:20]}: its image is not in {collected.source}")

    def train(self, reason: str) -> str:
        """Start a training if the user allows it and none is running; say so."""
        if self.retraining is None:
            say(f"{reason}, but training is off; start with --retrain-after 0 to allow it")
            return "training is off"
        return self.retraining.start(reason)

    def close(self) -> None:
        """Stop a running training, and write the answers."""
        if self.retraining is not None:
            self.retraining.close()
        if self.collected is not None:
            self.collected.close()

    def _tell_once(self, text: str) -> None:
        if text not in self._told and len(self._told) < MOST_TOLD:
            self._told.add(text)
            say(text)


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def _mapping(value: Any) -> Mapping[str, Any]:
    """Return an object of JSON, an empty one if it is something else."""
    return value if isinstance(value, Mapping) else {}


def _listed(value: Any) -> list[Mapping[str, Any]]:
    """Return a list of objects: Label Studio sends one, or several at once."""
    items = value if isinstance(value, list) else [value]
    return [item for item in items if isinstance(item, Mapping)]
