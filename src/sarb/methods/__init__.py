"""Methods: ways to train a network with partial labels.

base         what the training loop calls
sarb         SARB, the paper's method
partial_bce  the known labels only
asl          asymmetric loss
mixup        IP-Mixup and FM-Mixup
curriculum   curriculum labeling
auto         fit a ladder on frozen features instead of training step by step
strategies   which pseudo-labels curriculum labeling trusts
"""

from sarb.methods.base import Method
from sarb.methods.curriculum import Curriculum
from sarb.methods.mixup import FeatureMapMixup, PixelMixup
from sarb.methods.partial_bce import PartialBCE
from sarb.methods.sarb import SARB

__all__ = ["SARB", "Curriculum", "FeatureMapMixup", "Method", "PartialBCE", "PixelMixup"]
