"""Methods: ways to train a network from partial labels."""

from sarb.methods.base import Method
from sarb.methods.partial_bce import PartialBCE
from sarb.methods.sarb import SARB

__all__ = ["SARB", "Method", "PartialBCE"]
