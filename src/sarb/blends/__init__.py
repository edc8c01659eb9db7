"""Blends: ``(x, targets) -> (x, targets)`` at one stage of the network, completing entries that were unknown.

ILRB (:class:`InstanceBlend`) and PLRB (:class:`PrototypeBlend`) work on the representations (B, C, D).
"""

from sarb.blends.instance import InstanceBlend, random_partner
from sarb.blends.kmeans import kmeans
from sarb.blends.mixup import draw_mixing, mix
from sarb.blends.prototype import PrototypeBlend, known_positives

__all__ = [
    "InstanceBlend",
    "PrototypeBlend",
    "draw_mixing",
    "kmeans",
    "known_positives",
    "mix",
    "random_partner",
]
