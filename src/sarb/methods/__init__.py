"""Methods: ways to train a network from partial labels."""

from sarb.methods.base import Method
from sarb.methods.curriculum import Curriculum
from sarb.methods.mixup import FeatureMapMixup, PixelMixup
from sarb.methods.partial_bce import PartialBCE
from sarb.methods.sarb import SARB

__all__ = ["SARB", "Curriculum", "FeatureMapMixup", "Method", "PartialBCE", "PixelMixup"]
