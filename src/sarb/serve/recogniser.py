"""A model that answers one request at a time: probabilities and heat maps of a picture."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from PIL.Image import Image

from sarb.data.images import Source, decode
from sarb.errors import SarbError
from sarb.inference.prediction import predict
from sarb.model import Model
from sarb.scores import Scores
from sarb.serve.heat import to_bytes
from sarb.serve.turns import Decoders

#: longest side in pixels of a photo on the page
SIDE = 1024


@dataclass(frozen=True)
class Seen:
    """What the model says about one picture: ``probabilities`` (C,) and ``heat`` (C, H, W), 0..255."""

    probabilities: NDArray[np.float64]
    heat: NDArray[np.uint8]


class Recogniser:
    """A model, its calibration, a lock, and the ``decoders`` at which pictures wait for their turn.

    Requests arrive on threads; the lock keeps one forward pass from slowing down another, and the event loop
    free.
    """

    def __init__(self, model: Model) -> None:
        self.model = model
        self.categories = model.categories
        self.calibration = model.calibration()
        self._lock = threading.Lock()
        least = model.transform.least
        self.decoders = Decoders(None if least is None else max(least, SIDE))

    def decode(self, source: Source) -> Image:
        """Decode a picture for :meth:`look` as ``sarb predict`` does: a large JPEG at a fraction of its size."""
        return decode(source, self.model.transform.least)

    def replace(self, model: Model) -> None:
        """Answer with another model from now on; it must have the same categories."""
        if set(model.categories) != set(self.categories):
            raise SarbError(f"{model.folder}: has other categories than the model that is served")
        with self._lock:
            self.model = model
            self.categories = model.categories
            self.calibration = model.calibration()

    def score(self, pictures: Sequence[Image]) -> NDArray[np.float64]:
        """Return the probabilities (N, C) of upright RGB pictures."""
        with self._lock:
            return self.calibration(predict(self.model, pictures))

    @torch.inference_mode()
    def look(self, picture: Image) -> Seen:
        """Recognise one upright RGB picture."""
        with self._lock:
            inputs = torch.from_numpy(self.model.transform(picture))[None].to(self.model.device)
            network = self.model.network
            maps = network.maps(inputs)
            logits = network.head(maps)
            attention = network.attention(maps)
        scores = Scores(logits.float().cpu().numpy(), self.categories)
        return Seen(self.probabilities(scores)[0], to_bytes(attention[0].float().cpu().numpy()))

    def probabilities(self, scores: Scores) -> NDArray[np.float64]:
        """(N, C), calibrated where the model is."""
        return self.calibration(scores)

    def thresholds(self) -> NDArray[np.float64]:
        """(C,) the probability from which on a label counts as present."""
        return self.calibration.ordered(self.categories).thresholds
