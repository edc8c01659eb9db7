"""Losses: functions of logits or representations and targets that return a scalar.

partial_bce  binary cross entropy of the known entries
contrastive  similar representations for the same category
"""

from sarb.losses.contrastive import contrastive
from sarb.losses.partial_bce import partial_bce

__all__ = ["contrastive", "partial_bce"]
