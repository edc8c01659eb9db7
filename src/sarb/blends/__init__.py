"""Blends: ``(x, targets) -> (x, targets)`` at one stage of the network; they complete unknown entries.

ILRB (:class:`InstanceBlend`) and PLRB (:class:`PrototypeBlend`) work on the representations (B, C, D).

instance     ILRB, with a known positive of another image
prototype    PLRB, with a prototype of the category
quadrant     PPRB of DSRB, with a prototype of another quadrant
bank         the newest known positives of a category
kmeans       the clustering that finds prototypes
coefficient  α and β
mixup        mixing of whole images or maps
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
