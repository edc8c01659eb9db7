"""A model that answers one request at a time: probabilities and heat maps of a picture."""

from __future__ import annotations

import threading
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from PIL.Image import Image

from sarb.model import Model
from sarb.scores import Scores
from sarb.serve.heat import to_bytes


@dataclass(frozen=True)
class Seen:
    """What the model says about one picture: ``probabilities`` (C,) and ``heat`` (C, H, W), 0..255."""

    probabilities: NDArray[np.float64]
    heat: NDArray[np.uint8]


class Recogniser:
    """A model, its calibration and a lock.

    Requests arrive on threads; the lock keeps one forward pass from slowing down another, and the event loop
    free.
    """

    def __init__(self, model: Model) -> None:
        self.model = model
        self.categories = model.categories
        self.calibration = model.calibration()
        self._lock = threading.Lock()

    @torch.inference_mode()
    def look(self, picture: Image) -> Seen:
        """Recognise one upright RGB picture."""
        inputs = torch.from_numpy(self.model.transform(picture))[None].to(self.model.device)
        network = self.model.network
        with self._lock:
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
