"""Blends: ``(x, targets) -> (x, targets)`` at one stage of the network, completing entries that were unknown.

instance      ILRB: borrow a known positive from another image, representations (B, C, D)
prototype     PLRB: borrow from the prototypes of a category, representations (B, C, D)
kmeans        the prototypes
coefficient   α and β
mixup         mix whole images or maps: IP-Mixup and FM-Mixup
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
