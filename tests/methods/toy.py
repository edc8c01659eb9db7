"""The toy case of the facts sheet: two images, three categories, probabilities that can be checked by hand."""

import math

import torch

from sarb.batches.loader import Batch
from sarb.labels import LabelMatrix, Targets
from sarb.networks import create_backbone
from sarb.networks.base import Network
from sarb.networks.pooled import Pooled
from sarb.registry import METHODS, find

LABELS = torch.tensor([[1, 0, -1], [0, 1, 0]], dtype=torch.int8)
TARGETS = Targets.of(LABELS, torch.float64)
P = torch.tensor([[0.8, 0.5, 0.2], [0.9, 0.5, 0.1]], dtype=torch.float64)
LOGITS = P.logit()
CLOSE = 1e-6
#: the sheet gives five digits
SHEET = 5.1e-6


def ln(x):
    """−ln x, the loss of a present label with probability x."""
    return -math.log(x)


#: what each entry costs if an unknown label is absent
AN_ENTRIES = [ln(0.8), ln(0.5), ln(0.8), ln(0.1), ln(0.5), ln(0.9)]


class Fixed(Network):
    """Gives the logits it is told, whatever the images."""

    def __init__(self, logits, reps=None):
        super().__init__(create_backbone("tiny"), logits.shape[1])
        self.logits = logits
        self.reps = torch.zeros(*logits.shape, 2) if reps is None else reps
        self.dim = self.reps.shape[2]

    def maps(self, images):
        return images

    def represent(self, maps):
        return self.reps

    def classify(self, features):
        return self.logits


def batch(labels=LABELS, views=()):
    return Batch(torch.zeros(len(labels), 3, 1, 1), labels, torch.arange(len(labels)), views)


def made(name, epoch=0, logits=LOGITS, reps=None, labels=LABELS, epochs=0, **options):
    """A method on the toy case, at the middle of an epoch."""
    method = find("method", METHODS, name)(Fixed(logits, reps), **options)
    method.epochs = epochs
    method.prepare(LabelMatrix(labels.numpy(), ["a", "b", "c"]))
    method.begin_epoch(epoch, lambda: [batch(labels)])
    method.begin_step(epoch + 0.5)
    return method


def total(method, labels=LABELS):
    """The sum of all terms, which is what the loop minimises."""
    return sum(value.item() for value in method(batch(labels)).values())


def pooled(**options):
    return Pooled(create_backbone("tiny"), 3, **options)
