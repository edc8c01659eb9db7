"""Losses: functions of predictions or representations and targets, each a scalar.

partial_bce   binary cross entropy over known entries
contrastive   make the representations of a category compact
"""

from sarb.losses.contrastive import contrastive
from sarb.losses.partial_bce import partial_bce

__all__ = ["contrastive", "partial_bce"]
