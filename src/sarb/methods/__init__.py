"""Methods: ways to train a network from partial labels.

base          what the training loop asks of a method, and the hooks
sarb          SARB: ILRB, PLRB and the contrastive loss
partial_bce   the plain method: learn from known labels only
curriculum    curriculum labeling: pseudo-labels in rounds
strategies    which pseudo-labels it trusts
mixup         IP-Mixup and FM-Mixup
asl           asymmetric loss
"""

from sarb.methods.base import Method
from sarb.methods.curriculum import Curriculum
from sarb.methods.mixup import FeatureMapMixup, PixelMixup
from sarb.methods.partial_bce import PartialBCE
from sarb.methods.sarb import SARB

__all__ = ["SARB", "Curriculum", "FeatureMapMixup", "Method", "PartialBCE", "PixelMixup"]
